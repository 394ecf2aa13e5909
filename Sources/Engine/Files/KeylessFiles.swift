import Base
import Policy
import Store
import Supabase
import Vault

/// The files that were set aside because the key store did not have their device key
/// (`Recovery.beginAnew`). A user's items are carried over when the key is back: each is sealed anew with
/// the keys of the file in use, once. Nothing else in them is worth it: the user has signed in since, and
/// the cache comes from the server.
///
/// The main file lists them (`KeylessList`), so that a start looks into none of them before its key is back.
struct KeylessFiles: Rules {
  let parts: Parts

  /// Look whether keys are back. That they are not, and that a file cannot be read now, fails no call.
  func carryOver() {
    do throws(Failure) {
      guard let session = sessions.session, let list = try core.meta.text(.keyless) else { return }
      for (name, entry) in try KeylessList(list).files { try carryOver(name, entry, session) }
    } catch {
      Log.warning("a file whose key is back could not be read", error)
    }
  }

  private func carryOver(_ name: String, _ entry: JSON, _ session: OpenSession) throws(Failure) {
    let folder = core.configuration.dataFolder
    guard DataFolder.isAside(name, in: folder), let check = try KeylessList.check(of: entry) else {
      return
    }
    try DataFolder.checkAside(name, in: folder)
    let device = KeyName.device(entry.int("device") ?? 0)
    let key: Key
    do throws(KeyRefusal) { key = try core.keyRing.store.load(device) } catch { return }
    guard try KeyRing.opens(check, key) else { return }
    let keys = try KeyRing.Keys(NamedKey(key, device))
    let owner = keys.userTag(session.userID)
    let tag = JSON.string(Digest.base64URL(owner))
    if KeylessList.users(of: entry, contain: tag) { return }
    let queueKey = try keys.queues.derived(for: owner)
    let carried = try core.database.transaction { () throws(Failure) -> Int in
      let list = try KeylessList(try core.meta.text(.keyless))
      guard let entry = list.json[member: name], !KeylessList.users(of: entry, contain: tag) else {
        return 0
      }
      entry["users"]?.append(tag)
      try core.meta.set(.keyless, .text(try list.text))
      var carried = 0
      var found: [[UInt8]] = []
      try Salvage.open(folder + "/" + name).eachItem { (row) throws(Failure) in
        guard row.owner == owner, let item = try row.read(queueKey) else { return }
        found.append(try core.keys().itemTag(item.id, session.owner))
        if try carry(row, item, queueKey, session) { carried += 1 }
      }
      // Once all are here.
      for tag in found { try links.hold(tag, try core.keys()) }
      if carried > 0 {
        try core.syncRuns.start(of: session.owner, now: try core.steadyToStore(core.clock.now()))
      }
      return carried
    }
    if carried > 0 {
      Log.line(.warning, "the key of \(name) is back: \(carried) items carried over")
    }
  }

  /// Queue an item under the keys of this file. False: it is queued, or known as sent or cancelled, and adds nothing.
  private func carry(
    _ old: QueueRow, _ item: QueueItem, _ key: Key, _ session: OpenSession
  ) throws(Failure) -> Bool {
    let keys = try core.keys()
    let tag = keys.itemTag(item.id, session.owner)
    let kind = core.configuration.backend.kind(item.kind)
    if let queued = try core.queue.find(tag) { return try merge(item, into: queued, kind, session) }
    // A correction is of a row that is known as stored.
    if item.stored == nil, try core.fate(of: tag) != nil { return false }
    let row = QueueRow()
    row.item = tag
    row.owner = session.owner
    row.org = keys.orgTag(item.org)
    row.createdMS = old.createdMS
    // The server may have it: the answer to its last request may have been lost.
    row.attempts = max(old.attempts, 1)
    row.isEdited = old.isEdited
    try row.put(item, kind, session.queueKey, keys)
    if old.state == .parked, let rejection = try ParkReason.read(old, key) {
      row.state = .parked
      row.rejection = try session.queueKey.seal(rejection, ParkReason.context(row))
    }
    _ = try core.queue.insert(row)
    return true
  }

  /// The user has corrected the same row again, without their older correction: columns that only that one changes
  /// are joined to it. Returns whether there are any.
  private func merge(
    _ older: QueueItem, into row: QueueRow, _ kind: QueueKind?, _ session: OpenSession
  ) throws(Failure) -> Bool {
    guard let kind, let item = try row.read(session.queueKey), item.operation == .change,
      older.becomesChange(kind)
    else { return false }
    if row.state == .sending {
      throw Failure(.queueInFlight, "the next look joins them, when this one is answered")
    }
    let mayBeStored = row.attempts > 0
    if mayBeStored, !row.isEdited { item.noteSent(kind) }
    guard item.join(older) else { return false }
    try row.put(item, kind, session.queueKey, try core.keys())
    row.isEdited = mayBeStored
    try core.queue.write(row)
    return true
  }
}

/// The names of the files, and for each its device key's number, a seal that this key opens, and the tags of
/// the users whose items were carried over.
struct KeylessList {
  let json: JSON

  /// A list that cannot be read counts as empty: the files stay.
  init(_ text: String?) throws(Failure) {
    let stored = JSON(text ?? "{}")
    do throws(Failure) {
      json = try stored.withUTF8 { (bytes) throws(Failure) in try JSON.parse(bytes) } ?? [:]
    } catch {
      if error.code == .memoryExhausted { throw error }
      json = [:]
    }
  }

  func add(_ file: String, _ device: Int64, _ check: [UInt8]?) {
    json.set(
      member: file,
      ["device": .int(device), "check": .string(Digest.base64URL(check ?? [])), "users": []])
  }

  var files: [(name: String, entry: JSON)] { json.members.map { ($0.key, $0.value) } }

  static func check(of entry: JSON) throws(Failure) -> [UInt8]? {
    let found = try entry["check"]?.withUTF8 { (text) throws(Failure) in
      try Digest.fromBase64URL(text)
    }
    return found.flatMap { $0 }.map { Array($0.bytes) }
  }

  static func users(of entry: JSON, contain tag: JSON) -> Bool {
    entry["users"]?.elements.contains { $0 == tag } ?? false
  }

  var text: String {
    get throws(Failure) { try json.text().string }
  }
}
