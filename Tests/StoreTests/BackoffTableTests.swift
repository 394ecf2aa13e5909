import Base
import Testing

@testable import Store

@Suite struct BackoffTableTests {
  @Test func aServiceKeepsItsOwnBackoffUntilItIsCleared() throws {
    let folder = try TemporaryFolder()
    let table = BackoffTable(try folder.open())
    #expect(try table.read("rest") == (0, 0))
    try table.set("rest", attempts: 3, notBeforeMS: 700)
    try table.set("auth", attempts: 1, notBeforeMS: 100)
    #expect(try table.read("rest") == (3, 700))
    // A later entry replaces the earlier one, also by smaller numbers.
    try table.set("rest", attempts: 2, notBeforeMS: 50)
    #expect(try table.read("rest") == (2, 50))
    try table.clear("rest")
    #expect(try table.read("rest") == (0, 0))
    #expect(try table.read("auth") == (1, 100))
  }
}
