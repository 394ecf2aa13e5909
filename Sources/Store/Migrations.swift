public import Base
import Vault

/// A forward-only list of schema changes; `PRAGMA user_version` counts those that a file has, and
/// `PRAGMA application_id` says it again: a flipped bit in one of them is no other version.
public struct Migrations {
  let steps: [StaticString]
  /// `Schema.digest` of what the steps make; nil: not checked.
  private(set) var schema: String?

  init(steps: [StaticString]) { self.steps = steps }

  private func making(_ schema: String) -> Migrations {
    var result = self
    result.schema = schema
    return result
  }

  /// Apply the missing steps, all or none. A file of a newer library is refused
  /// (`storage.newer_version`). A file whose schema is not exactly what the steps make, for example
  /// with a trigger more, is damaged.
  public func apply(to database: Database) throws(Failure) {
    let before = try version(of: database)
    // It was opened for writing, so only its header says so: a flipped bit of the format's version.
    guard database.isWritable else { throw database.damage("the file's header forbids writing") }
    if before != Int64(steps.count) {
      try applyMissing(to: database)
      // What a step has removed goes from the log, too.
      if before > 0 { try database.flush() }
    }
    database.migrations = self
    try database.checkSchema()
  }

  /// Whether a file has the schema that the steps make, or that of a newer library, which has opened the
  /// file meanwhile.
  func fit(_ database: Database) throws(Failure) -> Bool {
    if try version(of: database) != Int64(steps.count) { return true }
    guard let schema, try Schema.digest(of: database) != schema else { return true }
    // Another version of SQLite may have written the texts in another way.
    return try Schema.plain(of: database) == Schema.plain(madeBy: steps)
  }

  private func applyMissing(to database: Database) throws(Failure) {
    try database.transaction { () throws(Failure) in
      let have = try version(of: database)
      if have != Int64(steps.count), try secondVersion(of: database) == Int64(steps.count) {
        return try database.execute("PRAGMA user_version=\(steps.count)")
      }
      guard have <= Int64(steps.count) else {
        throw Failure(.storageNewer, "written by a newer version of this library; update it")
      }
      for step in steps[Int(have)...] { try database.execute(step.description) }
      try database.execute(
        "PRAGMA user_version=\(steps.count); PRAGMA application_id=\(steps.count)")
    }
  }

  private func secondVersion(of database: Database) throws(Failure) -> Int64 {
    try database.first("PRAGMA application_id") { (row) throws(Failure) in row.int(0) } ?? 0
  }

  private func version(of database: Database) throws(Failure) -> Int64 {
    try database.first("PRAGMA user_version") { (row) throws(Failure) in row.int(0) } ?? 0
  }

  /// `holdfast.db`: everything that must not be lost. Sequence, state, attempts, times and sizes
  /// are in clear; identifiers are keyed tags; everything else is sealed.
  public static var main: Migrations {
    Migrations(steps: [
      """
      CREATE TABLE meta(name TEXT PRIMARY KEY, value) WITHOUT ROWID;
      CREATE TABLE session(
        id INTEGER PRIMARY KEY CHECK (id = 1),
        generation INTEGER NOT NULL,
        owner BLOB,
        ended TEXT,
        wrap_device BLOB, wrap_biometric BLOB,
        tokens BLOB, choice BLOB, memberships BLOB,
        authenticated_ms INTEGER NOT NULL DEFAULT 0,
        validated_ms INTEGER NOT NULL DEFAULT 0,
        expires_ms INTEGER NOT NULL DEFAULT 0,
        memberships_ms INTEGER NOT NULL DEFAULT 0,
        locked INTEGER NOT NULL DEFAULT 0,
        rejections INTEGER NOT NULL DEFAULT 0,
        intent_ms INTEGER NOT NULL DEFAULT 0,
        background_wall_ms INTEGER, background_monotonic_ms INTEGER, background_boot TEXT,
        seen_wall_ms INTEGER NOT NULL DEFAULT 0);
      INSERT INTO session(id, generation) VALUES (1, 0);
      CREATE TABLE queue(
        seq INTEGER PRIMARY KEY AUTOINCREMENT,
        item BLOB NOT NULL UNIQUE,
        owner BLOB NOT NULL,
        org BLOB NOT NULL,
        shape BLOB NOT NULL,
        state INTEGER NOT NULL,
        hold INTEGER NOT NULL DEFAULT 0,
        cohort INTEGER NOT NULL DEFAULT 0,
        attempts INTEGER NOT NULL DEFAULT 0,
        denials INTEGER NOT NULL DEFAULT 0,
        not_before_ms INTEGER NOT NULL DEFAULT 0,
        created_ms INTEGER NOT NULL,
        size INTEGER NOT NULL,
        lease BLOB,
        lease_ms INTEGER NOT NULL DEFAULT 0,
        body BLOB NOT NULL,
        verdict BLOB);
      CREATE INDEX queue_ready ON queue(owner, state, cohort, shape, seq);
      CREATE INDEX queue_held ON queue(owner, hold, not_before_ms) WHERE state = 2;
      CREATE INDEX queue_leased ON queue(lease, lease_ms) WHERE state = 1;
      CREATE TABLE dependency(item BLOB NOT NULL, parent BLOB NOT NULL,
        PRIMARY KEY(item, parent)) WITHOUT ROWID;
      CREATE INDEX dependency_parent ON dependency(parent);
      CREATE TABLE drain(owner BLOB PRIMARY KEY, started_ms INTEGER NOT NULL,
        sent INTEGER NOT NULL, parked INTEGER NOT NULL) WITHOUT ROWID;
      CREATE TABLE notice(seq INTEGER PRIMARY KEY, owner BLOB, sealed BLOB NOT NULL);
      CREATE TABLE sign_in(state BLOB PRIMARY KEY, sealed BLOB NOT NULL,
        created_ms INTEGER NOT NULL) WITHOUT ROWID;
      CREATE TABLE revocation(id INTEGER PRIMARY KEY, sealed BLOB NOT NULL,
        attempts INTEGER NOT NULL DEFAULT 0, not_before_ms INTEGER NOT NULL DEFAULT 0,
        lease BLOB, lease_ms INTEGER NOT NULL DEFAULT 0);
      CREATE TABLE lease(name TEXT PRIMARY KEY, holder BLOB NOT NULL,
        expires_ms INTEGER NOT NULL) WITHOUT ROWID;
      CREATE TABLE backoff(service TEXT PRIMARY KEY, attempts INTEGER NOT NULL,
        not_before_ms INTEGER NOT NULL) WITHOUT ROWID;
      """,
      // Renames only. Columns keep their positions, because salvage decodes by position.
      """
      ALTER TABLE queue RENAME COLUMN shape TO batch_key;
      ALTER TABLE queue RENAME COLUMN hold TO wait_reason;
      ALTER TABLE queue RENAME COLUMN cohort TO retry_group;
      ALTER TABLE queue RENAME COLUMN verdict TO rejection;
      ALTER TABLE drain RENAME TO sync_run;
      ALTER TABLE notice RENAME TO durable_event;
      UPDATE meta SET name = 'retry_group' WHERE name = 'cohort';
      UPDATE meta SET name = 'last_sync_run_ms' WHERE name = 'last_drain_ms';
      UPDATE meta SET name = 'needs_erase' WHERE name = 'erase_owed';
      """,
      // When the server confirmed the session, by every clock; refusals are no longer counted. The ids
      // of a run's items. Handles of version 2 could set the counter of events back.
      """
      ALTER TABLE session RENAME COLUMN rejections TO validated_offset_ms;
      ALTER TABLE session ADD COLUMN validated_monotonic_ms INTEGER;
      ALTER TABLE session ADD COLUMN validated_boot TEXT;
      UPDATE session SET validated_offset_ms = 0;
      ALTER TABLE sync_run ADD COLUMN ids BLOB;
      UPDATE meta SET value = max(value, (SELECT ifnull(max(seq), 0) FROM durable_event))
        WHERE name = 'event_seq';
      """,
      // Each purpose of a request backs off for itself; `asked`: the server asked for the pause.
      """
      ALTER TABLE backoff ADD COLUMN asked INTEGER NOT NULL DEFAULT 0;
      UPDATE backoff SET service = 'upload' WHERE service = 'rest';
      UPDATE backoff SET service = 'refresh' WHERE service = 'auth';
      """,
      // The last items that were stored.
      """
      CREATE TABLE stored_item(seq INTEGER PRIMARY KEY, item BLOB NOT NULL,
        stored_ms INTEGER NOT NULL);
      CREATE INDEX stored_item_tag ON stored_item(item, stored_ms);
      """,
      // When the user last proved to be present, by the monotonic clock.
      """
      ALTER TABLE session ADD COLUMN authenticated_monotonic_ms INTEGER;
      ALTER TABLE session ADD COLUMN authenticated_boot TEXT;
      """,
      // How much speaks for it that something on the way to the service refuses an item.
      """
      ALTER TABLE queue ADD COLUMN blocks INTEGER NOT NULL DEFAULT 0;
      """,
      // `session` wraps the vault key instead of `device`, and the cache has a key of its own. Where the
      // biometric key opens the session, the old wrap goes now; elsewhere `Lock` replaces it.
      """
      ALTER TABLE session RENAME COLUMN wrap_device TO wrap_session;
      ALTER TABLE session ADD COLUMN cache_key BLOB;
      UPDATE session SET wrap_session = NULL WHERE wrap_biometric IS NOT NULL;
      """,
      // Cancelled items are remembered beside the stored ones.
      """
      ALTER TABLE stored_item ADD COLUMN fate INTEGER NOT NULL DEFAULT 0;
      """,
      // Items are counted as they move (`QueueTable+Counts`), and those in doubt have an index.
      """
      CREATE TABLE queue_count(owner BLOB NOT NULL, state INTEGER NOT NULL,
        wait_reason INTEGER NOT NULL, items INTEGER NOT NULL,
        PRIMARY KEY(owner, state, wait_reason)) WITHOUT ROWID;
      INSERT INTO queue_count
        SELECT owner, CASE WHEN state IN (1, 3) THEN state ELSE 0 END AS place, 0, count(*)
        FROM queue INDEXED BY queue_ready WHERE state <> 2 GROUP BY owner, place;
      INSERT INTO queue_count
        SELECT owner, 2, CASE WHEN wait_reason IN (1, 2, 3, 5, 6) THEN wait_reason ELSE 4 END AS place,
          count(*)
        FROM queue INDEXED BY queue_held WHERE state = 2 GROUP BY owner, place;
      CREATE INDEX queue_doubt ON queue(owner, org)
        WHERE attempts > 0 AND (state < 2 OR state = 2 AND wait_reason NOT IN (1, 6));
      """,
      // Sums over what is queued, for the summary.
      """
      CREATE TABLE queue_block(level INTEGER NOT NULL, block INTEGER NOT NULL, owner BLOB NOT NULL,
        org BLOB NOT NULL, sealed BLOB NOT NULL, PRIMARY KEY(level, block, owner, org)) WITHOUT ROWID;
      """,
    ]).making("usXcxCf4jWs7BR2RtYTH5AkBm4rXzKeQeyGrxWpn4ns")
  }

  /// `cache.db`: copies of the server's data.
  public static var cache: Migrations {
    Migrations(steps: [
      """
      CREATE TABLE contact(row BLOB PRIMARY KEY, org BLOB NOT NULL, sealed BLOB NOT NULL)
        WITHOUT ROWID;
      CREATE INDEX contact_org ON contact(org);
      CREATE TABLE source(org BLOB NOT NULL, name TEXT NOT NULL, cursor BLOB,
        as_of_ms INTEGER NOT NULL, reconciled_ms INTEGER NOT NULL DEFAULT 0, sealed BLOB,
        PRIMARY KEY(org, name)) WITHOUT ROWID;
      """,
      // Version 1 did not store the rows' versions, so the cached data is dropped and fetched
      // again.
      """
      DROP TABLE contact;
      DROP TABLE source;
      CREATE TABLE contact(row BLOB PRIMARY KEY, org BLOB NOT NULL, version TEXT NOT NULL,
        round INTEGER NOT NULL, sealed BLOB NOT NULL) WITHOUT ROWID;
      CREATE INDEX contact_org ON contact(org, round);
      CREATE TABLE dataset(org BLOB NOT NULL, name TEXT NOT NULL, as_of_ms INTEGER, cursor BLOB,
        reconciled_ms INTEGER, round INTEGER NOT NULL, reconciled BLOB, skipped INTEGER NOT NULL,
        problem TEXT, sealed BLOB, PRIMARY KEY(org, name)) WITHOUT ROWID;
      """,
      // Rows of version 2 are sealed with the vault key and do not name their organisation: they are
      // fetched again.
      """
      DELETE FROM contact;
      DELETE FROM dataset;
      """,
      // Rows are numbered as they arrive: before, each page of a pull wrote to nearly every page of the
      // file. What a search needs is sealed in blocks; the first search makes them from the rows.
      """
      ALTER TABLE contact RENAME TO contact_3;
      DROP INDEX contact_org;
      CREATE TABLE contact(number INTEGER PRIMARY KEY, row BLOB NOT NULL UNIQUE, org BLOB NOT NULL,
        version TEXT NOT NULL, round INTEGER NOT NULL, sealed BLOB NOT NULL);
      INSERT INTO contact(row, org, version, round, sealed)
        SELECT row, org, version, round, sealed FROM contact_3;
      DROP TABLE contact_3;
      CREATE INDEX contact_org ON contact(org, round);
      CREATE TABLE contact_block(org BLOB NOT NULL, number INTEGER NOT NULL, stamp INTEGER NOT NULL,
        sealed BLOB NOT NULL, PRIMARY KEY(org, number)) WITHOUT ROWID;
      """,
    ]).making("qFP1KFFK2BEpIhvU6eV6dedBba0XzvSABS6KGGG3Tbk")
  }
}
