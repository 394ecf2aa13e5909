import Base

/// A queued item as it is stored.
public final class QueueRow {
  /// The number in the order of registration; 0: it has none yet.
  public var sequence: Int64 = 0
  public var item: [UInt8] = []
  public var owner: [UInt8] = []
  public var org: [UInt8] = []
  /// Items with the same key may share a request.
  public var batchKey: [UInt8] = []
  public var state: ItemState = .pending
  public var retryGroup: RetryGroup = .noGroup
  public var attempts: Int64 = 0
  public var history: FailureHistory = .clean
  /// The user has edited or cancelled it after it was sent: what was sent is not what is in the row.
  public var isEdited = false
  /// The time for which it waits or waited.
  public var pause: Pause = .none
  public var createdMS: Int64 = 0
  public var size: Int64 = 0
  /// The list that shows the item, and the time by which it does; nil: none does.
  public var list: [UInt8]?
  public var listedMS: Int64?
  public var body: [UInt8] = []
  /// Why the server refused the item, sealed: it is parked, or waits for itself.
  public var rejection: [UInt8]?

  public init() {}

  /// The user has changed the item: what was known of the old content is over. The attempts stay: after one, the
  /// server may have the old content. An item that is being sent, or waits for its organisation, goes on.
  public func beginAnew() {
    rejection = nil
    retryGroup = .noGroup
    history = .clean
    pause = .none
    if state != .sending, state != .waiting(.organisation) { state = .pending }
  }

  /// The table's columns, in their order: `SELECT *` has the same positions.
  private enum Column: Int32 {
    case sequence, item, owner, org, batchKey, state, waitReason, retryGroup
    case attempts, history, edited, sinceMS, notBeforeMS, createdMS, size, lease, leaseMS, list,
      listedMS
    case body, rejection
  }

  /// A row of `SELECT * FROM queue`.
  init(_ row: Row) {
    sequence = row.count(Column.sequence)
    item = row.blob(Column.item)
    owner = row.blob(Column.owner)
    org = row.blob(Column.org)
    batchKey = row.blob(Column.batchKey)
    pause = Pause(
      since: SteadyTime(ms: row.int(Column.sinceMS)),
      until: SteadyTime(ms: row.int(Column.notBeforeMS)))
    state =
      ItemState(
        code: row.integer(Column.state), waitReason: row.integer(Column.waitReason), pause)
      ?? .pending
    retryGroup = RetryGroup(row.count(Column.retryGroup))
    attempts = row.count(Column.attempts)
    history = FailureHistory(row.int(Column.history))
    isEdited = row.int(Column.edited) != 0
    createdMS = row.int(Column.createdMS)
    size = row.count(Column.size)
    list = row.blob(ifPresent: Column.list)
    listedMS = row.int(ifPresent: Column.listedMS)
    body = row.blob(Column.body)
    rejection = row.blob(ifPresent: Column.rejection)
  }

  /// Whether a row of `SELECT * FROM queue` is found by its tag: a text never equals a blob.
  static func hasTag(_ row: Row) -> Bool { row.isBlob(Column.item) }

  /// A row of a damaged file, if it has the form of ours: the tags have their length. Its seal proves the
  /// rest; a state or a number that makes no sense does not cost the item. An item that was being sent is
  /// pending: its request has ended with the file, and counts as an attempt.
  static func salvaged(_ row: Row) -> QueueRow? {
    let found = QueueRow(row)
    for tag in [found.item, found.owner, found.org, found.batchKey] where tag.count != 16 {
      return nil
    }
    if found.state == .sending {
      found.state = .pending
      found.attempts += 1
    }
    if found.size == 0 { found.size = Int64(found.body.count) }
    return found
  }
}
