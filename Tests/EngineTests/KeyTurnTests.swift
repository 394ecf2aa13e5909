import Base
import TestSupport
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
    try expect(take(one), equals: "taken")
    try expect(take(one), equals: "held")
    try expect(take(two), equals: "refused")
    expect(two.core.keyTurn.isAwaited)
    try one.core.keyTurn.giveBack(one.core)
    try expect(take(two), equals: "taken")
    expect(!two.core.keyTurn.isAwaited)
    try expect(take(one), equals: "refused")
  }

  @Test func givingBackWhatOneDoesNotHaveTakesItFromNobody() throws {
    try expect(take(one), equals: "taken")
    try expect(take(two), equals: "refused")
    try two.core.keyTurn.giveBack(two.core)
    expect(!two.core.keyTurn.isAwaited)
    try expect(take(two), equals: "refused")
  }

  @Test func itIsRenewedWhileItIsUsed() throws {
    try expect(take(one), equals: "taken")
    for _ in 0..<4 {
      // Longer than half of the lease, and together longer than all of it
      pass(200_000)
      try expect(take(one), equals: "held")
      try expect(take(two), equals: "refused")
    }
  }

  @Test func itExpires() throws {
    try expect(take(one), equals: "taken")
    pass(3 * RequestedKeys.timeoutMS)
    try expect(take(two), equals: "taken")
  }

  @Test func itIsOverWithTheFile() throws {
    try expect(take(one), equals: "taken")
    one.core.keyTurn.forget()
    // What is in the file is this handle's own, and may be another's changes
    try expect(take(one), equals: "taken")
  }

  @Test func aRolledBackTransactionLeavesNoTurn() throws {
    do throws(Failure) {
      try one.core.database.transaction { () throws(Failure) in
        _ = try one.core.keyTurn.take(one.core)
        throw Failure.defect("roll back")
      }
    } catch {}
    try expect(take(two), equals: "taken")
    try expect(take(one), equals: "refused")
  }

  @Test func itsRefusalIsAChangeThatWakesTheHost() throws {
    try expect(take(one), equals: "taken")
    let before = two.core.revision.value
    try expect(take(two), equals: "refused")
    expect(two.core.revision.value != before)
  }
}
