import Base
import Policy
import Store
import Supabase
import TestSupport
import Testing

@testable import Engine

@Suite struct PresenterTests {
  @Test func homeNamesRouteOrganisationAndRole() throws {
    // Given
    let rig = try Rig.atHome()
    // When
    let json = try rig.presenter.render(Decision(.home, .active))
    // Then
    expect(json.string("screen"), equals: "home")
    expect(json.string("reason"), equals: "active")
    expect(json.string("route"), equals: "/coordinator")
    expect(json["org"]?.uuid("id"), equals: orgA)
    expect(json["org"]?.string("name"), equals: "Org")
    expect(json["org"]?.string("role"), equals: "coordinator")
    expect(json["methods"]?.count, equals: 0)
    expect(json["orgs"]?.count, equals: 0)
    expect(json["banners"]?.count, equals: 0)
    expect(json["deadline_ms"]?.isNull, equals: true)
  }

  @Test(arguments: [Screen.unlock, .signIn, .selectOrg, .wait])
  func otherScreensNameNoOrganisation(_ screen: Screen) throws {
    let rig = try Rig.atHome()
    let json = try rig.presenter.render(Decision(screen, .userLocked))
    expect(json["org"]?.isNull, equals: true)
    expect(json["route"]?.isNull, equals: true)
  }

  @Test func theSignInOffersTheMethods() throws {
    let rig = try Rig()
    let json = try rig.presenter.render(Decision(.signIn, .sessionMissing))
    let methods = json["methods"]?.elements ?? []
    expect(methods.map { $0.string("id") }, equals: ["password"])
    expect(methods.first?.string("label"), equals: "password")
    expect(methods.first?.string("flow"), equals: "password")
  }

  @Test func theChoiceOffersAllOrganisationsWithTheirStatus() throws {
    // Given
    let rig = try Rig.atHome()
    let orgC = UUID(high: 0xCCCC_0000_0000_4000, low: 0x8000_0000_0000_0003)
    try rig.list(
      member(orgA), member(orgB, status: "ended"), member(orgC, orgStatus: "closed"))
    // When
    let json = try rig.presenter.render(Decision(.selectOrg, .firstChoice))
    // Then
    let orgs = json["orgs"]?.elements ?? []
    expect(orgs.map { $0.uuid("org_id") }, equals: [orgA, orgB, orgC])
    expect(orgs.map { $0.string("status") }, equals: ["active", "revoked", "disabled"])
    expect(orgs.map { $0.bool("current") }, equals: [true, false, false])
  }

  @Test func aMessageHasTheReasonAsItsCodeAndNamesTheOrganisation() throws {
    let rig = try Rig.atHome()
    let json = try rig.presenter.render(Decision(.selectOrg, .orgDisabled))
    expect(json["message"]?.string("code"), equals: "org_disabled")
    expect(json["message"]?.string("text")?.contains("Org"), equals: true)
    // And a silent reason has none
    try expect(rig.presenter.render(Decision(.home, .active))["message"]?.isNull, equals: true)
  }

  @Test func aWaitTellsUntilWhenByTheDevicesClock() throws {
    // Given a check that was asked a second ago, and a clock that has jumped
    let rig = try Rig()
    rig.check.ask(.discardingAnswer, rig.now)
    rig.advance(1000, wallMS: 500_000)
    // When, then
    let decision = Decision(.wait, .guardPending)
    try expect(rig.presenter.render(decision).int("deadline_ms"), equals: rig.now.wallMS + 1500)
    rig.advance(5000)
    try expect(rig.presenter.render(decision).int("deadline_ms"), equals: rig.now.wallMS)
  }

  @Test func aSignInUnderWayHasItsOwnDeadline() throws {
    let rig = try Rig()
    rig.pendingSignIn.begin(
      PendingSignIn(
        .password(email: "a", password: "b"), over: try rig.sessions.row(),
        deadlineMS: rig.now.monotonicMS + 7000))
    let json = try rig.presenter.render(Decision(.wait, .signingIn))
    expect(json.int("deadline_ms"), equals: rig.now.wallMS + 7000)
  }

  @Test func aDecisionsBannersTellTheAgeOfTheMemberships() throws {
    // Given memberships that were listed a second ago
    let rig = try Rig.atHome()
    let listedMS = rig.now.wallMS
    rig.advance(1000)
    // When
    var decision = Decision(.home, .active)
    decision.offline = true
    decision.stale = true
    let banners = try rig.presenter.render(decision)["banners"]?.elements ?? []
    // Then
    expect(banners.map { $0.string("code") }, equals: ["offline", "stale_data"])
    expect(banners.map { $0.string("tone") }, equals: ["info", "warning"])
    expect(banners.map { $0.int("as_of_ms") }, equals: [listedMS, listedMS])
    expect(banners.allSatisfy { $0.string("text")?.isEmpty == false })
  }

  /// Whether there is a network, the last read failed, the data's age in hours (nil: none), and the
  /// banners. The age is told by `offline` and `stale_data` alone.
  @Test(arguments: [
    (true, false, 1, []), (false, false, 1, ["offline 1"]), (true, true, 1, ["stale_data 1"]),
    (true, false, 25, ["stale_data 25"]), (true, false, nil as Int64?, ["nothing_cached_yet"]),
  ])
  func dataTellsHowFarItCanBeTrusted(
    _ isOnline: Bool, _ isFailing: Bool, _ ageHours: Int64?, _ expected: [String]
  ) throws {
    // Given
    let rig = try Rig()
    _ = rig.reachability.setOnline(isOnline)
    if isFailing { rig.reachability.noteFailure() }
    let asOfMS = ageHours.map { rig.now.wallMS - $0 * 3_600_000 }
    // When
    let json = try rig.presenter.banners(rig.presenter.dataBanners(asOfMS: asOfMS), asOfMS: asOfMS)
    // Then
    let found = json.elements.map { banner in
      let age = banner.int("as_of_ms").map { " \((rig.now.wallMS - $0) / 3_600_000)" } ?? ""
      return (banner.string("code") ?? "") + age
    }
    expect(found, equals: expected)
  }
}
