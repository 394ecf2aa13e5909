import Base
import Policy
import Store
import Supabase
import Vault

/// Takes items into the queue and lets the user change them: add, edit, cancel, retry.
struct ItemIntake: Rules {
  let parts: Parts

  // MARK: Adding

  func add(_ request: JSON) throws(Failure) -> JSON {
    let fields = try Fields(
      request,
      known: [
        "kind", "payload", "id", "depends_on", "occurred_at_ms", "org_id", "state", "operation",
      ])
    if fields.optional("operation") != nil {
      throw fields.invalid("operation", "corrections are made by queue_edit and queue_cancel")
    }
    let (session, current) = try decider.requirePlace()
    let org = try readOrganisation(fields, session) ?? current
    _ = try ItemReport.readState(fields)
    let now = core.clock.now()
    let kind = try core.configuration.backend.queueKind(in: fields)
    let given = try readID(fields)
    let id = given ?? Random.uuid(at: now.wallMS)
    let payload = try PayloadReader.read(fields, kind, id: id, org: org, user: session.userID)
    let dependsOn = try readDependencies(fields, id)
    var time = try readTime(fields, now)
    // An item with an id of the host's may be added again, and must then be the same.
    if time == nil, given == nil, payload["occurred_at"] == nil,
      kind.columns.contains("occurred_at"), payload[member: "occurred_at"] == nil
    {
      time = try core.serverMS(now)
    }
    let item = QueueItem(
      id: id, kind: kind.name, org: org, payload: payload, dependsOn: dependsOn,
      occurredAtMS: time, hasUser: kind.hasUser)
    item.addTime(kind)
    try reserve.make()
    return try insert(item, kind, session, now, isNew: given == nil)
  }

  /// Until the year 5138, the seconds since 1970 are a smaller number than this. As milliseconds it is
  /// March 1973.
  private static var leastMS: Int64 { 100_000_000_000 }

  /// A time in seconds would be stored as one in January 1970. A device whose clock has fallen back to
  /// 1970 may say so.
  private func readTime(_ fields: Fields, _ now: Instant) throws(Failure) -> Int64? {
    let time = try fields.integer(ifPresent: "occurred_at_ms", in: 0...ISO8601.lastMS)
    if let time, time < ItemIntake.leastMS, now.wallMS >= ItemIntake.leastMS {
      throw fields.invalid(
        "occurred_at_ms",
        "milliseconds since 1970 are expected, at least 100000000000; this number looks like seconds"
      )
    }
    return time
  }

  private func readID(_ fields: Fields) throws(Failure) -> UUID? {
    guard let value = fields.optional("id") else { return nil }
    guard let id = value.uuid else {
      throw Failure(.queueInvalidID, "a UUID is expected", field: "/id")
    }
    return id
  }

  /// An exported item goes back to its own organisation, if the user works in it.
  private func readOrganisation(
    _ fields: Fields, _ session: OpenSession
  ) throws(Failure) -> UUID? {
    guard fields.optional("org_id") != nil else { return nil }
    guard core.configuration.backend.hasOrganisations else {
      throw Failure(
        .configNotConfigured, "\"memberships\" is null in the configuration", field: "/org_id")
    }
    let id = try fields.uuid("org_id")
    guard let membership = session.membership(in: id) else {
      throw Failure(.orgNotAMember, "no membership in this organisation", field: "/org_id")
    }
    try core.configuration.state(of: membership).require("/org_id")
    return id
  }

  private func readDependencies(_ fields: Fields, _ id: UUID) throws(Failure) -> [UUID] {
    var result: [UUID] = []
    for (index, text) in (try fields.strings(ifPresent: "depends_on") ?? []).enumerated() {
      guard let parent = UUID(text), parent != id else {
        throw Failure(
          .queueUnknownDependency, "the id of another item is expected",
          field: "/depends_on/\(index)")
      }
      result.append(parent)
    }
    return result
  }

  private func insert(
    _ item: QueueItem, _ kind: QueueKind, _ session: OpenSession, _ now: Instant, isNew: Bool
  ) throws(Failure) -> JSON {
    let keys = try core.keys()
    let row = newRow(of: item, session, keys, now)
    try row.put(item, kind, session.queueKey, keys, isAccepted: false)
    return try core.database.transaction { () throws(Failure) in
      if let existing = try core.queue.find(row.item) {
        try checkSame(item, existing, session)
        // The server is being asked about its cancel: the answer then sends it.
        if existing.state == .sending { existing.isEdited = true }
        try core.takeCancelBack(existing, session.queueKey)
        return ["id": .uuid(item.id), "state": .string(existing.state.word)]
      }
      // A stored item is there already, and corrections change it.
      if !isNew, let stored = try listed(item, kind, session) {
        if StoredRow.isOther(stored, than: item.payload) { throw ItemIntake.idTaken }
        return ["id": .uuid(item.id), "state": "stored"]
      }
      try checkParents(of: item, session.owner, keys)
      if try links.linkParents(of: item, kind, row.item, session.owner, keys, accepted: false) {
        row.state = .waiting(.dependency)
      }
      _ = try core.queue.insert(row)
      return ["id": .uuid(item.id), "state": .string(row.state.word)]
    }
  }

  /// The item's row as its user's list shows it, if it has all columns of the payload. A cache that cannot be read shows
  /// none.
  private func listed(
    _ item: QueueItem, _ kind: QueueKind, _ session: OpenSession
  ) throws(Failure) -> JSON? {
    do throws(Failure) {
      let row = try ownRows.find(item.id, kind, item.org, session)?.values
      guard let row, item.payload.members.allSatisfy({ row[member: $0.key] != nil }) else {
        return nil
      }
      return row
    } catch  where error.code != .memoryExhausted && !core.reads.mustRunAgain { return nil }
  }

  /// Refuse an id in `depends_on` that is not queued and not known as stored: an item that is added
  /// later would be sent in any order.
  private func checkParents(
    of item: QueueItem, _ owner: [UInt8], _ keys: KeyRing.Keys
  ) throws(Failure) {
    for (index, parent) in item.dependsOn.enumerated() {
      let tag = keys.itemTag(parent, owner)
      if try core.queue.contains(tag) { continue }
      guard try core.fate(of: tag)?.fate == .stored else {
        throw Failure(
          .queueUnknownDependency, "no such item; add it first", field: "/depends_on/\(index)")
      }
    }
  }

  /// Accept the same item again; refuse another one with its id.
  private func checkSame(
    _ item: QueueItem, _ existing: QueueRow, _ session: OpenSession
  ) throws(Failure) {
    let known = try existing.read(session.queueKey)
    known?.isRevised = false
    known?.isCancelled = false
    known?.mayBeCounted = false
    known?.sent = nil
    known?.hasUser = item.hasUser
    guard let known, known.json == item.json else {
      throw ItemIntake.idTaken
    }
  }

  private static var idTaken: Failure {
    Failure(.queueIDTaken, "this id has an item with other content", field: "/id")
  }

  // MARK: The user's control

  /// Change the payload of an item that is not stored yet, or the row of one that is. `base`: what its user saw.
  /// Columns that are as they saw them are no part of the edit.
  func edit(_ request: JSON) throws(Failure) -> JSON {
    let fields = try Fields(request, known: ["id", "payload", "base"])
    let session = try decider.requireSession()
    try reserve.make()
    return try core.database.transaction { () throws(Failure) in
      guard let (row, item) = try corrected(fields, session) else {
        throw Failure(.storageDamaged, "the item is unreadable; cancel it")
      }
      guard let kind = core.configuration.backend.kind(item.kind) else {
        throw Failure(.queueUnknownKind, "its kind is not in backend.queue", field: "/id")
      }
      let payload = try PayloadReader.read(
        fields, kind, accepted: item.payload.laidOver(by: item.stored?.row ?? [:]), id: item.id,
        org: item.org, user: session.userID)
      if let time = kind.own?.time, payload[member: time]?.isNull ?? false {
        throw Failure(
          .queueInvalidPayload, "a time is expected: stored rows are listed by it",
          field: "/payload/" + JSONPointer.escape(time))
      }
      let base = try base(fields)
      if let base {
        let shown = try shown(item, kind, session)
        for (column, value) in payload.members {
          // A stored row may have any value in a column that no list shows.
          if item.stored != nil, base[member: column] == nil, shown[member: column] == nil {
            continue
          }
          let (seen, now) = (base[member: column] ?? .null, shown[member: column] ?? .null)
          if StoredRow.holds(seen, value) {
            payload.remove(column)
          } else if !StoredRow.holds(now, seen), !StoredRow.holds(now, value) {
            throw ItemIntake.changed(column)
          }
        }
      }
      if item.stored != nil { return try change(payload, over: base, of: item, row, kind, session) }
      let kept = item.payload.shallowCopy
      // An edit repairs an item that has a column which the server lacks, and the kind lists no more.
      let reason = try ParkReason.read(row, session.queueKey)
      if reason?.string("code") == MessageCode.missingColumn.rawValue {
        kept.keepMembers(kind.columns)
      }
      return try replace(kept.laidOver(by: payload), of: item, row, kind, session)
    }
  }

  private func base(_ fields: Fields) throws(Failure) -> JSON? {
    guard let base = fields.optional("base") else { return nil }
    guard base.kind == .object else { throw fields.wrongType("base", "an object") }
    return base
  }

  /// The columns as `item_list` shows them.
  private func shown(
    _ item: QueueItem, _ kind: QueueKind, _ session: OpenSession
  ) throws(Failure) -> JSON {
    guard let stored = item.stored else { return item.payload }
    let row = try ownRows.find(item.id, kind, item.org, session)?.values ?? stored.row
    return row.laidOver(by: item.payload)
  }

  private static func changed(_ column: String) -> Failure {
    Failure(
      .queueChanged, "this has changed since the user saw it: list the item again",
      field: "/base/" + JSONPointer.escape(column))
  }

  /// The item with the `id` of a request: a queued one, or the beginning of a change of a stored row. nil: its
  /// seal does not open.
  private func corrected(
    _ fields: Fields, _ session: OpenSession
  ) throws(Failure) -> (row: QueueRow, item: QueueItem)? {
    let id = try fields.uuid("id")
    if let row = try core.queuedItem(id, session) {
      guard let item = try row.read(session.queueKey) else { return nil }
      try checkOrganisation(of: item, session)
      return (row, item)
    }
    guard let (kind, own) = try storedRow(id, session) else {
      throw Core.notQueued(try core.fate(of: core.keys().itemTag(id, session.owner))?.fate)
    }
    let keys = try core.keys()
    let item = QueueItem(
      id: id, kind: kind.name, org: session.choice, payload: [:], dependsOn: [],
      occurredAtMS: nil, hasUser: kind.hasUser)
    item.stored = StoredBase(row: own.values, version: own.version)
    return (newRow(of: item, session, keys, core.clock.now()), item)
  }

  /// The row of an item that is not queued, without its content.
  private func newRow(
    of item: QueueItem, _ session: OpenSession, _ keys: KeyRing.Keys, _ now: Instant
  ) -> QueueRow {
    let row = QueueRow()
    row.item = keys.itemTag(item.id, session.owner)
    row.owner = session.owner
    row.org = keys.orgTag(item.org)
    row.createdMS = now.wallMS
    return row
  }

  /// Two organisations may have a row with this id. Refuse what would correct the other one's.
  private func checkOrganisation(
    of item: QueueItem, _ session: OpenSession
  ) throws(Failure) {
    guard item.org != session.choice, session.choice != nil,
      core.configuration.backend.kind(item.kind)?.primaryKey == .idAndOrgID,
      try storedRow(item.id, session) != nil
    else { return }
    throw Failure(
      .queueIDTaken, "an item of another organisation with this id is queued", field: "/id")
  }

  /// The user's own stored row with this id, in the place where they work.
  private func storedRow(
    _ id: UUID, _ session: OpenSession
  ) throws(Failure) -> (QueueKind, OwnRow)? {
    let kinds = core.configuration.backend.kinds.filter { $0.own != nil }
    if kinds.isEmpty { return nil }
    let (_, org) = try decider.requirePlace()
    for kind in kinds {
      if let row = try ownRows.find(id, kind, org, session) { return (kind, row) }
    }
    return nil
  }

  private func replace(
    _ payload: JSON, of item: QueueItem, _ row: QueueRow, _ kind: QueueKind,
    _ session: OpenSession
  ) throws(Failure) -> JSON {
    let outcome = try outcome(row, session)
    let mayBeStored = row.state == .sending || outcome != .known
    if row.state == .sending, kind.own?.change == nil { throw ItemIntake.inFlight }
    if let change = kind.own?.change {
      if mayBeStored { try checkChanged(payload, from: item.payload, change) }
      // Also what was not sent: another device may have sent a copy (`queue_export`).
      if !row.isEdited { item.noteSent(kind) }
    } else if mayBeStored {
      item.sent = nil
    } else if !item.isRevised {
      item.sent = [:]
    }
    item.isRevised = true
    item.isCancelled = false
    item.payload = payload
    item.hasUser = kind.hasUser
    item.addTime(kind)
    try write(item, row, kind, session, isEdited: mayBeStored, isAccepted: false)
    try links.hold(row.item, try core.keys())
    return try state(of: item, row)
  }

  /// Of a row that may be stored only those columns are edited that can be changed.
  private func checkChanged(
    _ payload: JSON, from old: JSON, _ change: OwnRows.Change
  ) throws(Failure) {
    let columns = old.members + payload.members
    for (column, _) in columns where !change.columns.contains(column) {
      let (new, old) = (payload[member: column] ?? .null, old[member: column] ?? .null)
      guard StoredRow.holds(old, new) else {
        throw Failure(
          .queueUnknownColumn, "this column of a stored row cannot be changed (\"change\")",
          field: "/payload/" + JSONPointer.escape(column))
      }
    }
  }

  private func change(
    _ payload: JSON, over seen: JSON?, of item: QueueItem, _ row: QueueRow, _ kind: QueueKind,
    _ session: OpenSession
  ) throws(Failure) -> JSON {
    guard let change = kind.own?.change else {
      throw Failure(
        .configNotConfigured, "stored rows of this kind cannot be changed (\"change\")",
        field: "/id")
    }
    let pulled = try ownRows.find(item.id, kind, item.org, session)
    if row.state != .sending {
      followPull(pulled, item, row, kind, session)
    } else if item.operation == .delete {
      throw ItemIntake.inFlight
    }
    let base = item.stored?.row ?? [:]
    try checkChanged(base.laidOver(by: payload), from: base, change)
    let mayBeStored = row.state == .sending || row.attempts > 0
    if mayBeStored, !row.isEdited { item.noteSent(kind) }
    // Only a deletion is read over: its row is to be as its user has seen it, and what they saw there is their base.
    var (shown, before): (JSON, JSON) = ([:], [:])
    if item.operation == .delete {
      shown = try self.shown(item, kind, session)
      before = shown.laidOver(by: seen ?? [:])
    }
    // Who edits a deleted item wants it, also if nothing else changes: one column asks whether its row is still there.
    let payload = payload.shallowCopy
    for column in change.columns where payload.count == 0 {
      if let value = shown[member: column] { payload.set(member: column, value) }
    }
    if payload.count == 0, mayBeStored, item.operation == .delete {
      throw Failure(
        .queueInvalidPayload, "a column is expected: the server may have deleted the row",
        field: "/payload")
    }
    for (column, _) in payload.members {
      guard let saw = before[member: column], let theirs = pulled?.values[member: column],
        StoredRow.holds(theirs, saw)
      else { continue }
      item.stored?.row.set(member: column, theirs)
    }
    // Nothing is stored of a row that was deleted elsewhere.
    let isGone = try isDeletedElsewhere(row, session)
    let hasWork = item.change(
      payload, over: before, of: isGone ? [:] : base.laidOver(by: pulled?.values ?? [:]))
    return try settle(item, row, kind, session, hasWork: hasWork, mayBeStored)
  }

  /// A pull has brought the row as others have changed it, and the user sees that beside their own change: it is the
  /// new base, unless they have changed the same.
  private func followPull(
    _ pulled: OwnRow?, _ item: QueueItem, _ row: QueueRow, _ kind: QueueKind, _ session: OpenSession
  ) {
    guard let stored = item.stored, session.choice == item.org, let kept = kind.own, let pulled,
      let version = pulled.version
    else { return }
    let shown = pulled.values.shallowCopy
    shown.set("updated_at", .string(version))
    let isSent = row.attempts > 0 && !row.isEdited
    switch item.compare(shown, kept, named: stored.version, isSent: isSent) {
    case .free, .same:
      // A pull does not bring the id of the row's last change: an unproved change is compared with the row again.
      let isUnproved = row.attempts > 0
      let isAsked = isUnproved && !(kept.change?.id.isEmpty ?? true)
      // Figures are read beside the rows, but not while the server may have something else.
      item.stored = stored.moved(
        to: pulled.values, version: isAsked ? stored.version : version,
        counted: isUnproved ? stored.counted ?? stored.row : JSON?.none)
    case .unchanged, .changed, .deleted, nil:
      // A column that the app neither kept when the base was read, nor sent: the user sees it now.
      let known = item.before.laidOver(by: item.payload)
      for (column, value) in pulled.values.members where known[member: column] == nil {
        stored.row.set(member: column, value)
      }
    }
  }

  /// Store a change or a deletion of a stored row, or drop it if it changes nothing.
  private func settle(
    _ item: QueueItem, _ row: QueueRow, _ kind: QueueKind, _ session: OpenSession, hasWork: Bool,
    _ mayBeStored: Bool
  ) throws(Failure) -> JSON {
    if hasWork || row.state == .sending {
      item.mayBeCounted = false
      try write(item, row, kind, session, isEdited: mayBeStored, isAccepted: false)
      return try state(of: item, row)
    }
    if row.sequence != 0 { try drop(row, session) }
    return ["id": .uuid(item.id), "state": "stored"]
  }

  /// Nothing is left to change: the row is as it is stored.
  private func drop(_ row: QueueRow, _ session: OpenSession) throws(Failure) {
    let now = core.clock.now()
    try core.removeStored([row.item], now)
    try syncRuns.endIfDone(session.owner, now)
  }

  /// Write an item that the user has changed into its row, or into a new one.
  private func write(
    _ item: QueueItem, _ row: QueueRow, _ kind: QueueKind?, _ session: OpenSession,
    isEdited: Bool, isAccepted: Bool = true
  ) throws(Failure) {
    let keys = try core.keys()
    try row.put(item, kind, session.queueKey, keys, isAccepted: isAccepted)
    row.beginAnew()
    row.isEdited = isEdited
    guard row.sequence != 0 else {
      row.sequence = try core.queue.insert(row)
      return
    }
    try core.queue.write(row)
    if row.state != .sending { try core.dependencies.removeParents(of: row.item) }
  }

  private func state(of item: QueueItem, _ row: QueueRow) throws(Failure) -> JSON {
    let state = try core.queue.find(row.item)?.state ?? .pending
    return ["id": .uuid(item.id), "state": .string(state.word)]
  }

  private static var inFlight: Failure {
    Failure(.queueInFlight, "the item is being sent; try again in a moment", field: "/id")
  }

  /// Take an item back. One that is not stored is removed; if the server may have it, it is only marked, and the
  /// server is asked first. A stored one is deleted there, if its kind allows that; else its change is taken back. A
  /// correction that is parked is dropped: the row stays as it is. `force` removes an item without asking.
  func cancel(_ request: JSON) throws(Failure) -> JSON {
    let fields = try Fields(request, known: ["id", "force", "base"])
    let session = try decider.requireSession()
    let isForced = try fields.bool(ifPresent: "force") ?? false
    return try core.database.transaction { () throws(Failure) in
      guard let (row, item) = try corrected(fields, session) else {
        return try remove(try findIdle(fields, session), session, mayBeStored: false)
      }
      let kind = core.configuration.backend.kind(item.kind)
      if let base = try base(fields), let kind {
        for (column, now) in try shown(item, kind, session).members
        where !StoredRow.holds(now, base[member: column] ?? .null) {
          throw ItemIntake.changed(column)
        }
      }
      if item.stored != nil {
        return try takeBack(item, row, kind, session, isForced: isForced)
      }
      let isSending = row.state == .sending
      if isSending, isForced || kind?.own?.deletion == nil { throw ItemIntake.inFlight }
      let outcome = try self.outcome(row, session)
      // It may have been stored before it was added again.
      let fate = try core.fate(of: row.item)?.fate ?? .cancelled
      let isAgain = fate != .cancelled && row.state != .parked && kind?.own?.deletion != nil
      guard isSending || !isForced && (outcome == .untold || isAgain) else {
        return try remove(row, session, mayBeStored: outcome != .known || isAgain)
      }
      if kind?.own != nil, !row.isEdited { item.noteSent(kind) }
      item.isCancelled = true
      try write(item, row, kind, session, isEdited: true)
      return try cancelled(row)
    }
  }

  private func cancelled(_ row: QueueRow, released: Int = 0) throws(Failure) -> JSON {
    let id = try row.read(try core.keys().queues.derived(for: row.owner))?.id
    let state = try core.queue.find(row.item)?.state
    return [
      "id": .uuid(id ?? row.substituteID), "released": .int(released), "state": JSON(state?.word),
    ]
  }

  private func remove(
    _ row: QueueRow, _ session: OpenSession, mayBeStored: Bool
  ) throws(Failure) -> JSON {
    try core.removeCancelled(row.item, core.clock.now(), mayBeStored: mayBeStored)
    let released = try core.queue.releaseDependents(of: row.item)
    try syncRuns.endIfDone(session.owner, core.clock.now())
    return try cancelled(row, released: released)
  }

  /// Queue the deletion of a stored row, or drop a correction that is parked.
  private func takeBack(
    _ item: QueueItem, _ row: QueueRow, _ kind: QueueKind?, _ session: OpenSession,
    isForced: Bool
  ) throws(Failure) -> JSON {
    let isNew = row.sequence == 0
    if row.state == .parked || isForced && !isNew {
      if row.state == .sending { throw ItemIntake.inFlight }
      return try dropCorrection(item, row, session)
    }
    guard kind?.own?.deletion != nil, let stored = item.stored else {
      if !isNew { return try undo(item, row, kind, session) }
      throw Failure(
        .configNotConfigured, "stored rows of this kind cannot be taken back (\"delete\")",
        field: "/id")
    }
    if stored.isDeleted { return try cancelled(row) }
    let mayBeStored = row.state == .sending || row.attempts > 0
    if mayBeStored, !row.isEdited { item.noteSent(kind) }
    item.stored = StoredBase(
      row: stored.row, version: stored.version, isDeleted: true, counted: stored.counted)
    item.payload = [:]
    try write(item, row, kind, session, isEdited: mayBeStored)
    return try cancelled(row)
  }

  /// Take a change back. If the server may have it, the values from before are sent.
  private func undo(
    _ item: QueueItem, _ row: QueueRow, _ kind: QueueKind?, _ session: OpenSession
  ) throws(Failure) -> JSON {
    if let kind, item.stored != nil, row.state == .sending || row.attempts > 0 {
      if !row.isEdited { item.noteSent(kind) }
      _ = try settle(item, row, kind, session, hasWork: item.change(item.before), true)
    } else if row.state == .sending {
      throw ItemIntake.inFlight
    } else {
      return try dropCorrection(item, row, session)
    }
    return try cancelled(row)
  }

  private func isDeletedElsewhere(
    _ row: QueueRow, _ session: OpenSession
  ) throws(Failure) -> Bool {
    let code = try ParkReason.read(row, session.queueKey)?.string("code")
    return code == MessageCode.deletedElsewhere.rawValue
  }

  /// The row stays as it is stored, unless others have deleted it.
  private func dropCorrection(
    _ item: QueueItem, _ row: QueueRow, _ session: OpenSession
  ) throws(Failure) -> JSON {
    let isGone = try isDeletedElsewhere(row, session)
    try drop(row, session)
    return ["id": .uuid(item.id), "released": 0, "state": isGone ? .null : "stored"]
  }

  /// Whether the server may have an item, and whether the user was told so.
  private enum Outcome { case known, untold, told }

  /// Of a parked item the user was told: the server refused it, or was asked. But it may have refused an
  /// edit and have the older payload, or not have answered the question about an item that was refused
  /// on the way.
  private func outcome(_ row: QueueRow, _ session: OpenSession) throws(Failure) -> Outcome {
    guard row.attempts > 0, let item = try row.read(session.queueKey) else { return .known }
    guard row.state == .parked else { return .untold }
    let rejection = try ParkReason.read(row, session.queueKey)
    if rejection?.string("code") == MessageCode.unknownOutcome.rawValue { return .told }
    return item.mayBeOlder || item.mayBeCounted ? .untold : .known
  }

  /// Try one item again, or all that are parked. `overwrite`: the user has seen what others have set, and wants
  /// their own values.
  func retry(_ request: JSON) throws(Failure) -> JSON {
    let fields = try Fields(request, known: ["id", "overwrite"])
    let session = try decider.requireSession()
    let overwrites = try fields.bool(ifPresent: "overwrite") ?? false
    return try core.database.transaction { () throws(Failure) in
      guard fields.optional("id") != nil else {
        if overwrites {
          throw fields.invalid("overwrite", "one item is expected: its user has seen the values")
        }
        return ["retried": .int(try core.queue.retry(nil, of: session.owner))]
      }
      let row = try findIdle(fields, session)
      if overwrites { try overwrite(row, session, fields) }
      let isTakenBack = try core.takeCancelBack(row, session.queueKey)
      let retried = try core.queue.retry(row.item, of: session.owner)
      return ["retried": .int(max(retried, isTakenBack ? 1 : 0))]
    }
  }

  /// Make the parked change to the row as the user has seen it in the conflict.
  private func overwrite(
    _ row: QueueRow, _ session: OpenSession, _ fields: Fields
  ) throws(Failure) {
    guard row.state == .parked, let item = try row.read(session.queueKey),
      let stored = item.stored,
      let conflict = try ParkReason.read(row, session.queueKey)?["conflict"], !conflict.isNull
    else {
      throw fields.invalid("overwrite", "the item is not parked as changed_elsewhere")
    }
    item.stored = stored.moved(
      to: conflict["row"] ?? [:], version: conflict.string("version"))
    // A request that named another version can change nothing any more.
    item.sent = nil
    row.isEdited = true
    let kind = core.configuration.backend.kind(item.kind)
    try row.put(item, kind, session.queueKey, try core.keys())
    try core.queue.write(row)
  }

  /// An item that is in no request.
  private func findIdle(_ fields: Fields, _ session: OpenSession) throws(Failure) -> QueueRow {
    let row = try core.findItem(fields, session)
    if row.state == .sending { throw ItemIntake.inFlight }
    return row
  }
}

extension Core {
  /// The user wants a cancelled item after all. Returns whether it was one.
  @discardableResult
  func takeCancelBack(_ row: QueueRow, _ key: Key) throws(Failure) -> Bool {
    guard let item = try row.read(key), item.isCancelled else { return false }
    item.isCancelled = false
    row.beginAnew()
    try queue.write(item, to: row, key)
    try dependencies.removeParents(of: row.item)
    return true
  }
}

extension Core {
  /// The item with the `id` of a request, or the unreadable parked item with this substitute id.
  func findItem(_ fields: Fields, _ session: OpenSession) throws(Failure) -> QueueRow {
    let id = try fields.uuid("id")
    if let row = try queuedItem(id, session) { return row }
    throw Core.notQueued(try fate(of: keys().itemTag(id, session.owner))?.fate)
  }

  /// The failure of a call about an item that is not queued.
  static func notQueued(_ fate: StoredItemTable.Fate?) -> Failure {
    let message: StaticCString =
      switch fate {
      case .stored: "the server has stored it; a row that is kept (\"own\") is corrected"
      case .cancelled: "the item is not queued: it was cancelled"
      case .unknownOutcome:
        "the item is not queued: it was cancelled, and the server may have stored it"
      case nil: "no such item is queued, or known as stored or cancelled"
      }
    return Failure(.queueNotFound, message.string, field: "/id")
  }

  /// The queued item with this id; nil: there is none.
  func queuedItem(_ id: UUID, _ session: OpenSession) throws(Failure) -> QueueRow? {
    if let row = try queue.find(try keys().itemTag(id, session.owner)) { return row }
    guard let tag = try queue.findParked(id.bytes, of: session.owner) else { return nil }
    return try queue.find(tag)
  }
}
