import Base
import Policy
import Store
import Supabase
import Vault

/// The choice of organisation. The stored choice says where the user works; the server's list of
/// memberships says whether that is allowed.
final class OrgSelection: Part {
  private let presenter: Presenter
  private let decider: Decider

  init(_ shared: Shared, presenter: Presenter, decider: Decider) {
    self.presenter = presenter
    self.decider = decider
    super.init(shared)
  }

  func list(_ request: JSON) throws(Failure) -> JSON {
    _ = try Fields(request, known: [])
    try core.configuration.backend.require(.memberships)
    let isListed = try decider.requireUsable().situation.membership != .unasked
    return [
      "orgs": isListed ? presenter.organisations() : [],
      "freshness": isListed ? (check.isConfirmed ? "confirmed" : "cached") : "none",
      "as_of_ms": isListed ? .int(try sessions.row().membershipsMS) : .null,
    ]
  }

  func select(_ request: JSON) throws(Failure) -> JSON {
    let fields = try Fields(request, known: ["org_id"])
    let id = try fields.uuid("org_id")
    try core.configuration.backend.require(.memberships)
    let (session, present) = try decider.requireUsable()
    guard present.membership != .unasked, let membership = session.membership(in: id) else {
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
    if session.choice != id, try !sessions.choose(id, session) {
      throw Failure(.storageBusy, "another process changed the session meanwhile")
    }
    // Use asks for no proof, and the choice is shown before the server has confirmed it.
    var situation = try decider.assess(.navigate).situation
    situation.occasion = .foreground
    var decision = SessionPolicy.decide(situation)
    if decision.screen == .home { decision.reason = reason }
    try decider.show(decision)
    return [:]
  }

  /// Whether the role may open a screen; else the screen to show instead.
  func checkRoute(_ request: JSON) throws(Failure) -> JSON {
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
