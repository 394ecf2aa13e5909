import Base
import Policy
import Store
import Supabase
import Vault

/// A queued item, as it is sealed.
final class QueueItem {
  let id: UUID
  let kind: String
  /// nil in an app without organisations. The row of such an item has no `org_id`.
  let org: UUID?
  var payload: JSON
  let dependsOn: [UUID]
  let occurredAtMS: Int64?
  /// Whether the row has a `user_id`; nil in items of version 1, which did not store it.
  var hasUser: Bool?
  /// It was edited when the server may have had it already: a row that is there can be the old one.
  var isRevised = false
  /// It was cancelled when the server may have had it already: the server is asked before it goes.
  var isCancelled = false
  /// The server may have it, and figures that were read since may count it.
  var mayBeCounted = false

  /// Larger items are refused.
  static var maxSize: Int { 262_144 }

  var json: JSON {
    let json: JSON = [
      "id": .uuid(id), "kind": .string(kind), "org_id": JSON(org),
      "payload": payload, "depends_on": .array(dependsOn.map { .uuid($0) }),
      "occurred_at_ms": JSON(occurredAtMS),
    ]
    if let hasUser { json.set("has_user", .bool(hasUser)) }
    if isRevised { json.set("revised", .bool(true)) }
    if isCancelled { json.set("cancelled", .bool(true)) }
    if mayBeCounted { json.set("counted", .bool(true)) }
    return json
  }

  init(
    id: UUID, kind: String, org: UUID?, payload: JSON, dependsOn: [UUID], occurredAtMS: Int64?,
    hasUser: Bool? = nil
  ) {
    self.id = id
    self.kind = kind
    self.org = org
    self.payload = payload
    self.dependsOn = dependsOn
    self.occurredAtMS = occurredAtMS
    self.hasUser = hasUser
  }

  init?(_ json: JSON) {
    guard let id = json.uuid("id"), let kind = json.string("kind"),
      let org = json["org_id"], org.isNull || org.uuid != nil, let payload = json["payload"]
    else { return nil }
    self.id = id
    self.kind = kind
    self.org = org.uuid
    self.payload = payload
    dependsOn = (json["depends_on"]?.elements ?? []).compactMap { $0.uuid }
    occurredAtMS = json.int("occurred_at_ms")
    hasUser = json.bool("has_user")
    isRevised = json["revised"] != nil
    isCancelled = json["cancelled"] != nil
    mayBeCounted = json["counted"] != nil
  }

  /// Put the time of the visit into the table's own column, unless the payload has it.
  func addTime(_ kind: QueueKind) {
    guard let occurredAtMS, kind.columns.contains("occurred_at"), payload["occurred_at"] == nil
    else { return }
    payload = payload.shallowCopy
    payload.set("occurred_at", .string(ISO8601.format(ms: occurredAtMS)))
  }

  // MARK: Sending

  // An item keeps the columns that it was accepted with: its payload's, `org_id` or not, and
  // `user_id` or not. The
  // configuration of a later version of the app may list others.

  /// The row that the server receives.
  func row(user: UUID?) -> JSON {
    let row = payload.shallowCopy
    row.set("id", .uuid(id))
    if let org { row.set("org_id", .uuid(org)) }
    if let user { row.set("user_id", .uuid(user)) }
    return row
  }

  /// The columns that the row has: in the kind's order, then those that the kind does not list any
  /// more.
  func columns(_ kind: QueueKind, hasUser: Bool) -> [String] {
    var result = ["id"]
    if org != nil { result.append("org_id") }
    if hasUser { result.append("user_id") }
    let listed = kind.columns.filter { payload[member: $0] != nil }
    result += listed
    if listed.count < payload.count {
      result += payload.members.map { $0.key }.filter { !listed.contains($0) }
    }
    return result
  }

  /// Items with the same batch key share requests: one organisation, one kind, the same columns. `kind`:
  /// nil if this version of the app does not know it.
  func batchKey(_ kind: QueueKind?, _ keys: KeyRing.Keys) -> [UInt8] {
    let columns =
      kind.map { self.columns($0, hasUser: $0.hasUser) } ?? payload.members.map { $0.key }
    return batchKey(columns, keys)
  }

  func batchKey(_ columns: [String], _ keys: KeyRing.Keys) -> [UInt8] {
    keys.lookup.tag(
      "batch_key", org?.bytes ?? [], Array(kind.utf8), Array(columns.joined(separator: ",").utf8))
  }

  // MARK: Sealing

  static func context(
    _ item: [UInt8], _ owner: [UInt8], _ column: StaticCString
  ) -> SealContext {
    SealContext(table: "queue", row: item, owner: owner, column: column)
  }

  /// The item as text and sealed; refuses one that is too large, unless it `isAccepted`: a mark of the
  /// library makes it longer.
  func sealed(
    _ tag: [UInt8], _ owner: [UInt8], _ key: Key, isAccepted: Bool = false
  ) throws(Failure) -> (body: [UInt8], size: Int64) {
    let text = try json.text()
    guard isAccepted || text.count <= QueueItem.maxSize else {
      throw Failure(
        .queueItemTooLarge, "an item has at most \(QueueItem.maxSize) bytes", field: "/payload",
        detail: ["size": .int(text.count)])
    }
    return (
      try key.seal(text.bytes, QueueItem.context(tag, owner, "body")), Int64(text.count)
    )
  }
}

extension QueueRow {
  /// The item in the row; nil when its seal does not open.
  func read(_ key: Key) throws(Failure) -> QueueItem? {
    try key.openJSON(body, QueueItem.context(item, owner, "body")).flatMap { QueueItem($0) }
  }

  /// Stands for the id of an item whose own id cannot be read.
  var substituteID: UUID {
    UUID(bytes: Array(item.prefix(16))) ?? UUID(high: 0, low: 0)
  }
}

extension QueueCounts {
  var json: JSON {
    [
      "pending": .int(pending), "sending": .int(sending), "waiting": .int(waiting),
      "parked": .int(parked),
    ]
  }
}
