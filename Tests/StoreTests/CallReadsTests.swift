import Base
import CSQLite
import TestSupport
import Testing

@testable import Store

/// The reads of one call, beside another connection that writes.
@Suite struct CallReadsTests {
  let folder: TemporaryFolder
  let database: Database
  let other: Database
  let call = CallReads()

  init() throws {
    folder = try TemporaryFolder()
    database = try folder.open()
    other = try folder.open()
    try MetaTable(database).set(.uploads, .int(1))
    database.call = call
  }

  private func read() throws -> Int64? { try MetaTable(database).int(.uploads) }

  private func count() throws -> Int {
    try QueueTable(database).page(
      of: tag(1), state: nil, after: 0, limit: 100
    ).count
  }

  private func writeElsewhere() throws {
    try other.transaction { () throws(Failure) in
      try QueueTable(other).fill(1)
      try MetaTable(other).set(.uploads, .int(2))
    }
  }

  /// Whether the connection keeps others from emptying the log.
  private func isHeld() throws -> Bool {
    let busy = try other.first("PRAGMA wal_checkpoint(TRUNCATE)") { (row) throws(Failure) in
      row.int(0)
    }
    return busy != 0
  }

  private func isBusy(_ body: () throws -> Void) -> Bool {
    do { try body() } catch { return (error as? Failure)?.code == .storageBusy }
    return false
  }

  @Test func whatBelongsToAnotherFileIsReadAgainAfterACommit() throws {
    // Given a call that has read here, and reads another file next
    call.begin()
    try expect(count(), equals: 0)
    try database.requireUnchanged()
    // When another process commits meanwhile
    try writeElsewhere()
    // Then the call runs again
    expect(isBusy { try database.requireUnchanged() })
    expect(call.mustRunAgain)
    call.begin()
    try expect(count(), equals: 1)
    try database.requireUnchanged()
  }

  @Test func aCallRunsAgainAlsoIfItHasCopiedTheLog() throws {
    // Given a call that has read, and copies the log because the disk is full
    call.begin()
    try expect(count(), equals: 0)
    try writeElsewhere()
    database.reuseLog()
    // When it begins to write
    expect(isBusy { try MetaTable(database).set(.uploads, .int(3)) })
    // Then it runs again on what another process has committed
    expect(call.mustRunAgain)
    call.begin()
    try expect(count(), equals: 1)
  }

  @Test func aClosedConnectionCopiesNoLog() throws {
    database.close()
    expect(!database.reuseLog())
  }

  @Test func aCallThatIsAloneCountsWhatWasWrittenBeforeItHadTheLock() throws {
    call.begin(isAlone: true)
    // Before its first read, the call has no state
    try writeElsewhere()
    try expect(count(), equals: 1)
    expect(!call.mustRunAgain)
  }

  @Test func allReadsOfACallSeeOneState() throws {
    call.begin()
    try expect(count(), equals: 0)
    try writeElsewhere()
    try expect(count(), equals: 0)
    try expect(read(), equals: 1)
    expect(!call.mustRunAgain)
    call.begin()
    try expect(count(), equals: 1)
    try expect(read(), equals: 2)
  }

  @Test func aValueOfTheReadCacheCountsAsRead() throws {
    call.begin()
    try expect(read(), equals: 1)
    call.begin()
    // From the cache: no statement has run in this call.
    try expect(read(), equals: 1)
    expect(database.reads.transaction, equals: .none)
    try writeElsewhere()
    try expect(read(), equals: 1)
    expect(isBusy { _ = try count() })
    expect(call.mustRunAgain)
    call.begin()
    try expect(read(), equals: 2)
    try expect(count(), equals: 1)
  }

  @Test func aWriteAfterAnotherCommitRunsAgain() throws {
    call.begin()
    try expect(count(), equals: 0)
    try writeElsewhere()
    expect(isBusy { try MetaTable(database).set(.uploads, .int(9)) })
    expect(call.mustRunAgain)
    // A call that ignores the failure reads no second state.
    expect(isBusy { _ = try count() })
    call.begin()
    try expect(count(), equals: 1)
    try MetaTable(database).set(.uploads, .int(9))
    expect(!call.mustRunAgain)
    call.end()
    try expect(MetaTable(other).int(.uploads), equals: 9)
  }

  @Test func afterACommitACallGoesOn() throws {
    call.begin()
    try expect(count(), equals: 0)
    try MetaTable(database).set(.uploads, .int(5))
    try expect(count(), equals: 0)
    try writeElsewhere()
    try MetaTable(database).set(.retryGroup, .int(3))
    try expect(count(), equals: 1)
    expect(!call.mustRunAgain)
  }

  @Test func anEmptyTransactionIsNoCommit() throws {
    call.begin()
    try database.transaction { () throws(Failure) in }
    try writeElsewhere()
    expect(isBusy { _ = try count() })
    expect(call.mustRunAgain)
  }

  @Test func aCommitToOneFileBindsTheCallInAll() throws {
    let cache = try folder.openCache()
    let otherCache = try folder.openCache()
    cache.call = call
    call.begin()
    try expect(DatasetTable(cache).removeAll(in: tag(1)), equals: 0)
    try MetaTable(database).set(.uploads, .int(5))
    try DatasetTable(otherCache).write(.summary, of: tag(1), DatasetTable.Entry())
    try expect(DatasetTable(cache).removeAll(in: tag(1)), equals: 1)
    expect(!call.mustRunAgain)
  }

  @Test func aCallAloneIsNotOvertaken() throws {
    call.begin(isAlone: true)
    try expect(count(), equals: 0)
    expect(isBusy { try writeElsewhere() })
    try MetaTable(database).set(.uploads, .int(9))
    call.end()
    try writeElsewhere()
    try expect(count(), equals: 1)
  }

  @Test func aCallWithoutRepetitionReadsOn() throws {
    call.begin(mayRunAgain: false)
    try expect(count(), equals: 0)
    try writeElsewhere()
    try MetaTable(database).set(.retryGroup, .int(3))
    try expect(count(), equals: 1)
  }

  @Test func nothingIsHeldBetweenCalls() throws {
    call.begin()
    try expect(count(), equals: 0)
    try writeElsewhere()
    try expect(isHeld())
    call.end()
    try expect(!isHeld())
    call.begin(isAlone: true)
    try expect(count(), equals: 1)
    call.end()
    try writeElsewhereAgain()
    call.begin()
    try? database.transaction { () throws(Failure) in throw Failure(.storageFull, "as if") }
    _ = try count()
    call.end()
    try expect(!isHeld())
  }

  private func writeElsewhereAgain() throws { try MetaTable(other).set(.uploads, .int(4)) }

  @Test func aStatementThatWritesIsCommittedAtOnce() throws {
    call.begin()
    try expect(count(), equals: 0)
    try MetaTable(database).set(.uploads, .int(7))
    try expect(MetaTable(other).int(.uploads), equals: 7)
  }

  @Test func aClosedConnectionEndsItsReads() throws {
    call.begin()
    try expect(count(), equals: 0)
    database.close()
    try expect(!isHeld())
    call.end()
  }
}
