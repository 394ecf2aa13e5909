import Policy

/// What becomes of items, written anew from `docs/sync.md`, as one list of rules in the order in which
/// they apply. It shares nothing with `UploadPolicy` but the names.
public enum UploadOracle {
  public static func verdict(_ s: UploadSituation) -> UploadVerdict {
    if s.operation != .insert, let verdict = correction(s) { return verdict }
    if s.request == .upload { return upload(s) }
    return question(s)
  }

  /// What holds for changes and deletions of stored rows alone; nil: they are judged as inserts are.
  private static func correction(_ s: UploadSituation) -> UploadVerdict? {
    // A row that is gone, one that is not shown and one that may not be changed look alike to someone whose
    // membership has ended. So it is confirmed, after a first answer of that kind, before anything is concluded.
    let isMember: Bool
    switch s.membership {
    case .notNeeded: isMember = true
    case .confirmed: isMember = s.history != .none
    case .unconfirmed: isMember = false
    }
    let checked = UploadVerdict.wait(.organisation, charged: s.request != .upload)
    // A row that is to be deleted and is gone is as its user wants it.
    let missing = s.operation == .deletion ? UploadVerdict.stored : .park(.deletedElsewhere)
    switch (s.request, s.answer) {
    // The row's own id is never taken: a key in it is, by another row.
    case (.upload, .takenGiven): return s.isSingle ? .park(.rejected) : .search(charged: false)
    case (.upload, .takenOther): return ofKind(s)
    case (.upload, .denied) where s.isCurrent && isMember:
      return s.isSingle ? .park(.notAllowed) : .search(charged: false)
    case (.upload, _): return nil
    // Another session's rows tell nothing.
    case (_, .named) where s.request != .control: return .stored
    case _ where !s.isCurrent: return .again(charged: true)
    // Of an item that its user took back while it was sent, only the id is asked for.
    case (.rows, .unnamed), (.ids, .unnamed):
      return isMember ? missed(s, missing) : checked
    case (.rows, .deleted): return missing
    case (.rows, .changed): return .park(.changedElsewhere)
    // Something on the way refused the request, and not the service.
    case (.rows, .unchanged) where way.contains(s.cause),
      (.rows, .free) where way.contains(s.cause):
      return open(s)
    case (.rows, .unchanged): return isMember ? .park(.notAllowed) : checked
    case (.rows, .free):
      return s.attempts == .many ? .wait(.itself(.service), charged: true) : .again(charged: true)
    // All rows lack a column that is kept, whatever the question was for.
    case (.rows, .schema): return .wait(.kind, charged: true)
    // There is no other way to ask: the ids alone tell nothing of a correction.
    case (.rows, .denied), (.rows, .tooLarge), (.rows, .tooSlow):
      return refusedQuestion(s)
    default: return nil
    }
  }

  private static let refusals: Set<UploadSituation.Answer> = [
    .refusedGiven, .refusedOther, .takenGiven, .takenOther, .parentQueued, .denied, .tooLarge,
    .tooSlow, .missingColumn, .schema,
  ]
  private static let way: Set<UploadSituation.Cause> = [.gateway, .firewall, .token, .longAgo]

  private static func upload(_ s: UploadSituation) -> UploadVerdict {
    let isMember =
      s.membership == .notNeeded || (s.membership == .confirmed && s.history != .none)
    switch (s.answer, s.isSingle, s.isCurrent) {
    // Proved, or asked about.
    case (.named, _, _): return .stored
    case (.unnamed, _, true): return .readBack(.unnamed)
    case (.takenGiven, true, true): return .readBack(.given)
    case (.takenOther, true, true): return .readBack(.taken)
    case (.nothing, _, true): return .readBack(.gateway)
    case (.firewall, _, true), (.tooLargeForGateway, _, true): return .readBack(.firewall)
    case (.tokenAgain, _, true): return .readBack(.token)
    // Another session may not ask.
    case (.token, _, _), (.tokenAgain, _, false), (.denied, _, false):
      return .again(charged: false)
    case (.unnamed, _, false), (.takenGiven, true, false), (.takenOther, true, false),
      (.nothing, _, false), (.firewall, _, false), (.tooLargeForGateway, _, false):
      return .again(charged: true)
    // One item is at fault, or all are too large.
    case (.refusedGiven, true, _): return .park(.rejected)
    case (.refusedGiven, false, _), (.takenGiven, false, _): return .search(charged: false)
    case (.tooLarge, true, _): return .park(.tooLong)
    case (.tooLarge, false, _): return .halve(charged: false)
    case (.tooSlow, false, _): return .halve(charged: true)
    case (.missingColumn, _, _): return .park(.missingColumn)
    case (.parentQueued, _, _): return .wait(.parent, charged: false)
    case (.denied, _, true) where !isMember: return .wait(.organisation, charged: false)
    case (.undecided, _, _):
      let mayPass = s.attempts == .few && [.none, .refused].contains(s.history)
      return .wait(mayPass ? .time : .itself(.service), charged: true)
    // Nobody is to blame.
    case (.refusedOther, _, _), (.takenOther, _, _), (.denied, _, _), (.schema, _, _),
      (.tooSlow, _, _):
      return ofKind(s)
    case (.service, _, _), (.gateway, _, _): return ofAll(s)
    // Only questions about corrections are answered so.
    case (.unchanged, _, _), (.free, _, _), (.changed, _, _), (.deleted, _, _):
      preconditionFailure("an upload has no such answer")
    }
  }

  /// The failure may be of the kind.
  private static func ofKind(_ s: UploadSituation) -> UploadVerdict {
    let isRefused = s.answer != .schema && s.answer != .tooSlow
    if isRefused, s.isSingle, s.history != .none, s.othersSince { return .park(.rejected) }
    if s.asksForPause { return .wait(.kind, charged: true) }
    let isAlone = s.isSingle && [.alone, .last].contains(s.history)
    let isLongAlone = s.isSingle && s.attempts == .many && !s.othersQueued
    if s.isSingle, isAlone || s.othersWork || isLongAlone {
      return .wait(.itself(.service), charged: true)
    }
    return s.othersWork ? .halve(charged: true) : .wait(.kind, charged: true)
  }

  /// The failure may be of all uploads.
  private static func ofAll(_ s: UploadSituation) -> UploadVerdict {
    let isPause = UploadVerdict.wait(.service, charged: s.cause != .token)
    let isAlone = s.isSingle && [.alone, .last].contains(s.history)
    guard !s.asksForPause, isAlone || s.othersWork && s.attempts != .few else { return isPause }
    if s.answer == .gateway { return s.isCurrent ? .readBack(.gateway) : isPause }
    return s.isSingle ? .wait(.itself(.service), charged: true) : .halve(charged: true)
  }

  private static func question(_ s: UploadSituation) -> UploadVerdict {
    let isOfWay = way.contains(s.cause)
    let isControl = s.request == .control
    let isAlone = s.isSingle && [.alone, .last].contains(s.history)
    switch s.answer {
    case .named where !isControl: return .stored
    case _ where !s.isCurrent: return .again(charged: true)
    case .token: return .again(charged: s.cause != .token)
    // The way is open.
    case .named where isControl, .unnamed where isControl,
      _ where isControl && refusals.contains(s.answer):
      return open(s)
    case .unnamed where isOfWay: return open(s)
    case .unnamed where s.cause == .taken: return ofKind(s)
    case .unnamed:
      let isMember =
        s.membership == .notNeeded || (s.membership == .confirmed && s.history != .none)
      guard isMember else { return .wait(.organisation, charged: true) }
      // An upload that was refused for its key has stored nothing.
      return s.cause == .given ? .park(.conflict) : missed(s, .park(.conflict))
    case .denied where s.request == .rows, .schema where s.request == .rows,
      .tooLarge where s.request == .rows, .tooSlow where s.request == .rows:
      return .ask(.ids)
    case _ where refusals.contains(s.answer): return refusedQuestion(s)
    case .firewall where !isControl && s.mayAskControl,
      .tokenAgain where !isControl && s.mayAskControl:
      return .ask(.control)
    default:
      let isItems =
        !s.asksForPause && (isAlone || s.othersWork && s.attempts != .few)
        && !(isOfWay && s.answer == .tokenAgain)
      if !isItems { return .wait(.service, charged: s.cause != .token) }
      if !s.isSingle { return .halve(charged: true) }
      let isLast = s.history == .last && s.othersSince && !isOfWay
      return isLast ? .park(.unknownOutcome) : .wait(.itself(.gateway), charged: true)
    }
  }

  /// A row is not shown. Replicas and policies hide rows for minutes, so that is believed after many attempts.
  private static func missed(_ s: UploadSituation, _ then: UploadVerdict) -> UploadVerdict {
    s.attempts == .many ? then : .wait(.time, charged: true)
  }

  /// The service refuses to answer.
  private static func refusedQuestion(_ s: UploadSituation) -> UploadVerdict {
    if way.contains(s.cause) { return open(s) }
    if s.attempts == .few, ![.alone, .last].contains(s.history) {
      return .wait(.time, charged: true)
    }
    return s.history == .last ? .park(.unknownOutcome) : .wait(.itself(.firewall), charged: true)
  }

  private static func open(_ s: UploadSituation) -> UploadVerdict {
    let isOfWay = way.contains(s.cause)
    if s.cause == .longAgo { return .again(charged: true) }
    if !s.isSingle { return isOfWay ? .search(charged: true) : .halve(charged: true) }
    let failure: UploadFailure = s.cause == .gateway ? .gateway : .firewall
    if s.history != .last || failure == .gateway && !s.othersSince {
      return .wait(.itself(failure), charged: true)
    }
    if !isOfWay { return .park(.unknownOutcome) }
    return s.membership == .unconfirmed ? .wait(.organisation, charged: true) : .park(.blocked)
  }
}

/// All situations of a request's items: 4,884,480.
public enum UploadProduct {
  public static let count = shapes.count * 4608

  /// What is sent, why, and what is answered. Axes without a meaning are left out: an insert is not compared with
  /// its row; of corrections the rows are asked, never because of a key that is taken, and an upload
  /// of them has no cause. An insert that its user took back is asked for by its id.
  private static let shapes: [UploadSituation] = {
    let compared: Set<UploadSituation.Answer> = [.unchanged, .free, .changed, .deleted]
    var shapes: [UploadSituation] = []
    for operation in UploadSituation.Operation.allCases {
      for request in UploadSituation.Request.allCases {
        for cause in UploadSituation.Cause.allCases {
          for answer in UploadSituation.Answer.allCases {
            let isTakenBack = operation == .deletion && request == .ids && cause == .unnamed
            if operation == .insert || isTakenBack
              ? compared.contains(answer) : isVoid(request, cause, answer)
            {
              continue
            }
            var s = UploadSituation(answer)
            (s.operation, s.request, s.cause) = (operation, request, cause)
            shapes.append(s)
          }
        }
      }
    }
    return shapes

    func isVoid(
      _ request: UploadSituation.Request, _ cause: UploadSituation.Cause,
      _ answer: UploadSituation.Answer
    ) -> Bool {
      request == .ids || cause == .taken || cause == .given
        || request == .upload && cause != .unnamed
        || request != .rows && compared.contains(answer)
    }
  }()

  /// The situation with this number.
  public static func situation(_ number: Int) -> UploadSituation {
    var rest = number
    func next<Value>(_ values: [Value]) -> Value {
      defer { rest /= values.count }
      return values[rest % values.count]
    }
    let flags = [false, true]
    var s = next(shapes)
    s.isCurrent = next(flags)
    s.isSingle = next(flags)
    s.attempts = next(UploadSituation.Attempts.allCases)
    s.history = next(UploadSituation.History.allCases)
    s.membership = next(UploadSituation.Membership.allCases)
    s.asksForPause = next(flags)
    s.othersWork = next(flags)
    s.othersSince = next(flags)
    s.othersQueued = next(flags)
    s.mayAskControl = next(flags)
    return s
  }

  /// Every `step`-th situation where the policy and the oracle differ, or a property does not hold; at
  /// most ten.
  public static func failures(step: Int = 1) -> [String] {
    var found: [String] = []
    for number in stride(from: 0, to: count, by: step) where found.count < 10 {
      let s = situation(number)
      let verdict = UploadPolicy.judge(s)
      let expected = UploadOracle.verdict(s)
      if verdict != expected { found.append("\(s): \(verdict), expected \(expected)") }
      if let broken = broken(s, verdict) { found.append("\(s): \(verdict): \(broken)") }
    }
    return found
  }

  /// The promises that hold whatever the rules are.
  private static func broken(_ s: UploadSituation, _ verdict: UploadVerdict) -> String? {
    switch verdict {
    case .stored where s.answer != .named && s.operation != .deletion:
      return "only a named id is a proof"
    case .stored
    where s.answer == .unnamed && (s.request == .control || s.membership == .unconfirmed),
      .stored where s.answer == .unnamed && s.attempts != .many:
      return "absence is not deletion"
    case .park
    where s.answer == .unnamed && s.cause == .unnamed && s.request != .control
      && s.attempts != .many:
      return "a row that was not shown once may be there"
    case .park(.deletedElsewhere) where s.answer == .unnamed && s.membership == .unconfirmed,
      .park(.notAllowed) where s.membership == .unconfirmed:
      return "a membership that has ended hides rows"
    case .again where s.answer == .unchanged && s.isCurrent && s.cause != .longAgo:
      return "a change that is not allowed is no loop"
    case .again
    where s.answer == .free && s.isCurrent && s.attempts == .many && s.cause != .longAgo:
      return "a row that others change all the time is no loop"
    case .park(.conflict) where s.operation != .insert: return "a correction's own row has its id"
    case .search where s.answer == .free && !s.cause.isAboutTheWay: return "nobody refused it"
    case .readBack where !s.isCurrent, .ask where !s.isCurrent:
      return "another session asks nothing"
    case .ask(.control) where s.request == .control: return "a control is asked once"
    case .search where s.isSingle, .halve where s.isSingle: return "a single item is not halved"
    case .wait(.itself, _)
    where !s.isSingle && s.answer != .undecided && s.answer != .free && !s.answer.isRefusalByService:
      return "only a single item waits for itself"
    case .park(.blocked) where s.history != .last, .park(.unknownOutcome) where s.history != .last:
      return "what is refused on the way is tried often"
    case .park(.blocked)
    where s.answer == .gateway || s.answer == .service || s.answer == .firewall:
      return "an outage parks nothing"
    case .again(charged: false) where s.answer == .gateway || s.answer == .nothing,
      .halve(charged: false) where s.answer != .tooLarge:
      return "what may be stored is charged"
    default: return nil
    }
  }
}
