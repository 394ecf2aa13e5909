import Base
import Policy
import Store
import Supabase
import Vault

/// A queued item, as it is sealed.
final class QueueItem {
  /// What the item does to its row on the server.
  enum Operation: String, CaseIterable {
    case insert, change, delete
  }

  let id: UUID
  let kind: String
  /// nil in an app without organisations. The row of such an item has no `org_id`.
  let org: UUID?
  /// The row's columns; of a change, those that the user changed.
  var payload: JSON
  let dependsOn: [UUID]
  private(set) var occurredAtMS: Int64?
  /// Whether the row has a `user_id`; nil in items of version 1, which did not store it.
  var hasUser: Bool?
  /// It was edited, or its id was another row's: a row that is there can be an older one, which another device has sent
  /// from a copy as well, or the other.
  var isRevised = false
  /// It was cancelled when the server may have had it already: the server is asked before it goes.
  var isCancelled = false
  /// The server may have it, and figures that were read since may count it.
  var mayBeCounted = false
  /// What a change or a deletion is made to (`Correction.swift`); nil: the item is an insert.
  var stored: StoredBase?
  /// The values that were sent, by this device or from a copy, and are not proved, by column: one of them may be the
  /// server's. Empty: an insert was edited that was not sent before. nil, if it is revised: what was sent is not known.
  var sent: JSON?

  /// An earlier request may have stored an older payload.
  var mayBeOlder: Bool { isRevised && sent?.count != 0 }

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
    if let stored { json.set("stored", stored.json) }
    if let sent { json.set("sent", sent) }
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
    stored = json["stored"].map { StoredBase($0) }
    sent = json["sent"]
  }

  /// Whether an app with this backend can send it; nil: it has no such kind, or does not correct it.
  func kind(_ backend: Backend) -> QueueKind? {
    guard let known = backend.kind(kind) else { return nil }
    switch operation {
    case .insert: return known
    case .change: return known.own != nil ? known : nil
    case .delete: return known.own?.deletion != nil ? known : nil
    }
  }

  var operation: Operation { stored.map { $0.isDeleted ? .delete : .change } ?? .insert }

  /// Put the time of the visit into the table's own column, unless the payload has one: that is the time then.
  func addTime(_ kind: QueueKind) {
    guard let occurredAtMS, kind.columns.contains("occurred_at") else { return }
    if let given = payload["occurred_at"] {
      self.occurredAtMS = given.string.flatMap { ISO8601.parse($0) } ?? occurredAtMS
      return
    }
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
    if stored != nil { return payload.members.map { $0.key } }
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
    if stored != nil { return correctionKey(kind, keys) }
    let columns =
      kind.map { self.columns($0, hasUser: $0.hasUser) } ?? payload.members.map { $0.key }
    return keys.lastBatchKey.key(org, self.kind, columns, keys.lookup)
  }

  // MARK: Listing

  /// The tag of the list that shows the item, if its kind has one.
  func list(_ owner: [UInt8], _ keys: KeyRing.Keys) -> [UInt8] {
    CacheNames.own(kind, org, owner, keys)
  }

  /// The time by which it is listed.
  func listedMS(_ kind: QueueKind?, createdMS: Int64) -> Int64 {
    let time = kind?.own?.time ?? "occurred_at"
    let text = payload[member: time]?.string ?? stored?.row[member: time]?.string
    return text.flatMap { ISO8601.parse($0) } ?? occurredAtMS ?? createdMS
  }

  // MARK: Sealing

  static func context(
    _ item: [UInt8], _ owner: [UInt8], _ column: StaticCString
  ) -> SealContext {
    SealContext(table: "queue", row: item, owner: owner, column: column)
  }

  /// Whether it is also without what the library adds to an item that is corrected.
  private func isTooLarge() throws(Failure) -> Bool {
    let bare = json
    bare.remove("stored")
    bare.remove("sent")
    return try bare.text().count > QueueItem.maxSize
  }

  /// The item as text and sealed; refuses one that is too large, unless it `isAccepted`: a mark of the
  /// library makes it longer.
  func sealed(
    _ tag: [UInt8], _ owner: [UInt8], _ key: Key, isAccepted: Bool = false
  ) throws(Failure) -> (body: [UInt8], size: Int64) {
    let text = try json.text()
    if !isAccepted, text.count > QueueItem.maxSize, try isTooLarge() {
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

  /// Put an item into the row: its content, what it can share requests with, and where it is listed.
  func put(
    _ item: QueueItem, _ kind: QueueKind?, _ key: Key, _ keys: KeyRing.Keys,
    isAccepted: Bool = true
  ) throws(Failure) {
    (body, size) = try item.sealed(self.item, owner, key, isAccepted: isAccepted)
    batchKey = item.batchKey(kind, keys)
    // An item keeps its place under a version of the app that has no list of its kind: a later one has.
    guard list != nil || kind?.own != nil else { return }
    list = item.list(owner, keys)
    listedMS = item.listedMS(kind, createdMS: createdMS)
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

/// The next item usually has the batch key of the last one.
final class LastBatchKey {
  private var last: (org: UUID?, kind: String, columns: [String], key: [UInt8])?

  func key(_ org: UUID?, _ kind: String, _ columns: [String], _ lookup: Key) -> [UInt8] {
    if let last, last.org == org, last.kind == kind, last.columns == columns { return last.key }
    let key = lookup.tag(
      "batch_key", org?.bytes ?? [], Array(kind.utf8), Array(columns.joined(separator: ",").utf8)
    ).shared
    last = (org, kind, columns, key)
    return key
  }
}

extension [UInt8] {
  /// This batch key's last bit tells that its items share requests, or that each is sent alone.
  var shared: [UInt8] { ended(by: 0) }
  var single: [UInt8] { ended(by: 1) }
  var isSingle: Bool { last.map { $0 & 1 == 1 } ?? false }

  private func ended(by bit: UInt8) -> [UInt8] { dropLast() + [(last ?? 0) & 0xFE | bit] }
}
