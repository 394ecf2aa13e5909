import Base
import Policy
import Store
import Supabase
import Vault

extension Situation.Membership {
  /// Throw the failure with which a call answers that needs an organisation to work in.
  func require(_ field: String? = nil) throws(Failure) {
    switch self {
    case .active: return
    case .unasked:
      throw Failure(.orgNone, "the server has not confirmed the memberships for too long")
    case .noneAtAll, .unchosen, .single: throw Failure(.orgNone, "no organisation is chosen")
    case .revoked: throw Failure(.orgRevoked, "the membership has ended", field: field)
    case .disabled: throw Failure(.orgDisabled, "the organisation is disabled", field: field)
    case .unknownRole:
      throw Failure(.orgUnknownRole, "the role is not in \"routes\"", field: field)
    }
  }
}

/// The choice of organisation. The stored choice says where the user works; the server's list of
/// memberships says whether that is allowed.
struct OrgSelection: Rules {
  let parts: Parts

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
    try core.configuration.state(of: membership).require("/org_id")
    if session.choice != id, try !sessions.choose(id, session) {
      throw Failure(.storageBusy, "another process changed the session meanwhile")
    }
    // The choice is shown before the server has confirmed it.
    try decider.show(SessionPolicy.decide(try decider.assess(.navigate).asReturn))
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
    decision.message = .routeForbidden
    return ["allow": false, "screen": try presenter.render(decision)]
  }
}
