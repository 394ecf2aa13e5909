import Base
import CSQLite
import Foundation
import TestSupport
import Testing

@testable import Store

@Suite struct DatabaseTests {
  @Test func aFileIsMade0600AndKeepsItsLogBesideIt() throws {
    let folder = try TemporaryFolder()
    let database = try folder.open()
    let mode = try FileManager.default.attributesOfItem(atPath: database.path)[.posixPermissions]
    expect(mode as? Int, equals: 0o600)
    expect(FileManager.default.fileExists(atPath: database.path + "-wal"))
  }

  @Test func aFailedTransactionLeavesNothing() throws {
    let folder = try TemporaryFolder()
    let database = try folder.open()
    let meta = MetaTable(database)
    #expect(throws: Failure.self) {
      try database.transaction { () throws(Failure) in
        try meta.set(.retryGroup, .int(5))
        try database.transaction { () throws(Failure) in try meta.set(.lastSyncRun, .int(6)) }
        throw Failure(.internalDefect, "on purpose")
      }
    }
    try expect(meta.int(.retryGroup), equals: nil)
    try expect(meta.int(.lastSyncRun), equals: nil)
    try database.transaction { () throws(Failure) in try meta.set(.retryGroup, .int(1)) }
    try expect(meta.int(.retryGroup), equals: 1)
  }

  @Test func aVersionWithAFlippedBitIsMended() throws {
    let folder = try TemporaryFolder()
    for bit in 0..<31 {
      let database = try folder.open()
      try MetaTable(database).set(.retryGroup, .int(Int64(bit)))
      let version =
        try database.first("PRAGMA user_version") { (row) throws(Failure) in row.int(0) } ?? 0
      try database.execute("PRAGMA user_version=\(version ^ (1 << Int64(bit)))")
      database.close()
      try expect(MetaTable(folder.open()).int(.retryGroup), equals: Int64(bit))
    }
  }

  @Test func aStatementCannotWriteTheSchema() throws {
    let folder = try TemporaryFolder()
    let database = try folder.open()
    #expect(throws: Failure.self) {
      try database.execute(
        "PRAGMA writable_schema=ON; DELETE FROM sqlite_schema WHERE name = 'queue_held'")
    }
  }

  @Test func theFilesTriggersAndViewsDoNotRun() throws {
    let folder = try TemporaryFolder()
    let database = try folder.open()
    tamper(
      database.path,
      """
      CREATE TRIGGER more AFTER UPDATE ON session BEGIN UPDATE session SET locked = 7; END;
      CREATE VIEW more_rows AS SELECT * FROM session
      """)
    try database.run("UPDATE session SET generation = 5")
    let locked: Int64? = try database.first("SELECT locked FROM session") { $0.int(0) }
    expect(locked, equals: 0)
    #expect(throws: Failure.self) { try database.run("SELECT * FROM more_rows") }
  }

  @Test func noiseIsDamageAndNotTouched() throws {
    let folder = try TemporaryFolder()
    let noise = Data((0..<8192).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ 7) })
    try noise.write(to: URL(fileURLWithPath: folder.path + "/test.db"))
    do {
      _ = try folder.open()
      Issue.record("it was opened")
    } catch let failure as Failure {
      expect(failure.code, equals: .storageDamaged)
    }
    try expect(Data(contentsOf: URL(fileURLWithPath: folder.path + "/test.db")), equals: noise)
  }

  @Test func aFileThatAnotherProcessSetAsideIsNoticed() throws {
    let folder = try TemporaryFolder()
    let database = try folder.open()
    expect(database.isCurrent)
    try FileManager.default.moveItem(
      atPath: database.path, toPath: database.path + ".damaged-1")
    expect(!database.isCurrent)
  }

  @Test func valuesComeBackAsTheyWereBound() throws {
    let folder = try TemporaryFolder()
    let database = try folder.open()
    let values: [Value] = [
      .null, .int(Int64.min), .int(Int64.max), .blob([]), .blob([0, 1]), .text(""), .text("æ"),
      .literal("literal"),
    ]
    try database.each("SELECT ?, ?, ?, ?, ?, ?, ?, ?", values) { (row) throws(Failure) in
      expect((0..<8).map { row.isNull($0) }, equals: [true] + [Bool](repeating: false, count: 7))
      expect(row.int(ifPresent: 0), equals: nil)
      expect(row.blob(ifPresent: 0), equals: nil)
      expect(row.text(ifPresent: 0), equals: nil)
      expect((row.integer(1), row.integer(2)) == (.min, .max))
      expect((row.integer(0), row.integer(3), row.integer(5)) == (nil, nil, nil))
      expect((row.blob(ifPresent: 3), row.blob(4)) == ([], [0, 1]))
      expect((row.text(5), row.text(6), row.text(7)) == ("", "æ", "literal"))
      return true
    }
  }

  @Test func aNumberThatTheLibraryCannotHaveStoredIsDamage() throws {
    let folder = try TemporaryFolder()
    let values: [(Value, isTime: Bool, isCount: Bool)] = [
      (.int(1 << 56), true, false), (.int(-1 << 56), true, false), (.int(1 << 52), true, true),
      (.int(0), true, true), (.int(-1), true, false), (.int(1 << 56 + 1), false, false),
      (.int(Int64.max), false, false), (.int(Int64.min), false, false), (.text("1"), false, false),
      (.blob([1]), false, false), (.null, false, false),
    ]
    for (value, isTime, isCount) in values {
      let database = try folder.open()
      func isRead(_ read: (Row) -> Int64) -> Bool {
        do throws(Failure) {
          _ = try database.first("SELECT ?", value) { (row) throws(Failure) in read(row) }
          return true
        } catch { return error.code != .storageDamaged }
      }
      expect(isRead { $0.int(0) }, equals: isTime, "\(value)")
      expect(isRead { $0.count(0) }, equals: isCount, "\(value)")
      expect(database.isDamaged, equals: !(isTime && isCount), "\(value)")
      // The next statement is read as if nothing had been.
      try expect(database.first("SELECT 5") { (row) throws(Failure) in row.count(0) }, equals: 5)
    }
  }

  @Test func aStatementIsReadToItsEndOrAsFarAsAsked() throws {
    let folder = try TemporaryFolder()
    let database = try folder.open()
    let sql: StaticCString = "SELECT column1 FROM (VALUES (1), (2), (3))"
    try expect(database.all(sql) { (row) throws(Failure) in row.int(0) }, equals: [1, 2, 3])
    try expect(database.first(sql) { (row) throws(Failure) in row.int(0) }, equals: 1)
    try expect(database.exists(sql))
    try expect(!database.exists("SELECT 1 WHERE 0"))
    // The statement was reset, so it begins again.
    try expect(database.all(sql) { (row) throws(Failure) in row.int(0) }, equals: [1, 2, 3])
    expect(database.openStatements, equals: 0)
  }

  @Test func aRunReturnsTheNumberOfChangedRows() throws {
    let folder = try TemporaryFolder()
    let database = try folder.open()
    try QueueTable(database).fill(3)
    try expect(database.run("UPDATE queue SET history = 1 WHERE seq > ?", .int(1)), equals: 2)
    try expect(database.run("UPDATE queue SET history = 1 WHERE seq > ?", .int(9)), equals: 0)
  }

  @Test func aStatementThatTheSchemaDoesNotKnowIsDamage() throws {
    let folder = try TemporaryFolder()
    let database = try folder.open()
    expect(!database.isDamaged)
    do {
      _ = try database.run("SELECT shape FROM queue")
      Issue.record("it ran")
    } catch {
      expect(error.code, equals: .storageDamaged)
    }
    expect(database.isDamaged)
    expect(!database.isSuspect)
  }

  @Test func aFailureCarriesTheExtendedCodeOfSQLite() throws {
    let folder = try TemporaryFolder()
    let database = try folder.open()
    let failure = #expect(throws: Failure.self) {
      try database.run("INSERT INTO session(id, generation) VALUES (1, 0)")
    }
    expect(failure?.detail?["sqlite"]?.int, equals: Int64(SQLITE_CONSTRAINT | 6 << 8))
  }

  /// A rollback needs memory. Until it succeeds, no statement may become a part of what has failed.
  @Test func aTransactionWhoseRollbackFailsIsRolledBackBeforeTheNextStatement() throws {
    let folder = try TemporaryFolder()
    let database = try folder.open()
    let meta = MetaTable(database)
    sqlite3_set_authorizer(
      database.connection,
      { _, action, name, _, _, _ in
        let isRollback =
          action == SQLITE_TRANSACTION && name.map { String(cString: $0) } == "ROLLBACK"
        return isRollback ? SQLITE_DENY : SQLITE_OK
      }, nil)
    for _ in 0..<2 {
      #expect(throws: Failure.self) {
        try database.transaction { () throws(Failure) in
          try meta.set(.retryGroup, .int(5))
          throw Failure(.internalDefect, "on purpose")
        }
      }
      #expect(throws: Failure.self) { try meta.set(.uploads, .int(1)) }
    }
    sqlite3_set_authorizer(database.connection, nil, nil)
    try meta.set(.uploads, .int(2))
    let other = MetaTable(try folder.open())
    try expect(other.int(.uploads), equals: 2)
    try expect(other.int(.retryGroup), equals: nil)
  }

  /// A disk that fails is no damage to the file.
  @Test(
    arguments: [
      ("Tree 5 page 3: unable to get the page. error code=10", SQLITE_IOERR),
      ("unable to get the page. error code=266", SQLITE_IOERR), ("=522", SQLITE_IOERR),
      ("unable to get the page. error code=7", SQLITE_NOMEM), ("error code=3082", SQLITE_IOERR),
      ("error code=11", SQLITE_CORRUPT), ("error code=", SQLITE_OK),
    ] as [(String, Int32)])
  func theChecksLineNamesAnErrorsClass(line: String, code: Int32) {
    for wanted in [SQLITE_OK, SQLITE_IOERR, SQLITE_NOMEM, SQLITE_CORRUPT] {
      expect(Database.names(wanted, in: Array(line.utf8)), equals: (wanted == code))
    }
  }

  @Test(arguments: ["", "10", "row 10 missing from index queue_held", "code=10 ", "code 10", "ok"])
  func aLineWithoutACodeNamesNoError(line: String) {
    expect(!Database.names(SQLITE_IOERR, in: Array(line.utf8)))
  }

  @Test func aClosedFileFailsEveryCall() throws {
    let folder = try TemporaryFolder()
    let database = try folder.open()
    database.close()
    expect(!database.isOpen)
    expect(database.version, equals: nil)
    do {
      _ = try SessionTable(database).read()
      Issue.record("it was read")
    } catch {
      expect(error.code, equals: .storageFailed)
    }
  }

  @Test func aFlushEmptiesTheLog() throws {
    let folder = try TemporaryFolder()
    let database = try folder.open()
    func logSize() throws -> Int? {
      try FileManager.default.attributesOfItem(atPath: database.path + "-wal")[.size] as? Int
    }
    try expect(logSize() != 0)
    try database.flush()
    try expect(logSize(), equals: 0)
  }
}
