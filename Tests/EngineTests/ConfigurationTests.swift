import Base
import TestSupport
import Testing

@testable import Engine

@Suite struct ConfigurationTests {
  private func read(_ members: String) throws(Failure) -> Configuration {
    try Configuration(
      try json(
        #"{"data_dir":"/d","redirect_url":"com.example.app:/in","#
          + #""backend":{"url":"https://x.supabase.co","api_key":"key"},\#(members)}"#))
  }

  /// The code and the field of the refusal; nil when the members are accepted.
  private func refusal(_ members: String) -> String? {
    do throws(Failure) {
      _ = try read(members)
      return nil
    } catch { return "\(error.code.rawValue) \(error.field ?? "-")" }
  }

  // MARK: Limits

  /// Each number of `policy`, with its smallest and its largest value.
  @Test(arguments: [
    ("session_window_s", Int64(0), Int64(315_360_000)),
    ("background_timeout_s", 0, 315_360_000), ("offline_limit_s", 0, 315_360_000),
    ("guard_timeout_ms", 0, 60_000), ("refresh_margin_s", 0, 86_400),
    ("pull_interval_s", 10, 31_536_000), ("reconcile_interval_s", 10, 31_536_000),
    ("stored_items", 0, 1_000_000), ("stored_items_s", 0, 315_360_000),
  ])
  func aNumberOfThePolicyHasTwoEnds(_ name: String, _ least: Int64, _ most: Int64) {
    func refused(_ value: Int64) -> String? { refusal(#""policy":{"\#(name)":\#(value)}"#) }
    expect(refused(least), equals: nil)
    expect(refused(most), equals: nil)
    expect(refused(least - 1), equals: "request.invalid_value /policy/\(name)")
    expect(refused(most + 1), equals: "request.invalid_value /policy/\(name)")
  }

  @Test func secondsBecomeMilliseconds() throws {
    let limits = try read(
      #""policy":{"session_window_s":11,"background_timeout_s":12,"offline_limit_s":13,"#
        + #""guard_timeout_ms":14,"refresh_margin_s":15,"pull_interval_s":16,"#
        + #""reconcile_interval_s":17,"stored_items":18,"stored_items_s":19}"#
    ).limits
    expect(limits.sessionWindowMS, equals: 11_000)
    expect(limits.backgroundTimeoutMS, equals: 12_000)
    expect(limits.offlineLimitMS, equals: 13_000)
    expect(limits.guardTimeoutMS, equals: 14)
    expect(limits.refreshMarginMS, equals: 15_000)
    expect(limits.pullIntervalMS, equals: 16_000)
    expect(limits.reconcileIntervalMS, equals: 17_000)
    expect(limits.storedItems, equals: 18)
    expect(limits.storedItemsMS, equals: 19_000)
  }

  // MARK: The key store

  /// Whether the host passes a key store, what the configuration says, and the refusal.
  @Test(arguments: [
    (true, "", nil as String?), (false, "", "request.missing_field /keystore"),
    (true, #""keystore":{"kind":"file"}"#, "request.invalid_value /keystore/kind"),
    (false, #""keystore":{"kind":"file"}"#, "request.invalid_value /policy/biometric"),
    (false, #""keystore":{"kind":"file"},"policy":{"biometric":"preferred"}"#, nil),
    (false, #""keystore":{"kind":"file"},"policy":{"biometric":"off"}"#, nil),
    (false, #""development":true"#, nil),
    (true, #""development":true"#, "request.invalid_value /keystore/kind"),
    (false, #""development":false"#, "request.missing_field /keystore"),
    (
      false, #""development":true,"policy":{"biometric":"required"}"#,
      "request.invalid_value /policy/biometric"
    ),
  ])
  func aKeyStoreIsChosenOnce(_ isPassed: Bool, _ members: String, _ expected: String?) throws {
    let configuration = try read(members.isEmpty ? #""locale":"en""# : members)
    var found: String?
    do throws(Failure) { try configuration.check(hasKeyStore: isPassed) } catch {
      found = "\(error.code.rawValue) \(error.field ?? "-")"
    }
    expect(found, equals: expected)
  }

  // MARK: Routes

  @Test func routesNameAtLeastOneRole() throws {
    for routes in ["[]", #""/home""#, "7"] {
      expect(refusal(#""routes":\#(routes)"#), equals: "request.wrong_type /routes")
    }
    expect(refusal(#""routes":{}"#), equals: "request.invalid_value /routes")
    let one = try read(#""template":"volunteers","routes":{"guest":{"home":"/guest"}}"#)
    expect(one.routes(for: "guest")?.home, equals: "/guest")
    expect(one.routes(for: "peer_mentor") == nil)
  }

  @Test func withoutRoutesEveryRoleBeginsAtTheRootAndTheTemplateHasItsOwn() throws {
    let own = try read(#""locale":"en""#)
    expect(own.routes(for: "any")?.home, equals: "/")
    expect(own.routes(for: "any")?.screens, equals: ["*"])
    let template = try read(#""template":"volunteers""#)
    expect(template.routes(for: "peer_mentor")?.home, equals: "/mentor")
    expect(template.routes(for: "any") == nil)
    expect(refusal(#""template":"shop""#), equals: "request.invalid_value /template")
  }

  // MARK: The manual clock

  @Test func aManualClockTakesEveryTimeThatJSONCanHold() throws {
    let rig = try Rig()
    let most = Fields.safe.upperBound
    for field in ["now_ms", "monotonic_ms"] as [StaticCString] {
      for value in [Int64(-1), most + 1] {
        let request: JSON = ["now_ms": 5]
        request.set(field, .int(value))
        let code = try EngineTests.refusal { try rig.core.setClock(request) }
        expect(code, equals: .requestInvalidValue)
      }
      for value in [0, most] {
        let request: JSON = ["now_ms": 5]
        request.set(field, .int(value))
        _ = try rig.core.setClock(request)
        let now = rig.now
        expect(field.string == "now_ms" ? now.wallMS : now.monotonicMS, equals: value)
      }
    }
  }

  @Test func withoutAMonotonicTimeThatClockGoesOnWithTheDevices() throws {
    let rig = try Rig()
    let before = rig.now
    _ = try rig.core.setClock(["now_ms": .int(before.wallMS + 700)])
    expect(rig.now.monotonicMS, equals: before.monotonicMS + 700)
    // It never goes back.
    _ = try rig.core.setClock(["now_ms": .int(before.wallMS - 5000)])
    expect(rig.now.monotonicMS, equals: before.monotonicMS + 700)
    expect(rig.now.wallMS, equals: before.wallMS - 5000)
  }
}
