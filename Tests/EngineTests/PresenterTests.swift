import Base
import Policy
import Store
import Supabase
import TestSupport
import Testing

@testable import Engine

@Suite struct PresenterTests {
  @Test(arguments: [Screen.unlock, .signIn, .selectOrg, .wait])
  func otherScreensNameNoOrganisation(_ screen: Screen) throws {
    let rig = try Rig.atHome()
    let json = try rig.presenter.render(Decision(screen, .userLocked))
    expect(json["org"]?.isNull, equals: true)
    expect(json["route"]?.isNull, equals: true)
  }

  @Test func aDecisionsBannersTellTheAgeOfTheMemberships() throws {
    // Given memberships that were listed a second ago
    let rig = try Rig.atHome()
    let listedMS = rig.now.wallMS
    rig.advance(1000)
    // When
    var decision = Decision(.home)
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
