import Base
import TestSupport
import Testing

@testable import Store

@Suite struct PauseTableTests {
  private func pair(_ table: PauseTable, _ purpose: String) throws -> (Int64, Int64) {
    let entry = try table.read(purpose)
    return (entry.attempts, entry.pause.until.ms)
  }

  @Test func aPurposeKeepsItsOwnPauseUntilItIsCleared() throws {
    let folder = try TemporaryFolder()
    let table = PauseTable(try folder.open())
    try expect(pair(table, "upload") == (0, 0))
    try table.set("upload", attempts: 3, Pause(since: 0, until: 700))
    try table.set("refresh", attempts: 1, Pause(since: 0, until: 100))
    try expect(pair(table, "upload") == (3, 700))
    // A later entry replaces the earlier one, also by smaller numbers.
    try table.set("upload", attempts: 2, Pause(since: 0, until: 50))
    try expect(pair(table, "upload") == (2, 50))
    try table.clear("upload")
    try expect(pair(table, "upload") == (0, 0))
    try expect(pair(table, "refresh") == (1, 100))
  }

  @Test func aPauseThatTheServerAskedForIsToldApart() throws {
    let folder = try TemporaryFolder()
    let table = PauseTable(try folder.open())
    try table.set("upload", attempts: 1, Pause(since: 0, until: 10), isAsked: true)
    try table.set("pull", attempts: 1, Pause(since: 0, until: 20))
    try expect(table.read("upload").isAsked)
    try expect(!table.read("pull").isAsked)
    try table.set("upload", attempts: 2, Pause(since: 0, until: 10))
    try expect(!table.read("upload").isAsked)
  }

  @Test func anotherConnectionSeesAChange() throws {
    let folder = try TemporaryFolder()
    let (one, other) = (PauseTable(try folder.open()), PauseTable(try folder.open()))
    try one.set("upload", attempts: 1, Pause(since: 0, until: 10))
    try expect(pair(other, "upload") == (1, 10))
    try one.set("upload", attempts: 2, Pause(since: 0, until: 30))
    try expect(pair(other, "upload") == (2, 30))
    try other.clear("upload")
    try expect(pair(one, "upload") == (0, 0))
  }
}
