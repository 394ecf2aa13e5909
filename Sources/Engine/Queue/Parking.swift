import Base
import Policy
import Store
import Vault

/// Parks items: the user decides what becomes of them.
struct Parking: Rules {
  let parts: Parts

  /// Park the items of a batch.
  func park(
    _ batch: UploadBatch, _ reason: ParkReason, _ now: Instant
  ) throws(Failure) {
    guard !batch.isEmpty else { return }
    var rows: [QueueRow] = []
    for item in batch.items { if let row = try core.queue.find(item.tag) { rows.append(row) } }
    try park(rows, reason, now)
  }

  /// Park items with the reason, each with a notice.
  func park(
    _ rows: [QueueRow], _ reason: ParkReason, _ now: Instant
  ) throws(Failure) {
    let keys = try core.keys()
    try core.database.transaction { () throws(Failure) in
      for row in rows {
        let key = try keys.queues.derived(for: row.owner)
        let item = try row.read(key)
        if let item, item.isRevised || reason.code == MessageCode.unknownOutcome.rawValue {
          try core.queue.noteCounted(item, row, key)
        }
        try core.queue.transition(
          row.sequence, .parked(rejection: try reason.sealed(for: row, key)))
        try core.syncRuns.count(of: row.owner, sent: 0, parked: 1, now: try core.steadyToStore(now))
        try notices.add(
          "item_parked", reason: reason.code,
          ["id": .uuid(item?.id ?? row.substituteID), "field": JSON(reason.field)],
          owner: row.owner)
        try syncRuns.endIfDone(row.owner, now)
      }
    }
  }
}

extension QueueTable {
  /// The server may have this item. The summary is read while the item is parked or waits for hours, and
  /// may count it: see `Registered`.
  func noteCounted(_ item: QueueItem, _ row: QueueRow, _ key: Key) throws(Failure) {
    if item.mayBeCounted { return }
    item.mayBeCounted = true
    (row.body, row.size) = try item.sealed(row.item, row.owner, key, isAccepted: true)
    try write(row)
  }
}
