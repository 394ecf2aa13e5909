import Base
import CSQLite
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
    #expect(try count() == 0)
    try database.requireUnchanged()
    // When another process commits meanwhile
    try writeElsewhere()
    // Then the call runs again
    #expect(isBusy { try database.requireUnchanged() })
    #expect(call.mustRunAgain)
    call.begin()
    #expect(try count() == 1)
    try database.requireUnchanged()
  }

  @Test func aCallThatIsAloneCountsWhatWasWrittenBeforeItHadTheLock() throws {
    call.begin(isAlone: true)
    // Before its first read, the call has no state
    try writeElsewhere()
    #expect(try count() == 1)
    #expect(!call.mustRunAgain)
  }

  @Test func allReadsOfACallSeeOneState() throws {
    call.begin()
    #expect(try count() == 0)
    try writeElsewhere()
    #expect(try count() == 0)
    #expect(try read() == 1)
    #expect(!call.mustRunAgain)
    call.begin()
    #expect(try count() == 1)
    #expect(try read() == 2)
  }

  @Test func aValueOfTheReadCacheCountsAsRead() throws {
    call.begin()
    #expect(try read() == 1)
    call.begin()
    // From the cache: no statement has run in this call.
    #expect(try read() == 1)
    #expect(database.reads.transaction == .none)
    try writeElsewhere()
    #expect(try read() == 1)
    #expect(isBusy { _ = try count() })
    #expect(call.mustRunAgain)
    call.begin()
    #expect(try read() == 2)
    #expect(try count() == 1)
  }

  @Test func aWriteAfterAnotherCommitRunsAgain() throws {
    call.begin()
    #expect(try count() == 0)
    try writeElsewhere()
    #expect(isBusy { try MetaTable(database).set(.uploads, .int(9)) })
    #expect(call.mustRunAgain)
    // A call that ignores the failure reads no second state.
    #expect(isBusy { _ = try count() })
    call.begin()
    #expect(try count() == 1)
    try MetaTable(database).set(.uploads, .int(9))
    #expect(!call.mustRunAgain)
    call.end()
    #expect(try MetaTable(other).int(.uploads) == 9)
  }

  @Test func afterACommitACallGoesOn() throws {
    call.begin()
    #expect(try count() == 0)
    try MetaTable(database).set(.uploads, .int(5))
    #expect(try count() == 0)
    try writeElsewhere()
    try MetaTable(database).set(.retryGroup, .int(3))
    #expect(try count() == 1)
    #expect(!call.mustRunAgain)
  }

  @Test func anEmptyTransactionIsNoCommit() throws {
    call.begin()
    try database.transaction { () throws(Failure) in }
    try writeElsewhere()
    #expect(isBusy { _ = try count() })
    #expect(call.mustRunAgain)
  }

  @Test func aCommitToOneFileBindsTheCallInAll() throws {
    let cache = try folder.openCache()
    let otherCache = try folder.openCache()
    cache.call = call
    call.begin()
    #expect(try DatasetTable(cache).removeAll(of: tag(1)) == 0)
    try MetaTable(database).set(.uploads, .int(5))
    try DatasetTable(otherCache).write(.summary, of: tag(1), DatasetTable.Entry())
    #expect(try DatasetTable(cache).removeAll(of: tag(1)) == 1)
    #expect(!call.mustRunAgain)
  }

  @Test func aCallAloneIsNotOvertaken() throws {
    call.begin(isAlone: true)
    #expect(try count() == 0)
    #expect(isBusy { try writeElsewhere() })
    try MetaTable(database).set(.uploads, .int(9))
    call.end()
    try writeElsewhere()
    #expect(try count() == 1)
  }

  @Test func aCallWithoutRepetitionReadsOn() throws {
    call.begin(mayRunAgain: false)
    #expect(try count() == 0)
    try writeElsewhere()
    try MetaTable(database).set(.retryGroup, .int(3))
    #expect(try count() == 1)
  }

  @Test func nothingIsHeldBetweenCalls() throws {
    call.begin()
    #expect(try count() == 0)
    try writeElsewhere()
    #expect(try isHeld())
    call.end()
    #expect(try !isHeld())
    call.begin(isAlone: true)
    #expect(try count() == 1)
    call.end()
    try writeElsewhereAgain()
    call.begin()
    try? database.transaction { () throws(Failure) in throw Failure(.storageFull, "as if") }
    _ = try count()
    call.end()
    #expect(try !isHeld())
  }

  private func writeElsewhereAgain() throws { try MetaTable(other).set(.uploads, .int(4)) }

  @Test func aStatementThatWritesIsCommittedAtOnce() throws {
    call.begin()
    #expect(try count() == 0)
    try MetaTable(database).set(.uploads, .int(7))
    #expect(try MetaTable(other).int(.uploads) == 7)
  }

  @Test func aClosedConnectionEndsItsReads() throws {
    call.begin()
    #expect(try count() == 0)
    database.close()
    #expect(try !isHeld())
    call.end()
  }
}
