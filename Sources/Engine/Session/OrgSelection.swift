import Base
import Policy
import Store
import Supabase
import Vault

/// The choice of organisation. The stored choice says where the user works; the server's list of
/// memberships says whether that is allowed.
final class OrgSelection {
  private let core: Core
  private let sessions: SessionStore
  private let check: MembershipCheck
  private let cache: CacheFile
  private let pulls: PullState
  private let presenter: Presenter

  init(
    _ core: Core, _ sessions: SessionStore, check: MembershipCheck, cache: CacheFile,
    pulls: PullState, presenter: Presenter
  ) {
    self.core = core
    self.sessions = sessions
    self.check = check
    self.cache = cache
    self.pulls = pulls
    self.presenter = presenter
  }

  func list(_ request: JSON, _ decider: Decider) throws(Failure) -> JSON {
    _ = try Fields(request, known: [])
    try core.configuration.backend.require(.memberships)
    let isListed = try decider.requireUsable().situation.membership != .unasked
    return [
      "orgs": isListed ? presenter.organisations() : [],
      "freshness": isListed ? (check.isConfirmed ? "confirmed" : "cached") : "none",
      "as_of_ms": isListed ? .int(try sessions.row().membershipsMS) : .null,
    ]
  }

  func select(_ request: JSON, _ decider: Decider) throws(Failure) -> JSON {
    let fields = try Fields(request, known: ["org_id"])
    let id = try fields.uuid("org_id")
    try core.configuration.backend.require(.memberships)
    let (session, situation) = try decider.requireUsable()
    guard situation.membership != .unasked, let membership = session.membership(in: id) else {
      throw Failure(.orgNotAMember, "no membership in this organisation", field: "/org_id")
    }
    guard membership.active else {
      throw Failure(.orgRevoked, "the membership has ended", field: "/org_id")
    }
    guard membership.orgActive else {
      throw Failure(.orgDisabled, "the organisation is disabled", field: "/org_id")
    }
    guard core.configuration.routes(for: membership.role) != nil else {
      throw Failure(.orgUnknownRole, "the role is not in \"routes\"", field: "/org_id")
    }
    let reason: Reason =
      session.choice == nil ? .chosen : session.choice == id ? .active : .switched
    if session.choice != id, try !choose(id, session) {
      throw Failure(.storageBusy, "another process changed the session meanwhile")
    }
    var decision = SessionPolicy.decide(try decider.assess(.foreground).situation)
    if decision.screen == .home { decision.reason = reason }
    try decider.show(decision)
    return [:]
  }

  /// Store the choice and raise the generation in one step: late responses for the previous
  /// organisation change nothing. Returns false when another process changed the session meanwhile.
  func choose(_ id: UUID, _ session: OpenSession) throws(Failure) -> Bool {
    let sealed = try session.vault.seal(
      ["org_id": .uuid(id)], SessionKeys.context("choice", session.owner))
    if core.configuration.limits.eraseOnSwitch, let left = session.choice {
      try cache.erase([CacheNames.org(left, session, try core.keys())])
    }
    let isStored = try sessions.update(ifGeneration: session.generation) {
      (row) throws(Failure) in row.choice = sealed
    }
    guard isStored else { return false }
    sessions.reset(.organisation)
    _ = try sessions.reload(try sessions.row())
    pulls.requirePull()
    return true
  }

  /// Choose the only usable organisation for the user.
  func chooseOnly(_ session: OpenSession) throws(Failure) {
    guard let only = session.memberships?.first(where: { $0.isUsable }) else { return }
    _ = try choose(only.orgID, session)
  }

  /// Whether the role may open a screen; else the screen to show instead.
  func checkRoute(_ request: JSON, _ decider: Decider) throws(Failure) -> JSON {
    let fields = try Fields(request, known: ["route"])
    let route = try fields.string("route", maximum: 2048)
    let situation = try decider.assess(decider.whileOutside(.navigate)).situation
    var decision = SessionPolicy.decide(situation)
    guard decision.screen == .home, decider.canUse(situation),
      let routes = core.configuration.routes(under: sessions.session?.chosen)
    else { return ["allow": false, "screen": try decider.answer(situation)] }
    if RoutePolicy.allows(route, screens: routes.screens, home: routes.home) {
      return ["allow": true]
    }
    decision.reason = .routeForbidden
    return ["allow": false, "screen": try presenter.render(decision)]
  }
}
