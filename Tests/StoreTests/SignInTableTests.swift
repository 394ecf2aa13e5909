import Base
import TestSupport
import Testing

@testable import Store

@Suite struct SignInTableTests {
  let folder: TemporaryFolder
  let table: SignInTable

  init() throws {
    folder = try TemporaryFolder()
    table = SignInTable(try folder.open())
  }

  @Test func aSignInIsFoundByItsStateAndUsedOnce() throws {
    try table.add(state: [1], sealed: [5], now: 10)
    let found = try #require(try table.find(state: [1]))
    expect(found.sealed, equals: [5])
    expect(found.created, equals: 10)
    try expect(table.find(state: [2]) == nil)
    try expect(!table.remove(state: [2]))
    try expect(table.remove(state: [1]))
    try expect(!table.remove(state: [1]))
    try expect(table.find(state: [1]) == nil)
  }

  @Test func aStateIsStoredOnce() throws {
    try table.add(state: [1], sealed: [5], now: 10)
    #expect(throws: Failure.self) { try table.add(state: [1], sealed: [6], now: 11) }
    try expect(table.find(state: [1])?.sealed, equals: [5])
  }

  @Test(
    arguments: [(10, [true, true]), (11, [false, true]), (21, [false, false])]
      as [(SteadyTime, [Bool])])
  func olderSignInsAreRemoved(than created: SteadyTime, remaining: [Bool]) throws {
    try table.add(state: [1], sealed: [], now: 10)
    try table.add(state: [2], sealed: [], now: 20)
    try table.removeOlder(than: created)
    expect(
      [try table.find(state: [1]) != nil, try table.find(state: [2]) != nil], equals: remaining)
  }

  @Test func allAreRemoved() throws {
    for state: UInt8 in 1...3 { try table.add(state: [state], sealed: [], now: 10) }
    try table.removeAll()
    for state: UInt8 in 1...3 { try expect(table.find(state: [state]) == nil) }
  }
}
