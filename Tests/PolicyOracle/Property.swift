import Policy

/// Properties that every cell must have, independent of single rules.
public enum Property: String, CaseIterable, Sendable {
  /// Data is shown only when it can be read: with the key store, the record and the biometric key.
  case nothingIsShownUnread = "data is shown only where it can be read"
  /// Nothing is cleared, set aside, locked or chosen without a cause.
  case nothingWithoutCause = "nothing is cleared, locked or chosen without a cause"
  /// The message `session_ended` needs a proof of the server, `offline_limit` the absolute limit.
  case endsOnlyOnProof = "a session ends only on proof"
  /// A wait has something to wait for. Offline, cached data is shown without a wait.
  case everyWaitEnds = "every wait ends"
  /// Banners belong to an open session. `offline` follows the network; confirmed data is not stale.
  case bannersOfOpenSessions = "banners belong to open sessions"

  /// Whether the property holds.
  public func holds(_ s: Situation, _ decision: Decision) -> Bool {
    switch self {
    case .nothingIsShownUnread:
      guard decision.screen == .home || decision.screen == .selectOrg else { return true }
      let released = s.occasion == .unlock && s.outcome == .success && s.presence == .available
      return s.keys == .ready && (s.record == .open || s.record == .sealed && released)
    case .nothingWithoutCause:
      let isClosed = decision.screen == .unlock || decision.screen == .signIn
      return decision.forget == (s.keys == .ready && s.record == .corrupt)
        && decision.chooseOnly == (decision.screen == .home && s.membership == .single)
        && (!decision.canUnlock
          || decision.screen == .signIn && s.occasion == .unlock && s.presence == .available)
        && (!decision.lock || s.record == .open && s.presence == .available && isClosed)
    case .endsOnlyOnProof:
      return (decision.message != .sessionEnded || s.record == .ended)
        && (decision.message != .offlineLimit || s.window == .pastLimit)
    case .everyWaitEnds:
      guard decision.screen == .wait else { return true }
      switch decision.message {
      case .keystoreLocked, .keystoreFailed: return s.keys != .ready
      case .serverUnreachable: return s.membership == .unasked
      case .guardPending:
        return s.network == .online && expectsAnswer(s)
      default: return false
      }
    case .bannersOfOpenSessions:
      switch decision.screen {
      case .unlock, .signIn:
        return !decision.stale && !decision.offline
      case .home, .selectOrg, .wait:
        return (decision.offline == (s.network == .offline) || s.keys != .ready)
          && !(decision.stale && s.freshness == .confirmed)
      }
    }
  }

  /// Whether a membership check is in flight or still to be made. After a failed one, or one that
  /// timed out, no answer is expected.
  private func expectsAnswer(_ s: Situation) -> Bool {
    switch s.freshness {
    case .pending, .cached: true
    case .confirmed: s.membership == .unasked
    case .unreachable: false
    }
  }
}
