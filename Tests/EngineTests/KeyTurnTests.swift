import Base
import Testing

@testable import Engine

/// Two handles on a folder; each has its own turn.
@Suite struct KeyTurnTests {
  private let one: Rig
  private let two: Rig

  init() throws {
    // A lease counts only as long as its holder lives, so both are in the boot of this process.
    let now = Clock(.system).now()
    one = try Rig(at: now)
    two = try Rig(folder: one.folder, keyStore: one.keyStore, at: now)
  }

  private func pass(_ milliseconds: Int64) {
    one.advance(milliseconds)
    two.clock.set(one.now)
  }

  private func take(_ rig: Rig) throws -> String {
    switch try rig.core.keyTurn.take(rig.core) {
    case .taken: "taken"
    case .held: "held"
    case .refused: "refused"
    }
  }

  @Test func oneOfTwoHandlesHasIt() throws {
    #expect(try take(one) == "taken")
    #expect(try take(one) == "held")
    #expect(try take(two) == "refused")
    #expect(two.core.keyTurn.isAwaited)
    try one.core.keyTurn.giveBack(one.core)
    #expect(try take(two) == "taken")
    #expect(!two.core.keyTurn.isAwaited)
    #expect(try take(one) == "refused")
  }

  @Test func givingBackWhatOneDoesNotHaveTakesItFromNobody() throws {
    #expect(try take(one) == "taken")
    #expect(try take(two) == "refused")
    try two.core.keyTurn.giveBack(two.core)
    #expect(!two.core.keyTurn.isAwaited)
    #expect(try take(two) == "refused")
  }

  @Test func itIsRenewedWhileItIsUsed() throws {
    #expect(try take(one) == "taken")
    for _ in 0..<4 {
      // Longer than half of the lease, and together longer than all of it
      pass(200_000)
      #expect(try take(one) == "held")
      #expect(try take(two) == "refused")
    }
  }

  @Test func itExpires() throws {
    #expect(try take(one) == "taken")
    pass(3 * RequestedKeys.timeoutMS)
    #expect(try take(two) == "taken")
  }

  @Test func itIsOverWithTheFile() throws {
    #expect(try take(one) == "taken")
    one.core.keyTurn.forget()
    // What is in the file is this handle's own, and may be another's changes
    #expect(try take(one) == "taken")
  }

  @Test func aRolledBackTransactionLeavesNoTurn() throws {
    do throws(Failure) {
      try one.core.database.transaction { () throws(Failure) in
        _ = try one.core.keyTurn.take(one.core)
        throw Failure.defect("roll back")
      }
    } catch {}
    #expect(try take(two) == "taken")
    #expect(try take(one) == "refused")
  }

  @Test func itsRefusalIsAChangeThatWakesTheHost() throws {
    #expect(try take(one) == "taken")
    let before = two.core.revision.value
    #expect(try take(two) == "refused")
    #expect(two.core.revision.value != before)
  }
}
