import Base
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
      #expect(try rig.core.steady(rig.now).ms == rig.now.wallMS)
      move(rig, 5_000_000)
    }
  }

  @Test func itGoesOnByTheMonotonicClockOnceOneIsStored() throws {
    let rig = try Rig()
    let begun = try rig.core.steadyToStore(rig.now)
    #expect(begun.ms == rig.now.wallMS)
    move(rig, -9_000_000, monotonicMS: 70)
    #expect(try rig.core.steady(rig.now) - begun == 70)
    #expect(try rig.core.steadyToStore(rig.now) - begun == 70)
    // and the host is told times of its present clock
    #expect(try rig.core.wallMS(begun + 100, rig.now) == rig.now.wallMS + 30)
  }

  @Test func allProcessesOfABootAgree() throws {
    let rig = try Rig()
    let begun = try rig.core.steadyToStore(rig.now)
    let other = try Rig(folder: rig.folder, keyStore: rig.keyStore)
    other.clock.set(rig.now)
    move(other, 9_000_000, monotonicMS: 70)
    #expect(try other.core.steadyToStore(other.now) - begun == 70)
  }

  @Test func anotherBootBeginsWithTheDevicesTime() throws {
    let rig = try Rig()
    _ = try rig.core.steadyToStore(rig.now)
    move(rig, 9_000_000, boot: "another")
    let begun = try rig.core.steadyToStore(rig.now)
    #expect(begun.ms == rig.now.wallMS)
    move(rig, 9_000_000, monotonicMS: 70)
    #expect(try rig.core.steady(rig.now) - begun == 70)
  }

  @Test func withoutABootsIDItIsTheDevicesTime() throws {
    let rig = try Rig()
    move(rig, 0, boot: "")
    for _ in 1...2 {
      #expect(try rig.core.steadyToStore(rig.now).ms == rig.now.wallMS)
      move(rig, 9_000_000, monotonicMS: 70)
    }
  }
}
