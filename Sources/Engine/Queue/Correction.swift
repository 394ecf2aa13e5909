import Base
import Policy
import Supabase
import Vault

/// The stored row that a change or a deletion is made to, as its user saw it.
struct StoredBase {
  /// The columns whose values are known.
  let row: JSON
  /// The row's `updated_at`, in the text of the server; nil: not known, so the row is read first.
  let version: String?
  /// The row is taken back.
  let isDeleted: Bool
  /// Names this change, if the kind has a column for that, together with the version that it replaces (`sentID`).
  let changeID: UUID
  /// The row as the user's figures count it, if that is another one: figures are not read again while an item is
  /// unproved, and the base moves meanwhile.
  let counted: JSON?

  init(row: JSON, version: String?, isDeleted: Bool = false, counted: JSON? = nil) {
    (self.row, self.version, self.isDeleted) = (row, version, isDeleted)
    self.counted = counted
    changeID = UUID(version8: Random.word(), 0)
  }

  init(_ json: JSON) {
    row = json["row"] ?? [:]
    version = json.string("version")
    isDeleted = json["deleted"] != nil
    changeID = json.uuid("change_id") ?? UUID(high: 0, low: 0)
    counted = json["counted"]
  }

  var json: JSON {
    let json: JSON = ["row": row, "change_id": .uuid(changeID)]
    if let version { json.set("version", .string(version)) }
    if isDeleted { json.set("deleted", .bool(true)) }
    if let counted { json.set("counted", counted) }
    return json
  }

  /// The same change on another base. `counted`: the row that the user's figures count.
  func moved(to row: JSON, version: String?, counted: JSON? = nil) -> StoredBase {
    StoredBase(self, row, version, counted)
  }

  /// The id that a request sends to this version: its second half is the version's time. So whoever reads the row
  /// sees which version its last change has replaced.
  func sentID(_ version: String) -> UUID {
    UUID(version8: changeID.high, UInt64(clamping: ISO8601.parseUS(version) ?? 0))
  }

  /// Whether a row has this id because of this change.
  func isNamed(by id: UUID?) -> Bool { id?.high == changeID.high }

  /// Whether a row with the id of another change may have had this one before that: between the version that this
  /// change names and the one that the other has replaced there was a third.
  func mayBeReplaced(by id: UUID?) -> Bool {
    guard let id, let version else { return false }
    return id.low > sentID(version).low
  }

  private init(_ other: StoredBase, _ row: JSON, _ version: String?, _ counted: JSON?) {
    (self.row, self.version, self.counted) = (row, version, counted)
    (isDeleted, changeID) = (other.isDeleted, other.changeID)
  }
}

/// What the server's row says about a change or a deletion that an answer did not prove.
enum Comparison: Equatable {
  /// It has the values of the change.
  case same
  /// It is as the request named it.
  case unchanged
  /// Others have changed it, and none of the columns of the change.
  case free
  /// Others have changed these columns of the change, or any column of a row that is to be deleted.
  case changed([String])
  case deleted
}

/// An item that its user corrects after it was sent. The queue has one row for each item, so the order of
/// its insert, its changes and its deletion needs no rule:
///
/// - Until it is sent, an edit changes the payload, and a cancelled item is gone.
/// - While it is in flight, or if the server may have it, the edit is kept in the item, and `sent` keeps the
///   values that the server may have. When the answer proves one of them, the item becomes a change of
///   what is stored (`follow`).
/// - A change has the columns that differ from the row as the user saw it (`StoredBase`).
///
/// An answer that names no row proves nothing. The row is read then, and compared by column (`compare`).
extension QueueItem {
  private static var mostSent: Int { 16 }

  /// Where `sent` tells that a deletion was sent: no payload has this column.
  private static var deletion: String { "deleted_at" }

  /// An earlier request may have deleted the row.
  private var mayBeDeleted: Bool { sent?[member: QueueItem.deletion] != nil }

  /// The version of the stored row that a correction names. nil: the row is read first, because its
  /// version is not known, or what it has in a column of the change: the server may have filled in what
  /// no insert carried, and its user has not seen that.
  var namedVersion: String? {
    guard let stored, let version = stored.version else { return nil }
    let isKnown =
      stored.isDeleted || payload.members.allSatisfy { stored.row[member: $0.key] != nil }
    return isKnown ? version : nil
  }

  /// Note that the payload was sent, before it is replaced. For a column that an insert leaves out that is null. Of an
  /// item that is cancelled, or whose row is read first, the server is only asked.
  func noteSent(_ kind: QueueKind?) {
    // What was sent before is not known: the item was edited where stored rows are not corrected.
    if isRevised, sent == nil { return }
    let isAsked = isCancelled || stored != nil && namedVersion == nil
    let known = sent?.shallowCopy ?? [:]
    sent = known
    if isAsked { return }
    if operation == .delete { known.set(member: QueueItem.deletion, .array([])) }
    let isInsert = stored == nil
    let more = isInsert ? kind?.own?.change?.columns ?? [] : []
    for column in payload.members.map({ $0.key }) + more.filter({ payload[member: $0] == nil }) {
      let value = payload[member: column] ?? .null
      let values = known[member: column]?.elements ?? []
      if values.contains(where: { $0 == value }) { continue }
      // Without the oldest value a conflict is shown that is none, at worst.
      known.set(member: column, .array(values.suffix(QueueItem.mostSent - 1) + [value]))
    }
  }

  private func wasSent(_ column: String, as value: JSON) -> Bool {
    sent?[member: column]?.elements.contains { StoredRow.mayHold($0, value) } ?? false
  }

  /// Change the columns of a stored row. Columns that have the value already are no part of a change, unless the
  /// server may get another one from an earlier request, or the row may be deleted. `present`: the row as far as it is
  /// known, also what its user has not seen (nil: the base); `seen`: as they have. Returns whether there is anything to change.
  func change(_ values: JSON, over seen: JSON = [:], of present: JSON? = nil) -> Bool {
    guard let stored else { return false }
    let changed = payload.shallowCopy
    // A deletion has dropped what earlier requests have changed: where the row may have another value than its user saw,
    // that one comes back.
    let dropped = [:] as JSON
    for (column, earlier) in stored.isDeleted ? sent?.members ?? [] : [] {
      guard let saw = seen[member: column] else { continue }
      let possible = earlier.elements + [stored.row[member: column] ?? .null]
      if possible.contains(where: { !StoredRow.holds($0, saw) }) {
        dropped.set(member: column, saw)
      }
    }
    for (column, value) in dropped.laidOver(by: values).members {
      let isStored =
        (present ?? stored.row)[member: column].map { StoredRow.holds($0, value) } ?? false
      if isStored, sent?[member: column] == nil, !mayBeDeleted {
        changed.remove(column)
      } else {
        changed.set(member: column, value)
      }
    }
    payload = changed
    self.stored = StoredBase(row: stored.row, version: stored.version, counted: stored.counted)
    return changed.count > 0
  }

  /// The server has stored the item with these values. Make it a change of them, as far as its user wants
  /// others. Returns whether anything is left to do.
  func follow(_ values: JSON, version: String?, _ kind: QueueKind) -> Bool {
    let isInsert = stored == nil
    sent = nil
    return goOn(
      from: (stored?.row ?? [:]).laidOver(by: values), version: version, kind
    ) { (column, wanted, row) in
      // The payload of an item that was not stored is its whole row.
      guard wanted != nil || isInsert else { return false }
      return !StoredRow.holds(row[member: column] ?? .null, wanted ?? .null)
    }
  }

  /// The same when the server has the item with some of the values that were sent, and nobody knows which.
  func followUnread(_ kind: QueueKind) -> Bool {
    let row = [:] as JSON
    for (column, values) in sent?.members ?? [] where values.count == 1 {
      if let only = values.elements.first { row.set(member: column, only) }
    }
    let sent = sent ?? [:]
    return goOn(from: row, version: nil, kind) { (column, wanted, row) in
      guard sent[member: column] != nil else { return false }
      return row[member: column].map { !StoredRow.holds($0, wanted ?? .null) } ?? true
    }
  }

  /// Whether this is a change, or an edit of an insert that the server may have, which then becomes one.
  func becomesChange(_ kind: QueueKind) -> Bool {
    if operation == .insert, isRevised { return followUnread(kind) && operation == .change }
    return operation == .change
  }

  /// Take over the columns that only an older change of the same row changes. Returns whether there are any.
  func join(_ older: QueueItem) -> Bool {
    guard let stored, let base = older.stored else { return false }
    let joined = payload.shallowCopy
    let row = stored.row.shallowCopy
    var version = stored.version
    for (column, value) in older.payload.members where payload[member: column] == nil {
      let (seen, now) = (base.row[member: column] ?? .null, stored.row[member: column] ?? .null)
      if StoredRow.holds(now, value) { continue }
      joined.set(member: column, value)
      if StoredRow.holds(now, seen) || older.wasSent(column, as: now) { continue }
      // Others have changed it since, and no user has seen both. So the row is read and compared first.
      row.set(member: column, seen)
      version = nil
    }
    if joined.count == payload.count { return false }
    payload = joined
    self.stored = stored.moved(to: row, version: version, counted: stored.counted)
    return true
  }

  private func goOn(
    from row: JSON, version: String?, _ kind: QueueKind,
    _ isOpen: (_ column: String, _ wanted: JSON?, _ row: JSON) -> Bool
  ) -> Bool {
    let isDeleted = stored?.isDeleted ?? isCancelled
    stored = StoredBase(row: row, version: version, isDeleted: isDeleted)
    isCancelled = false
    isRevised = false
    mayBeCounted = false
    let wanted = payload
    payload = [:]
    if isDeleted { return true }
    // An edit was taken with the columns of its time, and is kept if this version of the app lists others.
    var columns = kind.own?.change?.columns ?? []
    for (column, _) in wanted.members where !columns.contains(column) { columns.append(column) }
    for column in columns {
      let value = wanted[member: column]
      if isOpen(column, value, row) { payload.set(member: column, value ?? .null) }
    }
    return payload.count > 0
  }

  /// The row as its user saw it before the change: of several values that were sent, the first.
  var before: JSON {
    let result = stored?.row.shallowCopy ?? [:]
    for (column, values) in sent?.members ?? [] where result[member: column] == nil {
      if let first = values.elements.first { result.set(member: column, first) }
    }
    return result
  }

  /// The row was read, and has values of the base, or values that were sent: it is the new base. Of the latter, the
  /// base stays what its user saw. What named another version than this one can change nothing any more.
  func moveBase(to row: JSON, version: String?, _ own: OwnRows) {
    guard let stored else { return }
    let (base, ours, before) = (own.kept(of: row), [:] as JSON, before)
    for (column, _) in payload.members {
      guard let theirs = row[member: column] else { continue }
      let known = before[member: column] ?? .null
      base.set(member: column, known)
      if !StoredRow.holds(theirs, known) { ours.set(member: column, .array([theirs])) }
    }
    if version != stored.version { sent = ours.count > 0 ? ours : JSON?.none }
    self.stored = stored.moved(to: base, version: version, counted: stored.counted ?? stored.row)
  }

  /// What the column had before. nil: one of several values that were sent, and nobody knows which.
  private func base(_ column: String) -> JSON? {
    if let known = stored?.row[member: column] { return known }
    return sent?[member: column] == nil ? JSON.null : JSON?.none
  }

  /// The columns that tell what became of a change or a deletion.
  func compared(_ own: OwnRows) -> [String] {
    guard let stored else { return [] }
    if !stored.isDeleted { return payload.members.map { $0.key } }
    // Also those that the user never saw: others may have set them.
    return own.columns
  }

  /// Compare the server's row with what the user wants. `named`: the version that the request named, nil for
  /// none; `isSent`: the request had the item's present payload, and `isRepeated` an earlier one, too. nil: the row
  /// does not show every column.
  func compare(
    _ row: JSON, _ own: OwnRows, named version: String?, isSent: Bool, isRepeated: Bool = false
  ) -> Comparison? {
    guard let stored else { return nil }
    if row.showsDeletion { return .deleted }
    let lastChange = own.change.flatMap { row[member: $0.id]?.uuid }
    // A row that shows a deletion's id, and is there, has been restored since.
    if isSent, stored.isNamed(by: lastChange) { return .same }
    let mayBeReplaced = stored.mayBeReplaced(by: lastChange)
    let present = row.string("updated_at")
    // A request that names this version may be on its way: only another version makes it void.
    let mayChange = stored.version != nil && present == stored.version
    var (changed, isOpen): ([String], Bool) = ([], stored.isDeleted || mayChange && mayBeDeleted)
    for column in compared(own) {
      guard let theirs = row[member: column] else { return nil }
      let wanted = stored.isDeleted ? nil : payload[member: column]
      if let wanted, StoredRow.holds(theirs, wanted) {
        if !isSent, mayChange, sent?[member: column] != nil { isOpen = true }
        continue
      }
      // The base first: what a server makes of a text is only a guess.
      if let base = base(column), StoredRow.holds(theirs, base) {
        let wasChanged = isSent && isRepeated || sent?[member: column] != nil
        if mayBeReplaced, wanted != nil, wasChanged { changed.append(column) }
        isOpen = true
      } else if let wanted, isSent, StoredRow.mayHold(theirs, wanted) {
        continue
      } else if wasSent(column, as: theirs) {
        isOpen = true
      } else {
        changed.append(column)
      }
    }
    if !changed.isEmpty { return .changed(changed) }
    if !isOpen { return .same }
    return isSent && version != nil && present == version ? .unchanged : .free
  }

  /// What both have changed, for the user's choice.
  func conflict(_ columns: [String], with row: JSON, _ own: OwnRows) -> JSON {
    let (list, before) = (JSON.array([]), before)
    for column in columns {
      list.append([
        "name": .string(column), "base": before[member: column] ?? .null,
        "theirs": row[member: column] ?? .null,
        "mine": operation == .delete ? .null : payload[member: column] ?? .null,
      ])
    }
    return ["columns": list, "row": own.kept(of: row), "version": row["updated_at"] ?? .null]
  }

  /// What the server is asked to do.
  var correction: Correction? {
    guard let stored, let version = namedVersion else { return nil }
    return Correction(
      id: id, version: version, columns: stored.isDeleted ? JSON?.none : payload,
      changeID: stored.sentID(version))
  }

  /// Corrections of a kind share requests, if a function takes many. Otherwise each is a request: the last bit
  /// of the key tells.
  func correctionKey(_ kind: QueueKind?, _ keys: KeyRing.Keys) -> [UInt8] {
    let key = keys.lookup.tag("correction", org?.bytes ?? [], Array(self.kind.utf8))
    return kind?.own?.correctsMany ?? false ? key.shared : key.single
  }
}

extension OwnRows {
  /// The kept columns of a row.
  func kept(of row: JSON) -> JSON {
    let result = [:] as JSON
    for column in columns {
      if let value = row[member: column] { result.set(member: column, value) }
    }
    return result
  }
}

extension JSON {
  /// A row that its server keeps after it was deleted.
  var showsDeletion: Bool { self["deleted_at"]?.isNull == false }

  /// This object with the members of another one over its own.
  func laidOver(by other: JSON) -> JSON {
    let result = shallowCopy
    for (name, value) in other.members { result.set(member: name, value) }
    return result
  }
}
