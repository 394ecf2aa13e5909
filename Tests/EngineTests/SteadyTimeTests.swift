import Base
import TestSupport
import Testing

@testable import Engine

@Suite struct SteadyTimeTests {
  private func move(_ rig: Rig, _ wallMS: Int64, monotonicMS: Int64 = 0, boot: String? = nil) {
    rig.clock.set(
      Instant(
        wallMS: rig.now.wallMS + wallMS, monotonicMS: rig.now.monotonicMS + monotonicMS,
        bootID: boot ?? rig.now.bootID))
  }

  @Test func itIsTheDevicesTimeUntilOneIsStored() throws {
    let rig = try Rig()
    for _ in 1...2 {
      try expect(rig.core.steady(rig.now).ms, equals: rig.now.wallMS)
      move(rig, 5_000_000)
    }
  }

  @Test func itGoesOnByTheMonotonicClockOnceOneIsStored() throws {
    let rig = try Rig()
    let begun = try rig.core.steadyToStore(rig.now)
    expect(begun.ms, equals: rig.now.wallMS)
    move(rig, -9_000_000, monotonicMS: 70)
    try expect(rig.core.steady(rig.now) - begun, equals: 70)
    try expect(rig.core.steadyToStore(rig.now) - begun, equals: 70)
    // and the host is told times of its present clock
    try expect(rig.core.wallMS(begun + 100, rig.now), equals: rig.now.wallMS + 30)
  }

  @Test func allProcessesOfABootAgree() throws {
    let rig = try Rig()
    let begun = try rig.core.steadyToStore(rig.now)
    let other = try Rig(folder: rig.folder, keyStore: rig.keyStore)
    other.clock.set(rig.now)
    move(other, 9_000_000, monotonicMS: 70)
    try expect(other.core.steadyToStore(other.now) - begun, equals: 70)
  }

  @Test func anotherBootBeginsWithTheDevicesTime() throws {
    let rig = try Rig()
    _ = try rig.core.steadyToStore(rig.now)
    move(rig, 9_000_000, boot: "another")
    let begun = try rig.core.steadyToStore(rig.now)
    expect(begun.ms, equals: rig.now.wallMS)
    move(rig, 9_000_000, monotonicMS: 70)
    try expect(rig.core.steady(rig.now) - begun, equals: 70)
  }

  @Test func withoutABootsIDItIsTheDevicesTime() throws {
    let rig = try Rig()
    move(rig, 0, boot: "")
    for _ in 1...2 {
      try expect(rig.core.steadyToStore(rig.now).ms, equals: rig.now.wallMS)
      move(rig, 9_000_000, monotonicMS: 70)
    }
  }
}
