import Base
import CSQLite
import TestSupport
import Testing

@testable import Store

@Suite struct MigrationsTests {
  /// A main file as version 1 of the schema left it, with a row in every renamed table.
  private func firstVersion(_ folder: TemporaryFolder) throws -> Database {
    let database = try Database(path: folder.path + "/test.db", .full)
    try Migrations(steps: [Migrations.main.steps[0]]).apply(to: database)
    let (item, parent, tag) = (hex(1), hex(2), hex(9))
    try database.execute(
      """
      INSERT INTO queue(seq, item, owner, org, shape, state, hold, cohort, attempts, denials,
        not_before_ms, created_ms, size, lease, lease_ms, body, verdict)
      VALUES (7, \(item), \(tag), \(tag), \(tag), 2, 1, 0, 3, 1, 0, 50, 4, NULL, 0, x'0102', NULL),
        (8, \(parent), \(tag), \(tag), \(tag), 3, 0, 6, 5, 2, 0, 60, 4, NULL, 0, x'03', x'04'),
        (9, \(hex(3)), \(tag), \(tag), \(tag), 2, 2, 0, 0, 0, 900, 70, 4, NULL, 0, x'05', NULL),
        (10, \(hex(4)), \(tag), \(tag), \(tag), 1, 0, 0, 0, 0, 0, 80, 4, x'11', 500, x'06', NULL);
      INSERT INTO dependency VALUES (\(item), \(parent));
      INSERT INTO drain VALUES (\(tag), 10, 20, 30);
      INSERT INTO notice VALUES (5, \(tag), x'07');
      INSERT INTO meta VALUES ('cohort', 6), ('last_drain_ms', 40), ('erase_owed', 1),
        ('event_seq', 5);
      INSERT INTO backoff VALUES ('rest', 3, 700), ('auth', 1, 100), ('pull', 2, 50);
      UPDATE session SET generation = 12;
      """)
    return database
  }

  private func hex(_ byte: UInt8) -> String {
    "x'" + String(repeating: (byte < 16 ? "0" : "") + String(byte, radix: 16), count: 16) + "'"
  }

  @Test func aFileOfVersion1KeepsItsRowsUnderTheNewNames() throws {
    let folder = try TemporaryFolder()
    try firstVersion(folder).close()
    let database = try folder.open()
    let queue = QueueTable(database)
    let child = try #require(try queue.find(tag(1)))
    expect(child.sequence, equals: 7)
    expect(child.state, equals: .waiting(.dependency))
    expect(child.batchKey, equals: tag(9))
    expect((child.attempts, child.denials) == (3, 1))
    expect((child.createdMS, child.size) == (50, 4))
    expect(child.body, equals: [1, 2])
    let parked = try #require(try queue.find(tag(2)))
    expect(parked.state, equals: .parked)
    expect(parked.retryGroup, equals: 6)
    expect(parked.rejection, equals: [4])
    try expect(queue.find(tag(3))?.state, equals: .waiting(.time(until: 900)))
    try expect(queue.leases().map { $0.until }, equals: [500])
    expect((child.blocks, parked.blocks) == (0, 0))
    try expect(DependencyTable(database).waitsForParked(tag(1)))
    let stored = StoredItemTable(database)
    try stored.add([tag(5)], .cancelled, now: 60, limit: 9, since: 0)
    try expect(stored.find(tag(5), since: 0), equals: StoredItemTable.Record(.cancelled, ms: 60))
    let run = try #require(try SyncRunTable(database).find(of: tag(9)))
    expect((run.started, run.sent, run.parked) == (10, 20, 30))
    expect(run.ids, equals: nil)
    try expect(
      DurableEventTable(database).hasAny(
        for: tag(9), after: EventCursor(common: 9, own: 4)))
    let meta = MetaTable(database)
    try expect(meta.int(.retryGroup), equals: 6)
    try expect(meta.int(.lastSyncRun), equals: 40)
    try expect(meta.int(.needsErase), equals: 1)
    try expect(meta.int(.eventSequence), equals: 5)
    try expect(SessionTable(database).read().generation, equals: 12)
    try expect(database.isSound())
  }

  /// Up to version 8 only stored items were remembered.
  @Test func itemsThatWereRememberedWereStored() throws {
    let folder = try TemporaryFolder()
    let old = try Database(path: folder.path + "/test.db", .full)
    try Migrations(steps: Array(Migrations.main.steps[..<8])).apply(to: old)
    try old.execute("INSERT INTO stored_item(item, stored_ms) VALUES (\(hex(5)), 60)")
    old.close()
    let stored = StoredItemTable(try folder.open())
    try expect(stored.find(tag(5), since: 0), equals: StoredItemTable.Record(.stored, ms: 60))
  }

  @Test func theCounterOfEventsIsNotBelowAStoredEvent() throws {
    let folder = try TemporaryFolder()
    let old = try firstVersion(folder)
    try old.execute("INSERT INTO notice VALUES (8, NULL, x'09')")
    old.close()
    try expect(MetaTable(try folder.open()).next(.eventSequence), equals: 9)
  }

  @Test func pausesOfVersion1BelongToUploadAndRefresh() throws {
    let folder = try TemporaryFolder()
    try firstVersion(folder).close()
    let entries = try BackoffTable(try folder.open()).all().sorted { $0.purpose < $1.purpose }
    expect(entries.map { $0.purpose }, equals: ["pull", "refresh", "upload"])
    expect(entries.map { $0.attempts }, equals: [2, 1, 3])
    expect(entries.map { $0.notBefore }, equals: [50, 100, 700])
    expect(entries.allSatisfy { !$0.isAsked })
  }

  @Test func theIndexesOfVersion1ServeTheSameStatements() throws {
    let folder = try TemporaryFolder()
    try firstVersion(folder).close()
    let database = try folder.open()
    func plan(_ sql: StaticCString) throws -> String {
      try database.all(sql) { (row) throws(Failure) in row.text(3) }.joined(separator: "; ")
    }
    try expect(
      plan(
        """
        EXPLAIN QUERY PLAN SELECT batch_key, retry_group FROM queue WHERE owner = x'' AND state = 0
        ORDER BY retry_group, batch_key, seq LIMIT 1
        """
      ).contains("queue_ready"))
    try expect(
      plan(
        """
        EXPLAIN QUERY PLAN SELECT min(not_before_ms) FROM queue
        WHERE owner = x'' AND state = 2 AND wait_reason = 2
        """
      ).contains("queue_held (owner=? AND wait_reason=?"))
    try expect(
      plan("EXPLAIN QUERY PLAN SELECT seq FROM queue WHERE state = 1 AND lease = x''").contains(
        "queue_leased (lease=?"))
  }

  /// Version 2 counted refusals of the server where version 3 has the clock's offset.
  @Test func theSessionOfAnOlderFileIsKeptAndItsRefusalsAreForgotten() throws {
    let folder = try TemporaryFolder()
    let database = try Database(path: folder.path + "/test.db", .full)
    try Migrations(steps: Array(Migrations.main.steps.prefix(2))).apply(to: database)
    try database.execute(
      """
      UPDATE session SET generation = 12, owner = \(hex(1)), tokens = x'02', validated_ms = 700,
        rejections = 3, seen_wall_ms = 900, background_boot = 'boot';
      """)
    try database.flush()
    var found: [SessionRow] = []
    try Salvage(path: database.path).each { (record) throws(Failure) in
      if let row = SessionRow(record) { found.append(row) }
    }
    database.close()
    found.append(try SessionTable(try folder.open()).read())
    expect(found.map { $0.validatedOffsetMS }, equals: [3, 0])
    for row in found {
      expect((row.generation, row.owner, row.tokens) == (12, tag(1), [2]))
      expect((row.validatedMS, row.seenWallMS, row.backgroundBoot) == (700, 900, "boot"))
      expect(row.validatedMonotonicMS, equals: nil)
      expect(row.validatedBoot, equals: nil)
      expect(row.authenticatedMonotonicMS, equals: nil)
      expect(row.authenticatedBoot, equals: nil)
    }
  }

  @Test(arguments: 1...Migrations.main.steps.count)
  func theSessionOfEveryVersionIsSalvaged(version: Int) throws {
    let folder = try TemporaryFolder()
    let database = try Database(path: folder.path + "/test.db", .full)
    try Migrations(steps: Array(Migrations.main.steps.prefix(version))).apply(to: database)
    try database.execute(
      """
      UPDATE session SET generation = 12, owner = \(hex(1)), tokens = x'02', intent_ms = 600,
        seen_wall_ms = 900;
      """)
    try database.flush()
    var found: [SessionRow] = []
    try Salvage(path: database.path).each { (record) throws(Failure) in
      if let row = SessionRow(record) { found.append(row) }
    }
    let row = try #require(found.first)
    expect(found.count, equals: 1)
    expect((row.generation, row.owner, row.tokens) == (12, tag(1), [2]))
    expect((row.intentMS, row.seenWallMS) == (600, 900))
  }

  /// Two processes of a new version find the old file at the same time.
  @Test func whatAnotherProcessHasMigratedMeanwhileIsDone() throws {
    let folder = try TemporaryFolder()
    let (ours, theirs) = (
      try Database(path: folder.path + "/test.db", .full),
      try Database(path: folder.path + "/test.db", .full)
    )
    let steps = Migrations.main.steps
    try theirs.execute("BEGIN IMMEDIATE")
    for step in steps { try theirs.execute(step.description) }
    try theirs.execute("PRAGMA user_version=\(steps.count); PRAGMA application_id=\(steps.count)")
    // We have read that all steps are missing, and wait for the lock.
    sqlite3_busy_handler(
      ours.connection,
      { theirs, _ in sqlite3_exec(OpaquePointer(theirs), "COMMIT", nil, nil, nil) == 0 ? 1 : 0 },
      UnsafeMutableRawPointer(theirs.connection))
    try Migrations.main.apply(to: ours)
    try expect(SessionTable(ours).read().generation, equals: 0)
  }

  /// `device` wrapped the vault key up to version 6. The biometric key opens such a session; without one
  /// the engine takes the wrap over.
  @Test(arguments: [false, true])
  func aWrapByTheDeviceKeyStaysOnlyWithoutABiometricOne(_ hasBiometric: Bool) throws {
    let folder = try TemporaryFolder()
    let database = try Database(path: folder.path + "/test.db", .full)
    try Migrations(steps: Array(Migrations.main.steps.prefix(6))).apply(to: database)
    try database.execute(
      """
      UPDATE session SET generation = 12, owner = \(hex(1)), tokens = x'02', wrap_device = x'03',
        wrap_biometric = \(hasBiometric ? "x'04'" : "NULL");
      """)
    try database.flush()
    var found: [SessionRow] = []
    try Salvage(path: database.path).each { (record) throws(Failure) in
      if let row = SessionRow(record) { found.append(row) }
    }
    database.close()
    found.append(try SessionTable(try folder.open()).read())
    expect(found.count, equals: 2)
    for row in found {
      expect(row.wrapSession, equals: (hasBiometric ? nil : [3]))
      expect(row.wrapBiometric, equals: (hasBiometric ? [4] : nil))
      expect(row.cacheKey, equals: nil)
    }
  }

  // MARK: The schema

  @Test(arguments: [false, true])
  func theSchemaIsExactlyWhatTheStepsMake(_ isCache: Bool) throws {
    let migrations = isCache ? Migrations.cache : Migrations.main
    let folder = try TemporaryFolder()
    let database = try Database(path: folder.path + "/test.db", .full)
    try Migrations(steps: migrations.steps).apply(to: database)
    try expect(Schema.digest(of: database), equals: migrations.schema)
    try migrations.apply(to: database)
  }

  @Test(arguments: [
    "CREATE TABLE more(x)", "CREATE INDEX more ON queue(size)", "DROP INDEX queue_held",
    "CREATE VIEW more AS SELECT 1", "ALTER TABLE lease ADD COLUMN more",
    "CREATE TRIGGER more AFTER DELETE ON queue BEGIN SELECT 1; END",
  ])
  func anotherSchemaIsDamage(_ change: String) throws {
    let folder = try TemporaryFolder()
    let database = try folder.open()
    try database.execute(change)
    var found: ErrorCode?
    do throws(Failure) { try Migrations.main.apply(to: database) } catch { found = error.code }
    expect(found, equals: .storageDamaged)
  }

  @Test func rowsOfAVersion1FileAreSalvaged() throws {
    let folder = try TemporaryFolder()
    let database = try firstVersion(folder)
    try database.flush()
    var found: [QueueRow] = []
    try Salvage(path: database.path).each { (record) throws(Failure) in
      if let row = QueueRow(record) { found.append(row) }
    }
    expect(found.map { $0.item }, equals: [tag(1), tag(2), tag(3), tag(4)])
    expect(
      found.map { $0.state },
      equals: [.waiting(.dependency), .parked, .waiting(.time(until: 900)), .pending])
    expect(found.map { $0.rejection }, equals: [nil, [4], nil, nil])
    expect(found.map { $0.createdMS }, equals: [50, 60, 70, 80])
    expect(found.map { $0.blocks }, equals: [0, 0, 0, 0])
  }

  /// A new column does not rewrite old rows: those have fewer values than the table has columns.
  @Test func rowsOfSeveralVersionsInOneFileAreSalvaged() throws {
    let folder = try TemporaryFolder()
    try firstVersion(folder).close()
    let database = try folder.open()
    let row = queueRow(1)
    row.blocks = 6
    row.state = .waiting(.blocked(until: 77))
    _ = try QueueTable(database).insert(row)
    try database.flush()
    var found: [QueueRow] = []
    try Salvage(path: database.path).each { (record) throws(Failure) in
      if let row = QueueRow(record) { found.append(row) }
    }
    expect(found.map { $0.blocks }, equals: [0, 0, 0, 0, 6])
    expect(found.last?.state, equals: .waiting(.blocked(until: 77)))
  }
}
