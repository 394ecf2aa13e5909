import Base
import Policy
import Store
import Supabase
import TestSupport
import Testing

@testable import Engine

@Suite struct ItemReportTests {
  private func codes(_ rig: Rig) throws -> [String] {
    (try rig.report.explain([:])["reasons"]?.elements ?? []).compactMap { $0.string("code") }
  }

  // MARK: Why is nothing sent?

  /// What keeps a pending item, and the reason that is told.
  @Test(arguments: [
    ("nothing", "ready"), ("offline", "offline"), ("a lock that is due", "locked"),
    ("a refused token", "token"), ("a failure", "back_off"), ("the server", "server_pause"),
    ("no keys", "signed_out"),
  ])
  func aPendingItemIsExplained(_ what: String, _ expected: String) throws {
    // Given
    let rig = try Rig.atHome()
    try rig.add(id(1))
    // When
    switch what {
    case "offline": _ = rig.reachability.setOnline(false)
    case "a lock that is due":
      let now = rig.now
      try rig.sessions.patch { (row) throws(Failure) in
        row.backgroundWallMS = now.wallMS
        row.backgroundMonotonicMS = now.monotonicMS
        row.backgroundBoot = now.bootID
      }
      rig.advance(1_000_000)
    case "a refused token": rig.tokens.refuse()
    case "a failure": try rig.pauses.backOff(.upload, try response(503), rig.now)
    case "the server":
      try rig.pauses.backOff(
        .upload, try response(503, #"{"code":"PGRST001"}"#, retryAfter: "600"), rig.now)
    case "no keys":
      rig.core.keyRing.forget()
      rig.keyStore.refusal = .locked
    default: break
    }
    // Then
    try expect(codes(rig), equals: [expected])
  }
}
