/// What becomes of the items of a request.
public enum UploadVerdict: Equatable, Sendable {
  /// They are erased: the server has named them, or has no row any more that they are to delete.
  case stored
  /// The server is asked which of them it has.
  case readBack(UploadSituation.Cause)
  /// The server is asked again, in another way, for the same cause.
  case ask(UploadSituation.Request)
  /// They are sent again at once. Charged: with an attempt, because the server may have stored them.
  case again(charged: Bool)
  case wait(UploadWait, charged: Bool)
  /// One of them is at fault: halves are sent until it is alone.
  case search(charged: Bool)
  /// They are sent again in two halves.
  case halve(charged: Bool)
  /// The user decides; the message tells why.
  case park(MessageCode)
}

extension UploadVerdict {
  /// Its items wait with all others.
  public var awaitsService: Bool { if case .wait(.service, _) = self { true } else { false } }

  /// An item is found to be at fault, or will be.
  public var isSearch: Bool {
    switch self {
    case .wait(.itself, _), .search: true
    default: false
    }
  }
}

/// What items wait for.
public enum UploadWait: Equatable, Sendable {
  /// The item that they follow.
  case parent
  /// Their organisation: the memberships are checked.
  case organisation
  /// Each for a time by its own attempts; then they are sent together again.
  case time
  /// The single item for itself: it is sent alone, and nothing waits for it.
  case itself(UploadFailure)
  /// All items of the kind and columns, for a time. Then one item probes.
  case kind
  /// All uploads, for a time. Then one item probes.
  case service
}

/// How an item fails alone.
public enum UploadFailure: CaseIterable, Sendable {
  /// The service fails for it.
  case service
  /// Something on the way answers as it does in an outage.
  case gateway
  /// Something on the way refuses it, or the service refuses to say whether it has it.
  case firewall
}

/// The single function that decides from a response what becomes of the items of a request: when uploads
/// pause, and how a bad item is isolated. `docs/uploads.md` is generated from it.
///
/// Two ideas:
///
/// - **Whose fault is a failure that blames nobody?** If others get through meanwhile, it is an item's:
///   the batch is halved until the item is alone. That one waits for itself, and delays nobody. Otherwise
///   all wait that the failure may be of, and one item probes, each time another one. So an outage costs
///   one request for each pause.
/// - **Is the way open,** that is, do requests reach the service? A firewall refuses one item, a captive portal
///   refuses all in the same words. So the service is asked whether it has the items. If it answers, then the way
///   is open, and an item is at fault.
///
/// How a bad item is isolated, in short: a refusal for what its user gave parks a single item at once, and a batch is
/// searched (`BlamePolicy`). A refusal for anything else parks a single item that was refused before, if others of its
/// kind were stored since. What blames nobody halves the batch if others get through (`Passage`); else the kind or the
/// service waits. An item that fails alone waits for itself and delays nobody, ever longer, and is parked at last
/// (`ItemPause`). `UploadSettlement+Isolation` carries it out.
public enum UploadPolicy {
  public static func judge(_ s: UploadSituation) -> UploadVerdict {
    s.request == .upload ? judgeUpload(s) : judgeQuestion(s)
  }

  /// Whether all uploads pause after a verdict: after `wait(service)`, and when items are refused on the way and four
  /// uploads have failed in a row (`Passage.manyFail`), because then perhaps all are. (`wait(kind)` and `wait(itself)` pause a
  /// kind or an item alone.) `Backoff` says for how long; the engine's `ServicePauses` keeps it.
  public static func pausesAll(_ verdict: UploadVerdict, _ s: UploadSituation) -> Bool {
    verdict.awaitsService || s.cause.isAboutTheWay && verdict.isSearch && s.manyFail
  }

  /// Whether items have failed for their kind, as far as anybody can tell: the server's schema is a
  /// problem. Where the verdict is a question first, nobody can.
  public static func isOfKind(_ verdict: UploadVerdict, _ s: UploadSituation) -> Bool {
    guard failing(s.request, s.cause, s.answer) == .kind else { return false }
    switch verdict {
    case .wait(.kind, _), .wait(.itself, _): return true
    case .halve: return s.answer != .tooSlow
    default: return false
    }
  }

  // MARK: Uploads

  private static func judgeUpload(_ s: UploadSituation) -> UploadVerdict {
    switch s.answer {
    case .named: .stored
    case .unnamed: readBack(.unnamed, s)
    case .nothing: readBack(.gateway, s)
    case .refusedGiven: s.isSingle ? .park(.rejected) : .search(charged: false)
    case .refusedOther: refusedOther(s)
    // A correction's own row has its id.
    case .takenGiven where s.operation != .insert:
      s.isSingle ? .park(.rejected) : .search(charged: false)
    case .takenOther where s.operation != .insert: refusedOther(s)
    case .takenGiven: s.isSingle ? readBack(.given, s) : .search(charged: false)
    case .takenOther: s.isSingle ? readBack(.taken, s) : refusedOther(s)
    case .parentQueued: .wait(.parent, charged: false)
    case .denied: denied(s)
    case .token: .again(charged: false)
    // Perhaps something on the way answers so to one of these items.
    case .tokenAgain: s.isCurrent ? .readBack(.token) : .again(charged: false)
    case .tooLarge: s.isSingle ? .park(.tooLong) : .halve(charged: false)
    // One small item cannot be too large: the gateway refuses it for something else.
    case .tooLargeForGateway: readBack(.firewall, s)
    case .tooSlow where !s.isSingle: .halve(charged: true)
    case .missingColumn: .park(.missingColumn)
    case .tooSlow, .schema, .service, .gateway: failed(s)
    case .undecided: undecided(s)
    case .firewall: readBack(.firewall, s)
    // Only a question is answered so.
    case .unchanged, .free, .changed, .deleted: readBack(.unnamed, s)
    }
  }

  /// Ask which of the items the server has. Another user's session may not ask.
  private static func readBack(
    _ cause: UploadSituation.Cause, _ s: UploadSituation
  ) -> UploadVerdict {
    s.isCurrent ? .readBack(cause) : .again(charged: true)
  }

  /// A refusal for what no user gave is the single item's only if another one got through since the one
  /// before.
  private static func refusedOther(_ s: UploadSituation) -> UploadVerdict {
    s.isSingle && s.history != .none && s.othersSince ? .park(.rejected) : failed(s)
  }

  /// The first time the memberships are checked. If the membership is confirmed, the row is refused.
  private static func denied(_ s: UploadSituation) -> UploadVerdict {
    // The session has changed since; its refusal says nothing about these items.
    if !s.isCurrent { return .again(charged: false) }
    if !isMemberAfterAll(s) { return .wait(.organisation, charged: false) }
    if s.operation == .insert { return refusedOther(s) }
    // Perhaps the user may change the other rows.
    return s.isSingle ? .park(.notAllowed) : .search(charged: false)
  }

  private static func isMemberAfterAll(_ s: UploadSituation) -> Bool {
    s.membership == .notNeeded || s.membership == .confirmed && s.history != .none
  }

  private static func isAlone(_ s: UploadSituation) -> Bool {
    s.history == .alone || s.history == .last
  }

  // MARK: Failures that blame nobody

  private static func failed(_ s: UploadSituation) -> UploadVerdict {
    let isOfKind = s.answer.failing == .kind
    if isItems(s) {
      if s.answer == .gateway { return s.isCurrent ? .readBack(.gateway) : wait(s) }
      return s.isSingle ? .wait(.itself(.service), charged: true) : .halve(charged: true)
    }
    // No item like it is queued, so it can wait alone, and longer than a kind does.
    if isOfKind, !s.asksForPause, s.isSingle, s.attempts == .many, !s.othersQueued {
      return .wait(.itself(.service), charged: true)
    }
    return isOfKind ? .wait(.kind, charged: true) : wait(s)
  }

  /// Whether the failure is one item's: it failed alone before, or others get through.
  private static func isItems(_ s: UploadSituation) -> Bool {
    if s.asksForPause { return false }
    if s.isSingle, isAlone(s) { return true }
    return s.othersWork && (s.answer.failing == .kind || s.attempts != .few)
  }

  /// A request that is refused for its token has stored nothing, so it is not charged.
  private static func wait(_ s: UploadSituation) -> UploadVerdict {
    .wait(.service, charged: s.cause != .token)
  }

  /// The first two failures may pass.
  private static func undecided(_ s: UploadSituation) -> UploadVerdict {
    let isFirst = s.attempts == .few && !isAlone(s)
    return .wait(isFirst ? .time : .itself(.service), charged: true)
  }

  /// Who may be failing, if no item is: the kind or all uploads; nil: nobody, or it is counted already.
  public static func failing(
    _ request: UploadSituation.Request, _ cause: UploadSituation.Cause,
    _ answer: UploadSituation.Answer
  ) -> UploadSituation.Answer.Failing? {
    if request == .upload { return answer.failing }
    if cause.isAboutTheWay { return nil }
    if cause == .taken, answer == .unnamed { return .kind }
    return answer.failing == .all ? .all : nil
  }

  // MARK: Questions

  private static func judgeQuestion(_ s: UploadSituation) -> UploadVerdict {
    if s.answer == .named, s.request != .control { return .stored }
    if !s.isCurrent { return .again(charged: true) }
    if s.answer == .token { return .again(charged: s.cause != .token) }
    if s.request == .control {
      let isAnswered = s.answer == .named || s.answer == .unnamed || s.answer.isRefusalByService
      return isAnswered ? isOpen(s) : unanswered(s)
    }
    if s.answer == .unnamed { return absent(s) }
    if let verdict = judgeRow(s) { return verdict }
    // The user may not read every column.
    if s.request == .rows, s.operation == .insert, mayBeOfColumns(s.answer) { return .ask(.ids) }
    if s.answer.isRefusalByService { return s.cause.isAboutTheWay ? isOpen(s) : untold(s) }
    if s.answer == .firewall || s.answer == .tokenAgain, s.mayAskControl { return .ask(.control) }
    return unanswered(s)
  }

  private static func mayBeOfColumns(_ answer: UploadSituation.Answer) -> Bool {
    switch answer {
    case .denied, .schema, .tooLarge, .tooSlow: true
    default: false
    }
  }

  /// The row of a correction is there; nil: the answer does not say so.
  private static func judgeRow(_ s: UploadSituation) -> UploadVerdict? {
    switch s.answer {
    case .changed: return .park(.changedElsewhere)
    case .deleted: return gone(s)
    case .unchanged where !s.cause.isAboutTheWay:
      return isMemberAfterAll(s) ? .park(.notAllowed) : .wait(.organisation, charged: true)
    // A row whose version is never the same would be asked for without end.
    case .free where !s.cause.isAboutTheWay:
      return s.attempts == .many ? .wait(.itself(.service), charged: true) : .again(charged: true)
    case .unchanged, .free: return isOpen(s)
    // The rows lack a column that is kept. (A cancelled item is only asked for by its id.)
    case .schema where s.operation != .insert && s.request == .rows:
      return .wait(.kind, charged: true)
    default: return nil
    }
  }

  private static func gone(_ s: UploadSituation) -> UploadVerdict {
    s.operation == .deletion ? .stored : .park(.deletedElsewhere)
  }

  /// The server does not have the items, or does not show them.
  private static func absent(_ s: UploadSituation) -> UploadVerdict {
    if s.operation == .insert {
      if s.cause.isAboutTheWay { return isOpen(s) }
      if s.cause == .taken {
        var refused = s
        refused.answer = .takenOther
        return refusedOther(refused)
      }
    }
    // A membership that has ended hides the user's own rows as well.
    if !isMemberAfterAll(s) { return .wait(.organisation, charged: true) }
    // A replica may not have the row yet, and a policy that is replaced may hide it for a while. So the row has to
    // stay away for minutes, unless the upload itself was refused.
    if s.cause != .given, s.attempts != .many { return .wait(.time, charged: true) }
    // The key of an insert is another row's then.
    return s.operation == .insert ? .park(.conflict) : gone(s)
  }

  /// The way is open: what was refused are these items.
  private static func isOpen(_ s: UploadSituation) -> UploadVerdict {
    if s.cause == .longAgo { return .again(charged: true) }
    guard s.isSingle else {
      // That nothing shows them now does not prove that nothing is stored: the request may be under way.
      return s.cause.isAboutTheWay ? .search(charged: true) : .halve(charged: true)
    }
    return alone(s, s.cause == .gateway ? .gateway : .firewall)
  }

  /// The service refuses to say which of the items it has. At first that may pass.
  private static func untold(_ s: UploadSituation) -> UploadVerdict {
    let isFirst = s.attempts == .few && !isAlone(s)
    return isFirst ? .wait(.time, charged: true) : alone(s, .firewall)
  }

  /// Nothing tells whether the way is open.
  private static func unanswered(_ s: UploadSituation) -> UploadVerdict {
    let isItems = isItems(s) && (s.answer != .tokenAgain || !s.cause.isAboutTheWay)
    guard isItems else { return wait(s) }
    guard s.isSingle else { return .halve(charged: true) }
    // It may be an outage, which parks nothing.
    return s.cause.isAboutTheWay ? .wait(.itself(.gateway), charged: true) : alone(s, .gateway)
  }

  /// The single item waits for itself; at last it is parked.
  private static func alone(_ s: UploadSituation, _ failure: UploadFailure) -> UploadVerdict {
    // An answer that an outage gives, too, counts only if others were stored since.
    guard s.history == .last, failure == .firewall || s.othersSince else {
      return .wait(.itself(failure), charged: true)
    }
    if !s.cause.isAboutTheWay { return .park(.unknownOutcome) }
    return s.membership == .unconfirmed ? .wait(.organisation, charged: true) : .park(.blocked)
  }
}
