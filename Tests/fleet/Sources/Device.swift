import Policy

/// The kind of a device's request.
enum Purpose: Int, CaseIterable {
  case refresh, membership, upload, contacts, summary

  var isAuth: Bool { self == .refresh }
}

/// How a request ended, as the device sees it.
enum Outcome: Int {
  case answered, unreachable, unavailable, limited

  /// The outcome as the library's classification sees it.
  var answer: ResponseFacts {
    switch self {
    case .answered: ResponseFacts(status: 200, isServerJSON: true)
    case .unreachable: .none
    case .unavailable: ResponseFacts(status: 503)
    case .limited: ResponseFacts(status: 429, code: "over_request_rate_limit", isServerJSON: true)
    }
  }
}

/// How a device paces its requests.
enum Pace {
  /// The library's rules.
  case library
  /// Retry everything after a fixed time: the fleet to compare with.
  case fixed(ms: Int64)
}

/// A device: the part of a handle's state that its requests depend on.
///
/// It decides through `Policy`, in the order of the engine's scheduler. Comments name the engine's
/// function that a member mirrors.
struct Device {
  /// The part of a queued item's row that decides which items share a batch.
  struct Item {
    var sequence: Int16
    var cohort: Int16 = 0
    var attempts: Int16 = 0

    func precedes(_ other: Item) -> Bool {
      cohort == other.cohort ? sequence < other.sequence : cohort < other.cohort
    }
  }

  /// After this many consecutive failures a batch is halved (`Engine.suspectAfter`).
  private static let suspectAfter: Int16 = 2
  /// `ContactsPull.periodMS`.
  private static let pullPeriodMS: Int64 = 900_000
  private static let lifetimeMS: Int64 = 3_600_000
  private static let configuredMarginMS: Int64 = 90_000

  private(set) var auth = ServicePause()
  /// The server asked for the last pause of `auth`.
  private var isAuthAsked = false
  /// `ServicePauses`: each purpose backs off for itself.
  private var data = Array(repeating: ServicePause(), count: Purpose.allCases.count)
  private var inFlight = 0
  /// Pending items, in the order of upload.
  private var pending: [Item] = []
  private var sending: [Item] = []
  private var lastSequence: Int16 = 0
  private var lastCohort: Int16 = 0
  private var needsContacts = false
  private var needsSummary = false
  private var wantsMembership = false
  private var lastPullMS: Int64
  private(set) var tokenEndsMS: Int64
  /// The position of its refresh token in the server's chain.
  private(set) var token = 0
  private(set) var isSignedOut = false
  /// The number of tokens that it received.
  private(set) var refreshes = 0
  /// The number of the latest wake-up; older ones are stale.
  var wakeMS: Int64 = -1

  init(tokenEndsMS: Int64, lastPullMS: Int64) {
    self.tokenEndsMS = tokenEndsMS
    self.lastPullMS = lastPullMS
  }

  var queued: Int { pending.count + sending.count }
  /// The number of items in the upload under way.
  var uploading: Int { sending.count }

  /// `Engine.queueAdd`.
  mutating func register(_ count: Int) {
    for _ in 0..<count {
      lastSequence += 1
      insert(Item(sequence: lastSequence))
    }
  }

  private mutating func insert(_ item: Item) {
    var at = pending.count
    while at > 0, item.precedes(pending[at - 1]) { at -= 1 }
    pending.insert(item, at: at)
  }

  /// `Engine.arrive`: the app starts and requests everything.
  mutating func arrive() {
    wantsMembership = true
    needsContacts = true
    needsSummary = true
  }

  // MARK: Requests

  /// `Scheduler.next`: returns the most urgent request that may be sent now, and counts it as sent.
  mutating func nextRequest(at nowMS: Int64) -> Purpose? {
    guard let purpose = due(at: nowMS) else { return nil }
    inFlight |= 1 << purpose.rawValue
    switch purpose {
    case .upload: take()
    case .contacts: needsContacts = false
    case .summary: needsSummary = false
    case .refresh, .membership: break
    }
    return purpose
  }

  private func isInFlight(_ purpose: Purpose) -> Bool { inFlight & 1 << purpose.rawValue != 0 }

  private func due(at nowMS: Int64) -> Purpose? {
    if isSignedOut { return nil }
    if tokenEndsMS - nowMS <= marginMS {
      return auth.notBeforeMS <= nowMS && !isInFlight(.refresh) ? .refresh : nil
    }
    if wantsMembership, maySend(.membership, nowMS) { return .membership }
    if isInFlight(.upload) { return nil }
    if !pending.isEmpty, maySend(.upload, nowMS) { return .upload }
    if needsContacts || lastPullMS + Device.pullPeriodMS <= nowMS, maySend(.contacts, nowMS) {
      return .contacts
    }
    if needsSummary, maySend(.summary, nowMS) { return .summary }
    return nil
  }

  private func maySend(_ purpose: Purpose, _ nowMS: Int64) -> Bool {
    !isInFlight(purpose) && data[purpose.rawValue].notBeforeMS <= nowMS
  }

  private var marginMS: Int64 {
    RefreshPolicy.marginMS(
      configuredMS: Device.configuredMarginMS, lifetimeMS: Device.lifetimeMS)
  }

  /// `QueueTable.take`.
  private mutating func take() {
    let most = data[Purpose.upload.rawValue].isProbing ? 1 : UploadSize.most
    var count = 0
    while count < min(most, pending.count), pending[count].cohort == pending[0].cohort {
      count += 1
    }
    sending = Array(pending[..<count])
    pending.removeFirst(count)
  }

  /// `Engine.wakeIn`: the time of the next wake-up; nil: only an answer or the user brings work.
  func nextWakeMS(after nowMS: Int64) -> Int64? {
    if isSignedOut { return nil }
    var best: Int64?
    func consider(_ at: Int64) { if at > nowMS { best = min(best ?? .max, at) } }
    consider(auth.notBeforeMS)
    consider(tokenEndsMS - marginMS)
    consider(lastPullMS + Device.pullPeriodMS)
    for service in data { consider(service.notBeforeMS) }
    return best
  }

  // MARK: Answers

  /// `Engine.handle`. `newToken` is the position in the chain of the token in a refresh's answer.
  mutating func complete(
    _ purpose: Purpose, _ outcome: Outcome, newToken: Int, floorMS: Int64, at nowMS: Int64,
    _ pace: Pace, _ random: inout Generator
  ) {
    inFlight &= ~(1 << purpose.rawValue)
    if purpose.isAuth {
      completeRefresh(outcome, newToken, floorMS, nowMS, pace, &random)
      return
    }
    let isAnswered = RestClassification.rest(outcome.answer) == .answered
    if isAnswered {
      data[purpose.rawValue].succeed(pauseLeftMS: data[purpose.rawValue].notBeforeMS - nowMS)
    } else {
      Device.fail(&data[purpose.rawValue], floorMS, nowMS, pace, &random)
    }
    switch purpose {
    case .membership: if isAnswered { wantsMembership = false }
    case .upload: settle(isAnswered, pace)
    case .contacts: if isAnswered { lastPullMS = nowMS } else { needsContacts = true }
    case .summary: if !isAnswered { needsSummary = true }
    case .refresh: break
    }
  }

  /// `Engine.refreshed`.
  private mutating func completeRefresh(
    _ outcome: Outcome, _ newToken: Int, _ floorMS: Int64, _ nowMS: Int64, _ pace: Pace,
    _ random: inout Generator
  ) {
    switch AuthClassification.refresh(
      newToken < 0
        ? ResponseFacts(status: 400, code: "refresh_token_already_used", isServerJSON: true)
        : outcome.answer)
    {
    case .success:
      if case .library = pace, auth.isProbing { spreadReads(nowMS, &random) }
      auth.succeed(pauseLeftMS: auth.notBeforeMS - nowMS)
      token = newToken
      refreshes += 1
      tokenEndsMS = nowMS + Device.lifetimeMS
    case .transient:
      isAuthAsked = floorMS > 0
      Device.fail(&auth, floorMS, nowMS, pace, &random)
    case .terminal: isSignedOut = true
    }
  }

  /// `ServicePauses.spreadReads`.
  private mutating func spreadReads(_ nowMS: Int64, _ random: inout Generator) {
    for purpose in [Purpose.contacts, .summary] {
      let known = data[purpose.rawValue]
      let until = nowMS + auth.readDelayMS(random: random.next(), isAsked: isAuthAsked)
      if until > known.notBeforeMS {
        data[purpose.rawValue] = ServicePause(attempts: known.attempts, notBeforeMS: until)
      }
    }
  }

  private static func fail(
    _ service: inout ServicePause, _ floorMS: Int64, _ nowMS: Int64, _ pace: Pace,
    _ random: inout Generator
  ) {
    switch pace {
    case .library: _ = service.fail(at: nowMS, random: random.next(), floorMS: floorMS)
    case .fixed(let ms): service = ServicePause(notBeforeMS: nowMS + ms)
    }
  }

  /// `Engine.uploaded`: erases proved items; the others become pending again.
  private mutating func settle(_ isStored: Bool, _ pace: Pace) {
    if isStored {
      needsContacts = true
      needsSummary = true
    } else if case .library = pace {
      retry()
    } else {
      for item in sending { insert(item) }
    }
    sending = []
  }

  /// `Engine.retry`: charges an attempt; suspect items go to the end, in halves.
  private mutating func retry() {
    let isSuspect = sending.contains { $0.attempts >= Device.suspectAfter }
    if isSuspect, sending.count == 1 {
      if sending[0].cohort == lastCohort { lastCohort += 1 }
      sending[0].cohort = lastCohort
    } else if isSuspect {
      for index in sending.indices {
        sending[index].cohort = lastCohort + (index < sending.count / 2 ? 1 : 2)
      }
      lastCohort += 2
    }
    for var item in sending {
      item.attempts += 1
      insert(item)
    }
  }
}
