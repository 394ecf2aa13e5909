import TestSupport
import Testing

@testable import Base

@Suite struct ClockTests {
  @Test("The system's clocks run; the monotonic clock never goes back")
  func system() {
    let clock = Clock(.system)
    let first = clock.now()
    expect(!clock.isManual)
    expect(first.wallMS > 1_700_000_000_000)
    var last = first.monotonicMS
    for _ in 0..<1_000 {
      let now = clock.now().monotonicMS
      expect(now >= last)
      last = now
    }
    clock.set(Instant(wallMS: 0, monotonicMS: 0, bootID: ""))
    expect(clock.now().wallMS >= first.wallMS)
    expect(clock.now().bootID, equals: first.bootID)
  }

  @Test("A manual clock stands still until it is set")
  func manual() {
    let clock = Clock(.manual)
    let start = clock.now()
    expect(clock.isManual)
    expect(clock.now().wallMS == start.wallMS && clock.now().monotonicMS == start.monotonicMS)
    clock.set(Instant(wallMS: 5, monotonicMS: 7, bootID: "boot"))
    let now = clock.now()
    expect(now.wallMS == 5 && now.monotonicMS == 7 && now.bootID == "boot")
  }

  @Test("Within a boot the monotonic clock tells an age, else the device's; without ids the longer")
  func age() {
    func age(_ wallMS: Int64, _ monotonicMS: Int64, _ boot: String, since before: String?) -> Int64
    {
      Instant(wallMS: wallMS, monotonicMS: monotonicMS, bootID: boot)
        .ageMS(wallMS: 1_000, monotonicMS: 500, bootID: before)
    }
    expect(age(0, 700, "a", since: "a"), equals: 200)
    expect(age(9_000, 700, "b", since: "a"), equals: 8_000)
    expect(age(9_000, 700, "a", since: nil), equals: 8_000)
    expect(age(9_000, 700, "", since: ""), equals: 8_000)
    expect(age(0, 700, "", since: ""), equals: 200)
    expect(age(9_000, 100, "", since: ""), equals: 8_000)
  }
}

@Suite struct HolderTests {
  /// All processes must agree on it, whatever version of the library they have.
  @Test(
    "The hash of a boot's name is FNV-1a, by its published values",
    arguments: [
      ("", 0xcbf2_9ce4_8422_2325), ("a", 0xaf63_dc4c_8601_ec8c), ("foobar", 0x8594_4171_f739_67e8),
    ] as [(String, UInt64)])
  func hash(text: String, expected: UInt64) {
    expect(Holder.hash(text), equals: expected)
  }

  @Test("This process is alive; a holder of another boot, of a dead process or malformed is not")
  func life() {
    let holder = Holder(bootID: "boot", nonce: 1)
    expect(Holder.isAlive(holder.bytes, bootID: "boot"))
    expect(!Holder.isAlive(holder.bytes, bootID: "another"))
    expect(Holder(bootID: "boot", nonce: 2).bytes != holder.bytes)
    var reused = holder.bytes
    reused[23] ^= 1
    expect(!Holder.isAlive(reused, bootID: "boot"), "a later process has the same id")
    for bytes in [[], [1], Array(repeating: 0xFF, count: 32), Array(repeating: 0, count: 32)]
      as [[UInt8]]
    {
      expect(!Holder.isAlive(bytes, bootID: "boot"))
    }
  }

  @Test("Where the system did not tell when a process began, its id tells whether it runs")
  func unknownStart() {
    var bytes = Holder(bootID: "boot", nonce: 1).bytes
    bytes.replaceSubrange(16..<24, with: Array(repeating: 0xFF, count: 8))
    expect(Holder.isAlive(bytes, bootID: "boot"))
    bytes.replaceSubrange(8..<16, with: [0, 0, 0, 0, 0x7F, 0xFF, 0xFF, 0xFF])
    expect(!Holder.isAlive(bytes, bootID: "boot"), "no process has this id")
  }
}
