import Base
import Policy
import Store
import Supabase
import Vault

/// A queued item, as it is sealed.
final class QueueItem {
  let id: UUID
  let kind: String
  let org: UUID
  var payload: JSON
  let dependsOn: [UUID]
  let occurredAtMS: Int64?
  /// Edited after an attempt; the server may have the old payload.
  var isRevised = false

  /// Larger items are refused.
  static var maxSize: Int { 262_144 }

  var json: JSON {
    let json: JSON = [
      "id": .uuid(id), "kind": .string(kind), "org_id": .uuid(org),
      "payload": payload, "depends_on": .array(dependsOn.map { .uuid($0) }),
      "occurred_at_ms": JSON(occurredAtMS),
    ]
    if isRevised { json.set("revised", .bool(true)) }
    return json
  }

  init(
    id: UUID, kind: String, org: UUID, payload: JSON, dependsOn: [UUID], occurredAtMS: Int64?
  ) {
    self.id = id
    self.kind = kind
    self.org = org
    self.payload = payload
    self.dependsOn = dependsOn
    self.occurredAtMS = occurredAtMS
  }

  init?(_ json: JSON) {
    guard let id = json.uuid("id"), let kind = json.string("kind"),
      let org = json.uuid("org_id"), let payload = json["payload"]
    else { return nil }
    self.id = id
    self.kind = kind
    self.org = org
    self.payload = payload
    dependsOn = (json["depends_on"]?.elements ?? []).compactMap { $0.uuid }
    occurredAtMS = json.int("occurred_at_ms")
    isRevised = json["revised"] != nil
  }

  /// Put the time of the visit into the table's own column, unless the payload has it.
  func addTime(_ kind: QueueKind) {
    guard let occurredAtMS, kind.columns.contains("occurred_at"), payload["occurred_at"] == nil
    else { return }
    payload = payload.shallowCopy
    payload.set("occurred_at", .string(ISO8601.format(ms: occurredAtMS)))
  }

  // MARK: Sending

  /// The row that the server receives.
  func row(_ kind: QueueKind, user: UUID) -> JSON {
    let row = payload.shallowCopy
    row.set("id", .uuid(id))
    row.set("org_id", .uuid(org))
    if kind.hasUser { row.set("user_id", .uuid(user)) }
    return row
  }

  /// The columns that the row has, in the kind's order.
  func columns(_ kind: QueueKind) -> [String] {
    var result = ["id", "org_id"]
    if kind.hasUser { result.append("user_id") }
    return result + kind.columns.filter { payload[member: $0] != nil }
  }

  // MARK: Sealing

  static func context(
    _ item: [UInt8], _ owner: [UInt8], _ column: StaticCString
  ) -> SealContext {
    SealContext(table: "queue", row: item, owner: owner, column: column)
  }

  /// The item as text and sealed; refuses one that is too large.
  func sealed(
    _ tag: [UInt8], _ owner: [UInt8], _ key: Key
  ) throws(Failure) -> (body: [UInt8], size: Int64) {
    let text = try json.text()
    guard text.count <= QueueItem.maxSize else {
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
