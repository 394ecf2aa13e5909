import Base
import TestSupport
import Testing

@testable import Store

/// Every stored time is of one of these clocks. What is waited for is in steady time: a new column
/// that holds an end or a start in the device's time would wait for as long as the clock was wrong.
@Suite struct TimeColumnsTests {
  private enum TimeOf: CaseIterable {
    /// `SteadyTime`: the type of the tables' functions keeps other times out.
    case steady
    /// Records that are shown, and whose age by the device's clock hurries something at most.
    case device
    /// Within the boot that is stored beside it.
    case monotonic
    case server
    /// What the user says, by which items are listed: nothing waits for it.
    case item
    /// A difference.
    case none
  }

  private let columns: [String: TimeOf] = [
    "pause.not_before_ms": .steady, "lease.expires_ms": .steady, "queue.lease_ms": .steady,
    "queue.not_before_ms": .steady, "queue.since_ms": .steady, "pause.since_ms": .steady,
    "revocation.lease_ms": .steady,
    "revocation.not_before_ms": .steady, "sign_in.created_ms": .steady,
    "sync_run.started_ms": .steady,

    "queue.created_ms": .device, "session.authenticated_ms": .device,
    "session.background_wall_ms": .device, "session.intent_ms": .device,
    "session.memberships_ms": .device, "session.seen_wall_ms": .device,
    "session.validated_ms": .device, "dataset.as_of_ms": .device, "dataset.reconciled_ms": .device,

    "session.authenticated_monotonic_ms": .monotonic,
    "session.background_monotonic_ms": .monotonic, "session.validated_monotonic_ms": .monotonic,
    "session.expires_ms": .server, "stored_item.stored_ms": .server,
    "contact.listed_ms": .item, "queue.listed_ms": .item,
    "session.validated_offset_ms": .none,
  ]

  @Test func everyTimeColumnHasItsClock() throws {
    let folder = try TemporaryFolder()
    var found: [String] = []
    for database in [try folder.open(), try folder.openCache()] {
      found += try database.all(
        """
        SELECT t.name || '.' || c.name FROM sqlite_schema t, pragma_table_info(t.name) c
        WHERE t.type = 'table' AND c.name LIKE '%\\_ms' ESCAPE '\\'
        """
      ) { (row) throws(Failure) in row.text(0) }
    }
    expect(found.sorted(), equals: columns.keys.sorted())
  }
}
