import Base
import TestSupport
import Testing

@testable import Engine

@Suite struct ReaderTests {
  private let start = Rig.start

  private func later(_ milliseconds: Int64) -> Instant {
    Instant(
      wallMS: start.wallMS, monotonicMS: start.monotonicMS + milliseconds, bootID: start.bootID)
  }

  @Test func aTimeClearlyBeforeThePromisedOneAndThePromisedOneAreDue() {
    // Given: before the first call only work that is due counts
    var reader = Reader()
    expect(reader.isDue(0, start))
    expect(!reader.isDue(1, start))
    expect(!reader.isDue(nil, start))
    // When a call promised 10 s
    reader.promise(10_000, start)
    // Then
    for (wake, isDue) in [(0, true), (9949, true), (9950, false), (10_000, false)] {
      expect(reader.isDue(Int64(wake), start), equals: isDue, "\(wake) ms")
    }
    expect(reader.isDue(900, later(9000)))
    expect(!reader.isDue(1000, later(9000)))
    expect(!reader.isDue(nil, later(9000)))
    // And when that time has come, whatever is computed anew
    expect(reader.isDue(10_000, later(10_000)))
    expect(reader.isDue(nil, later(10_000)))
    // And after a call that promised nothing, every time is due
    reader.promise(nil, start)
    expect(reader.isDue(86_400_000, start))
  }

  @Test func aReaderThatWasWokenStaysSoUntilSomebodyLooks() throws {
    // Given an item to send
    let rig = try Rig.atHome()
    try rig.add(id(1))
    try expect(rig.loop.wants(.requests))
    // When the network goes
    _ = rig.reachability.setOnline(false)
    // Then the reader looks in vain, once
    try expect(rig.loop.wants(.requests))
    _ = try rig.loop.next(.news)
    try expect(!rig.loop.wants(.requests))
  }

  @Test func eachReaderIsWokenForItsOwn() throws {
    // Given nothing to do
    let rig = try Rig.atHome()
    while let _ = try rig.loop.next(.all) { rig.loop.give() }
    // When
    rig.news.notePull()
    // Then
    try expect(rig.loop.wants(.news) && rig.loop.wants(.all))
    try expect(!rig.loop.wants(.requests))
  }
}
