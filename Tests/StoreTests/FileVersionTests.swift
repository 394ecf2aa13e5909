import Base
import TestSupport
import Testing

@testable import Store

/// The file's version, and the read cache that depends on it.
@Suite struct FileVersionTests {
  @Test func itChangesWithEveryCommitOfAnybodyAndWithNothingElse() throws {
    let folder = try TemporaryFolder()
    let (ours, theirs) = (try folder.open(), try folder.open())
    let first = try #require(ours.version)
    _ = try SessionTable(ours).read()
    expect(ours.version, equals: first)
    try MetaTable(theirs).set(.retryGroup, .int(1))
    let second = try #require(ours.version)
    expect(second != first)
    expect(theirs.version, equals: second)
    try MetaTable(ours).set(.retryGroup, .int(2))
    expect(ours.version != second)
  }

  @Test func aTransactionHasNone() throws {
    let folder = try TemporaryFolder()
    let database = try folder.open()
    try database.transaction { () throws(Failure) in
      expect(database.version, equals: nil)
      expect(database.currentReadCache == nil)
    }
    expect(database.version != nil)
  }

  @Test func anUnchangedRowIsReadOnceAndAChangedOneAtOnce() throws {
    let folder = try TemporaryFolder()
    let (ours, theirs) = (try folder.open(), try folder.open())
    let sessions = SessionTable(ours)
    let row = try sessions.read()
    try expect(sessions.read() === row)
    let changed = try SessionTable(theirs).read()
    changed.generation = 7
    try expect(SessionTable(theirs).write(changed, expecting: row.generation))
    try expect(sessions.read().generation, equals: 7)
    expect(row.generation, equals: 0)
  }

  @Test func ourOwnCommitKeepsWhatItLeavesAlone() throws {
    let folder = try TemporaryFolder()
    let database = try folder.open()
    let row = try SessionTable(database).read()
    _ = try MetaTable(database).int(.clockOffset)
    try queueOne(database, 1)
    try expect(SessionTable(database).read() === row)
    try database.transaction { () throws(Failure) in
      try MetaTable(database).set(.clockOffset, .int(5))
    }
    try expect(MetaTable(database).int(.clockOffset), equals: 5)
    try database.transaction { () throws(Failure) in
      let row = try SessionTable(database).read()
      row.intentMS = 3
      _ = try SessionTable(database).write(row, expecting: row.generation)
    }
    try expect(SessionTable(database).read().intentMS, equals: 3)
  }

  @Test func whatAnotherCommitsBesideOurOwnIsSeen() throws {
    let folder = try TemporaryFolder()
    let (ours, theirs) = (try folder.open(), try folder.open())
    _ = try MetaTable(ours).int(.clockOffset)
    try MetaTable(theirs).set(.clockOffset, .int(9))
    try queueOne(ours, 1)
    try expect(MetaTable(ours).int(.clockOffset), equals: 9)
    // A transaction without changes commits nothing, so the one commit is the other connection's.
    try MetaTable(theirs).set(.clockOffset, .int(10))
    try ours.transaction { () throws(Failure) in _ = try QueueTable(ours).find([1]) }
    try expect(MetaTable(ours).int(.clockOffset), equals: 10)
  }

  @Test func whileAStatementRunsNothingIsRemembered() throws {
    let folder = try TemporaryFolder()
    let (ours, theirs) = (try folder.open(), try folder.open())
    try queueOne(ours, 1)
    try ours.each("SELECT seq FROM queue", []) { (_) throws(Failure) in
      // An open statement reads the file as it was when it began, and so does any other read.
      try MetaTable(theirs).set(.clockOffset, .int(4))
      try expect(MetaTable(ours).int(.clockOffset), equals: nil)
      return true
    }
    try expect(MetaTable(ours).int(.clockOffset), equals: 4)
  }

  private func queueOne(_ database: Database, _ number: Int) throws(Failure) {
    try database.transaction { () throws(Failure) in
      _ = try QueueTable(database).insert(queueRow(number))
    }
  }
}
