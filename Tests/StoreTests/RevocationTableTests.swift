import Base
import Testing

@testable import Store

@Suite struct RevocationTableTests {
  let folder: TemporaryFolder
  let table: RevocationTable

  init() throws {
    folder = try TemporaryFolder()
    table = RevocationTable(try folder.open())
  }

  @Test func theOldestJobIsDueAtOnce() throws {
    #expect(try table.due(now: 5, longestMS: 1000) == nil)
    #expect(try table.next() == nil)
    let first = try table.add(sealed: [1])
    let second = try table.add(sealed: [2])
    let job = try #require(try table.due(now: 0, longestMS: 1000))
    #expect((job.id, job.sealed, job.attempts) == (first, [1], 0))
    #expect(try table.next() == 0)
    #expect(try table.count() == 2)
    try table.remove(first)
    #expect(try table.due(now: 0, longestMS: 1000)?.id == second)
    #expect(try table.count() == 1)
  }

  @Test func aPostponedJobIsDueAtItsTimeWithOneMoreAttempt() throws {
    let id = try table.add(sealed: [1])
    try table.lease(id, until: 500)
    try table.postpone(id, until: 100)
    #expect(try table.due(now: 99, longestMS: 1000) == nil)
    #expect(try table.next() == 100)
    #expect(try table.due(now: 100, longestMS: 1000)?.attempts == 1)
    try table.postpone(id, until: 200)
    #expect(try table.find(id)?.attempts == 2)
  }

  @Test func aTimeThatWasStoredUnderAnotherClockIsOver() throws {
    let id = try table.add(sealed: [1])
    try table.lease(id, until: 3_600_100)
    #expect(try table.due(now: 100, longestMS: 1000) == nil)
    #expect(try table.due(now: 99, longestMS: 1000)?.id == id)
    try table.postpone(id, until: 5000)
    #expect(try table.due(now: 4000, longestMS: 1000) == nil)
    #expect(try table.due(now: 3999, longestMS: 1000)?.id == id)
  }

  @Test func aLeasedJobIsNotDueUntilTheLeaseExpires() throws {
    let id = try table.add(sealed: [1])
    let other = try table.add(sealed: [2])
    try table.lease(id, until: 100)
    #expect(try table.due(now: 99, longestMS: 1000)?.id == other)
    try table.lease(other, until: 150)
    #expect(try table.due(now: 99, longestMS: 1000) == nil)
    #expect(try table.next() == 100)
    #expect(try table.due(now: 100, longestMS: 1000)?.id == id)
  }

  @Test func theNextTimeIsTheLaterOfBackoffAndLease() throws {
    let id = try table.add(sealed: [1])
    try table.postpone(id, until: 300)
    try table.lease(id, until: 100)
    #expect(try table.next() == 300)
    #expect(try table.due(now: 100, longestMS: 1000) == nil)
    try table.lease(id, until: 400)
    #expect(try table.next() == 400)
    #expect(try table.due(now: 300, longestMS: 1000) == nil)
  }

  @Test func anUpdateStoresTheContentsAndEndsTheLease() throws {
    let id = try table.add(sealed: [1])
    try table.lease(id, until: 100)
    try table.update(id, sealed: [9])
    #expect(try table.due(now: 0, longestMS: 1000)?.sealed == [9])
    #expect(try table.find(id)?.attempts == 0)
    #expect(try table.find(id + 1) == nil)
  }
}
