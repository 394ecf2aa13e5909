/// Decides which screen an open session leads to, and so, which organisation is shown.
///
/// The stored choice is a wish; the memberships of the server decide (`Configuration.state(of:)`). The chosen organisation
/// is shown if the server lists the membership and the organisation as active, and the configuration has routes for the
/// role. A single one that the server lists so is chosen, if its role has routes. Otherwise its user chooses (`select_org`,
/// with the reason). Without a list that the server has confirmed within `offline_limit_s`, `wait` is shown.
/// `OrgSelection.select` stores the choice; of all sign-ins only the same user's over an open session keeps it
/// (`SessionStart`).
enum NavigationPolicy {
  /// The decision for an open session. `isUnlocked`: the prompt has just opened it.
  static func place(_ s: Situation, isUnlocked: Bool = false) -> Decision {
    var decision = screen(s, isUnlocked)
    decision.offline = s.network == .offline
    decision.stale = s.membership != .unasked && isStale(s)
    return decision
  }

  private static func screen(_ s: Situation, _ isUnlocked: Bool) -> Decision {
    if let obstacle = s.membership.obstacle { return Decision(.selectOrg, obstacle) }
    if s.membership == .unasked {
      return Decision(.wait, isUnanswered(s) ? .serverUnreachable : .guardPending)
    }
    let isChosen = s.membership == .active
    if isUnlocked && refreshesFirst(s) || isChosen && awaitsMembershipCheck(s) {
      return Decision(.wait, .guardPending)
    }
    return Decision(.home, chooseOnly: !isChosen)
  }

  /// A navigation waits for a membership check that is in flight (ORG-7). A start does not wait
  /// (RES-1), nor does anything while offline.
  private static func awaitsMembershipCheck(_ s: Situation) -> Bool {
    s.occasion == .navigate && s.freshness == .pending && s.network == .online
  }

  /// An unlock with an expired access token, online, shows the home screen only after the refresh
  /// (RES-3), or once the membership check has timed out.
  private static func refreshesFirst(_ s: Situation) -> Bool {
    guard s.token == .expired && s.network == .online else { return false }
    switch s.freshness {
    case .cached, .pending: return true
    case .confirmed, .unreachable: return false
    }
  }

  /// No answer of the server can be expected now.
  private static func isUnanswered(_ s: Situation) -> Bool {
    s.network == .offline || s.freshness == .unreachable
  }

  /// The data is based on an older answer and no newer one is under way (ORG-3). Online, data is
  /// not stale while a membership check is due or in flight.
  private static func isStale(_ s: Situation) -> Bool {
    s.freshness != .confirmed && isUnanswered(s)
  }
}
