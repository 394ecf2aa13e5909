import Base
import Policy
import Store
import Supabase
import TestSupport
import Testing

@testable import Engine

@Suite struct AppLifecycleTests {
  private func owed(_ rig: Rig) throws -> [String] {
    try rig.lifecycle.status([:])["owed"]?.elements.compactMap { $0.string } ?? []
  }

  @Test func theStatusNamesWhatIsOwed() throws {
    // Given
    let rig = try Rig.atHome()
    rig.tokens.confirm(rig.now)
    try expect(owed(rig).isEmpty)
    // When, then
    rig.tokens.requireValidation()
    try expect(owed(rig), equals: ["validation"])
    rig.check.ask(.keepingAnswer, rig.now)
    try expect(owed(rig), equals: ["validation", "guard"])
    try rig.revocations.add(try rig.session, expiresMS: 0)
    try rig.sessions.keys.erasures.owe(.biometric)
    rig.tokens.refuse()
    try expect(owed(rig), equals: ["refresh", "validation", "guard", "revoke", "erase"])
  }
}
