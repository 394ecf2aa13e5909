import Base
import TestSupport
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
    try expect(table.due(now: 5, longestMS: 1000) == nil)
    try expect(table.next(), equals: nil)
    let first = try table.add(sealed: [1])
    let second = try table.add(sealed: [2])
    let job = try #require(try table.due(now: 0, longestMS: 1000))
    expect((job.id, job.sealed, job.attempts) == (first, [1], 0))
    try expect(table.next(), equals: 0)
    try expect(table.count(), equals: 2)
    try table.remove(first)
    try expect(table.due(now: 0, longestMS: 1000)?.id, equals: second)
    try expect(table.count(), equals: 1)
  }

  @Test func aPostponedJobIsDueAtItsTimeWithOneMoreAttempt() throws {
    let id = try table.add(sealed: [1])
    try table.lease(id, until: 500)
    try table.postpone(id, until: 100)
    try expect(table.due(now: 99, longestMS: 1000) == nil)
    try expect(table.next(), equals: 100)
    try expect(table.due(now: 100, longestMS: 1000)?.attempts, equals: 1)
    try table.postpone(id, until: 200)
    try expect(table.find(id)?.attempts, equals: 2)
  }

  @Test func aTimeThatWasStoredUnderAnotherClockIsOver() throws {
    let id = try table.add(sealed: [1])
    try table.lease(id, until: 3_600_100)
    try expect(table.due(now: 100, longestMS: 1000) == nil)
    try expect(table.due(now: 99, longestMS: 1000)?.id, equals: id)
    try table.postpone(id, until: 5000)
    try expect(table.due(now: 4000, longestMS: 1000) == nil)
    try expect(table.due(now: 3999, longestMS: 1000)?.id, equals: id)
  }

  @Test func aLeasedJobIsNotDueUntilTheLeaseExpires() throws {
    let id = try table.add(sealed: [1])
    let other = try table.add(sealed: [2])
    try table.lease(id, until: 100)
    try expect(table.due(now: 99, longestMS: 1000)?.id, equals: other)
    try table.lease(other, until: 150)
    try expect(table.due(now: 99, longestMS: 1000) == nil)
    try expect(table.next(), equals: 100)
    try expect(table.due(now: 100, longestMS: 1000)?.id, equals: id)
  }

  @Test func theNextTimeIsTheLaterOfPauseAndLease() throws {
    let id = try table.add(sealed: [1])
    try table.postpone(id, until: 300)
    try table.lease(id, until: 100)
    try expect(table.next(), equals: 300)
    try expect(table.due(now: 100, longestMS: 1000) == nil)
    try table.lease(id, until: 400)
    try expect(table.next(), equals: 400)
    try expect(table.due(now: 300, longestMS: 1000) == nil)
  }

  @Test func anUpdateStoresTheContentsAndEndsTheLease() throws {
    let id = try table.add(sealed: [1])
    try table.lease(id, until: 100)
    try table.update(id, sealed: [9])
    try expect(table.due(now: 0, longestMS: 1000)?.sealed, equals: [9])
    try expect(table.find(id)?.attempts, equals: 0)
    try expect(table.find(id + 1) == nil)
  }
}
