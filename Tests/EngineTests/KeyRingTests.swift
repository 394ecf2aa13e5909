import Base
import Policy
import TestSupport
import Testing

@testable import Engine

@Suite struct KeyRingTests {
  @Test func aDamagedDeviceKeyIsLostAfterTheDeadline() throws {
    // Given a key that the store can no longer read, perhaps while it is being restored
    let rig = try Rig.atHome()
    func state() throws -> Situation.Keys {
      rig.core.keyRing.forget()
      return try rig.core.keyRing.state(for: rig.core.database)
    }
    rig.keyStore.refusal = .damaged
    try expect(state(), equals: .failed)
    // When, then
    rig.advance(2499)
    try expect(state(), equals: .failed)
    rig.advance(1)
    try expect(state(), equals: .lost)
    // And a key that came back begins anew
    rig.keyStore.refusal = nil
    try expect(state(), equals: .ready)
    rig.keyStore.refusal = .damaged
    try expect(state(), equals: .failed)
  }
}
