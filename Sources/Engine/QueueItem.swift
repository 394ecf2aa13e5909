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
  /// It was edited when the server may have had it already: a row that is there can be the old one.
  var isRevised = false

  /// Larger ones are refused at the door.
  static var maximumSize: Int { 262_144 }

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

  /// The payload as the host sees and sends it, with the time where the table has a column for it.
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

  static func context(_ item: [UInt8], _ owner: [UInt8], _ column: StaticCString) -> SealContext {
    SealContext(table: "queue", row: item, owner: owner, column: column)
  }
}
