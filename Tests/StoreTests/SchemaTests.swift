import Base
import CSQLite
import TestSupport
import Testing

@testable import Store

@Suite struct SchemaTests {
  @Test(arguments: [false, true])
  func theTablesAreExactlyWhatTheStatementsMake(_ isCache: Bool) throws {
    let schema = isCache ? Schema.cache : Schema.main
    let folder = try TemporaryFolder()
    let database = try Database(path: folder.path + "/test.db", .full)
    try database.execute(schema.statements.description)
    try expect(Schema.digest(of: database), equals: schema.digest.description)
  }

  @Test(arguments: [
    "CREATE TABLE more(x)", "CREATE INDEX more ON queue(size)", "DROP INDEX queue_held",
    "CREATE VIEW more AS SELECT 1", "ALTER TABLE lease ADD COLUMN more",
    "CREATE TRIGGER more AFTER DELETE ON queue BEGIN SELECT 1; END",
  ])
  func otherTablesAreDamage(_ change: String) throws {
    let folder = try TemporaryFolder()
    let database = try folder.open()
    try database.execute(change)
    var found: ErrorCode?
    do throws(Failure) { try Schema.main.apply(to: database) } catch { found = error.code }
    expect(found, equals: .storageDamaged)
  }

  @Test func theIndexesServeTheirStatements() throws {
    let folder = try TemporaryFolder()
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
    // As the triggers remove sums.
    try expect(
      plan(
        """
        EXPLAIN QUERY PLAN DELETE FROM queue_block WHERE level = 0 AND block = 5
          OR level = 3 AND block = 0
        """
      ).contains("(level=? AND block=?)"))
  }

  /// Two processes find a new file at the same time.
  @Test func tablesThatAnotherProcessHasMadeMeanwhileAreKept() throws {
    let folder = try TemporaryFolder()
    let (ours, theirs) = (
      try Database(path: folder.path + "/test.db", .full),
      try Database(path: folder.path + "/test.db", .full)
    )
    let schema = Schema.main
    try theirs.execute("BEGIN IMMEDIATE")
    try theirs.execute(schema.statements.description)
    try theirs.execute(
      "PRAGMA user_version=\(schema.version); PRAGMA application_id=\(schema.version)")
    // We have read that the tables are missing, and wait for the lock.
    sqlite3_busy_handler(
      ours.connection,
      { theirs, _ in sqlite3_exec(OpaquePointer(theirs), "COMMIT", nil, nil, nil) == 0 ? 1 : 0 },
      UnsafeMutableRawPointer(theirs.connection))
    try schema.apply(to: ours)
    try expect(SessionTable(ours).read().generation, equals: 0)
  }
}
