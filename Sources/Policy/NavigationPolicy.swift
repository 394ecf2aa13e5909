/// Where a user with an open session goes: the choice of organisation is data, the guard is proof.
enum NavigationPolicy {
  /// The place for a session that is open; `arrival` is the reason given with the home screen.
  static func place(_ s: Situation, as arrival: Reason) -> Decision {
    var decision = screen(s, as: arrival)
    decision.offline = s.network == .offline
    decision.stale = s.membership != .unasked && isStale(s)
    decision.needsValidation = s.freshness != .confirmed || s.token == .expired
    decision.needsMembershipCheck = needsMembershipCheck(s)
    return decision
  }

  private static func screen(_ s: Situation, as arrival: Reason) -> Decision {
    switch s.membership {
    case .unasked:
      return Decision(.wait, isUnanswered(s) ? .serverUnreachable : .guardPending)
    case .noneAtAll: return Decision(.selectOrg, .noMembership)
    case .unchosen: return Decision(.selectOrg, .firstChoice)
    case .revoked: return Decision(.selectOrg, .membershipRevoked)
    case .disabled: return Decision(.selectOrg, .orgDisabled)
    case .unknownRole: return Decision(.selectOrg, .roleUnknown)
    case .single:
      if refreshesFirst(s, arrival) { return Decision(.wait, .guardPending) }
      return Decision(.home, .chosen, chooseOnly: true)
    case .active:
      if refreshesFirst(s, arrival) || awaitsMembershipCheck(s) {
        return Decision(.wait, .guardPending)
      }
      return Decision(.home, arrival)
    }
  }

  /// A navigation waits for a guard that is in flight (ORG-7); a start does not (RES-1), and nobody
  /// waits for an answer that cannot come.
  private static func awaitsMembershipCheck(_ s: Situation) -> Bool {
    s.occasion == .navigate && s.freshness == .pending && s.network == .online
  }

  /// An unlock of an expired session, online, shows the home screen after the refresh (RES-3), or
  /// when the guard's time-out has made the server unreachable.
  private static func refreshesFirst(_ s: Situation, _ arrival: Reason) -> Bool {
    guard arrival == .unlocked && s.token == .expired && s.network == .online else { return false }
    switch s.freshness {
    case .cached, .pending: return true
    case .confirmed, .unreachable: return false
    }
  }

  /// No answer of the server's can be hoped for now.
  private static func isUnanswered(_ s: Situation) -> Bool {
    s.network == .offline || s.freshness == .unreachable
  }

  /// What is shown rests on an older answer, and no newer one is under way (ORG-3). Online, a guard
  /// that is about to be asked or in flight does not make the data stale yet.
  private static func isStale(_ s: Situation) -> Bool {
    s.freshness != .confirmed && isUnanswered(s)
  }

  /// Ask once per process; a guard that failed is asked again by the engine's back-off.
  private static func needsMembershipCheck(_ s: Situation) -> Bool {
    guard s.network == .online else { return false }
    switch s.freshness {
    case .cached: return true
    case .confirmed: return s.membership == .unasked
    case .pending, .unreachable: return false
    }
  }
}
