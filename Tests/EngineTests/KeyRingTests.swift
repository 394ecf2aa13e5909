import Base
import Policy
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
    #expect(try state() == .failed)
    // When, then
    rig.advance(2499)
    #expect(try state() == .failed)
    rig.advance(1)
    #expect(try state() == .lost)
    // And a key that came back begins anew
    rig.keyStore.refusal = nil
    #expect(try state() == .ready)
    rig.keyStore.refusal = .damaged
    #expect(try state() == .failed)
  }
}
