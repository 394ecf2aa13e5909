import Base

extension Schema {
  /// `holdfast.db`: everything that must not be lost. Sequence, state, attempts, times and sizes are in clear;
  /// identifiers are keyed tags; everything else is sealed. An item of a kind that the user lists (`OwnRows`) has
  /// the tag of its list, and the time by which it is listed.
  public static var main: Schema {
    Schema(
      statements: """
        CREATE TABLE meta(name TEXT PRIMARY KEY, value) WITHOUT ROWID;
        CREATE TABLE session(
          id INTEGER PRIMARY KEY CHECK (id = 1),
          generation INTEGER NOT NULL,
          owner BLOB,
          ended TEXT,
          wrap_session BLOB, wrap_biometric BLOB,
          tokens BLOB, choice BLOB, memberships BLOB, cache_key BLOB,
          authenticated_ms INTEGER NOT NULL DEFAULT 0,
          authenticated_monotonic_ms INTEGER, authenticated_boot TEXT,
          validated_ms INTEGER NOT NULL DEFAULT 0,
          validated_offset_ms INTEGER NOT NULL DEFAULT 0,
          validated_monotonic_ms INTEGER, validated_boot TEXT,
          expires_ms INTEGER NOT NULL DEFAULT 0,
          memberships_ms INTEGER NOT NULL DEFAULT 0,
          locked INTEGER NOT NULL DEFAULT 0,
          intent_ms INTEGER NOT NULL DEFAULT 0,
          background_wall_ms INTEGER, background_monotonic_ms INTEGER, background_boot TEXT,
          seen_wall_ms INTEGER NOT NULL DEFAULT 0);
        INSERT INTO session(id, generation) VALUES (1, 0);
        CREATE TABLE queue(
          seq INTEGER PRIMARY KEY AUTOINCREMENT,
          item BLOB NOT NULL UNIQUE,
          owner BLOB NOT NULL,
          org BLOB NOT NULL,
          batch_key BLOB NOT NULL,
          state INTEGER NOT NULL,
          wait_reason INTEGER NOT NULL DEFAULT 0,
          retry_group INTEGER NOT NULL DEFAULT 0,
          attempts INTEGER NOT NULL DEFAULT 0,
          history INTEGER NOT NULL DEFAULT 0,
          edited INTEGER NOT NULL DEFAULT 0,
          since_ms INTEGER NOT NULL DEFAULT 0,
          not_before_ms INTEGER NOT NULL DEFAULT 0,
          created_ms INTEGER NOT NULL,
          size INTEGER NOT NULL,
          lease BLOB,
          lease_ms INTEGER NOT NULL DEFAULT 0,
          list BLOB,
          listed_ms INTEGER,
          body BLOB NOT NULL,
          rejection BLOB);
        CREATE INDEX queue_ready ON queue(owner, state, retry_group, batch_key, seq);
        CREATE INDEX queue_held ON queue(owner, wait_reason, not_before_ms) WHERE state = 2;
        CREATE INDEX queue_leased ON queue(lease, lease_ms) WHERE state = 1;
        CREATE INDEX queue_attempted ON queue(owner, org)
          WHERE attempts > 0 AND (state < 2 OR state = 2 AND wait_reason NOT IN (1, 6));
        CREATE INDEX queue_listed ON queue(list, listed_ms, item) WHERE list IS NOT NULL;
        CREATE TABLE queue_count(owner BLOB NOT NULL, state INTEGER NOT NULL,
          wait_reason INTEGER NOT NULL, items INTEGER NOT NULL,
          PRIMARY KEY(owner, state, wait_reason)) WITHOUT ROWID;
        CREATE TABLE queue_block(level INTEGER NOT NULL, block INTEGER NOT NULL, owner BLOB NOT NULL,
          org BLOB NOT NULL, sealed BLOB NOT NULL, PRIMARY KEY(level, block, owner, org)) WITHOUT ROWID;
        CREATE TABLE stored_item(seq INTEGER PRIMARY KEY, item BLOB NOT NULL,
          stored_ms INTEGER NOT NULL, fate INTEGER NOT NULL DEFAULT 0);
        CREATE INDEX stored_item_tag ON stored_item(item, stored_ms);
        CREATE TABLE dependency(item BLOB NOT NULL, parent BLOB NOT NULL,
          PRIMARY KEY(item, parent)) WITHOUT ROWID;
        CREATE INDEX dependency_parent ON dependency(parent);
        CREATE TABLE sync_run(owner BLOB PRIMARY KEY, started_ms INTEGER NOT NULL,
          sent INTEGER NOT NULL, parked INTEGER NOT NULL, ids BLOB) WITHOUT ROWID;
        CREATE TABLE notice(number INTEGER PRIMARY KEY, owner BLOB, sealed BLOB NOT NULL);
        CREATE TABLE sign_in(state BLOB PRIMARY KEY, sealed BLOB NOT NULL,
          created_ms INTEGER NOT NULL) WITHOUT ROWID;
        CREATE TABLE revocation(id INTEGER PRIMARY KEY, sealed BLOB NOT NULL,
          attempts INTEGER NOT NULL DEFAULT 0, not_before_ms INTEGER NOT NULL DEFAULT 0,
          lease BLOB, lease_ms INTEGER NOT NULL DEFAULT 0);
        CREATE TABLE lease(name TEXT PRIMARY KEY, holder BLOB NOT NULL,
          expires_ms INTEGER NOT NULL) WITHOUT ROWID;
        CREATE TABLE pause(service TEXT PRIMARY KEY, attempts INTEGER NOT NULL,
          since_ms INTEGER NOT NULL, not_before_ms INTEGER NOT NULL,
          asked INTEGER NOT NULL DEFAULT 0) WITHOUT ROWID;
        """,
      triggers: itemTriggers, version: 1, digest: "gabfr0PW1XaUz_4cRvWmnDb-LDVXF2mVIxwocYPDV8g")
  }

  /// The counts of items by state (`QueueTable+Counts`), the sums of what they count for
  /// (`QueueBlockTable`) and what they depend on follow each change of an item. A parked item counts
  /// for nothing. `QueueTable.insert` counts a new item.
  private static var itemTriggers: StaticCString {
    """
    CREATE TEMP TRIGGER IF NOT EXISTS item_moved AFTER UPDATE OF state, wait_reason ON main.queue
    WHEN old.state IS NOT new.state OR old.wait_reason IS NOT new.wait_reason BEGIN
      UPDATE queue_count SET items = items - 1
      WHERE owner = old.owner AND state = old.state AND wait_reason = old.wait_reason;
      INSERT INTO queue_count(owner, state, wait_reason, items)
      VALUES (new.owner, new.state, new.wait_reason, 1)
      ON CONFLICT(owner, state, wait_reason) DO UPDATE SET items = items + 1;
    END;
    CREATE TEMP TRIGGER IF NOT EXISTS item_parked AFTER UPDATE OF state ON main.queue
    WHEN (old.state = 3) IS NOT (new.state = 3) BEGIN
      DELETE FROM queue_block WHERE level = 0 AND block = old.seq >> 6
        OR level = 1 AND block = old.seq >> 12 OR level = 2 AND block = old.seq >> 18
        OR level = 3 AND block = 0;
    END;
    CREATE TEMP TRIGGER IF NOT EXISTS item_rewritten AFTER UPDATE OF body ON main.queue BEGIN
      DELETE FROM queue_block WHERE level = 0 AND block = old.seq >> 6
        OR level = 1 AND block = old.seq >> 12 OR level = 2 AND block = old.seq >> 18
        OR level = 3 AND block = 0;
    END;
    CREATE TEMP TRIGGER IF NOT EXISTS item_removed AFTER DELETE ON main.queue BEGIN
      UPDATE queue_count SET items = items - 1
      WHERE owner = old.owner AND state = old.state AND wait_reason = old.wait_reason;
      DELETE FROM queue_block WHERE level = 0 AND block = old.seq >> 6
        OR level = 1 AND block = old.seq >> 12 OR level = 2 AND block = old.seq >> 18
        OR level = 3 AND block = 0;
      DELETE FROM dependency WHERE item = old.item;
    END;
    """
  }

  /// `cache.db`: copies of the server's data, in sets of rows: the contacts of an organisation, or the user's own
  /// rows of a kind there. `org` is the tag of the set, and `place` that of its organisation. Rows are numbered as
  /// they arrive, so that a page of a pull writes to few pages of the file. What a search needs is sealed in
  /// blocks, made from the rows. The times of own rows, by which they are listed, are in clear.
  public static var cache: Schema {
    Schema(
      statements: """
        CREATE TABLE contact(number INTEGER PRIMARY KEY, row BLOB NOT NULL, org BLOB NOT NULL,
          version TEXT NOT NULL, round INTEGER NOT NULL, listed_ms INTEGER, sealed BLOB NOT NULL,
          UNIQUE(org, row));
        CREATE INDEX contact_listed ON contact(org, listed_ms, row) WHERE listed_ms IS NOT NULL;
        CREATE TABLE contact_block(org BLOB NOT NULL, number INTEGER NOT NULL, stamp INTEGER NOT NULL,
          sealed BLOB NOT NULL, PRIMARY KEY(org, number)) WITHOUT ROWID;
        CREATE TABLE dataset(org BLOB NOT NULL, name TEXT NOT NULL, place BLOB NOT NULL,
          as_of_ms INTEGER, cursor BLOB,
          reconciled_ms INTEGER, round INTEGER NOT NULL, reconciled BLOB, skipped INTEGER NOT NULL,
          problem TEXT, sealed BLOB, PRIMARY KEY(org, name)) WITHOUT ROWID;
        """,
      triggers: "", version: 1, digest: "KQEt5VQGuVNGm4I-QtBYm8PrWqr9sJV7bRzXxBNNtsM")
  }
}
