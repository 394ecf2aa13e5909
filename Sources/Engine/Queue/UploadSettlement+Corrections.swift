import Base
import Policy
import Store
import Supabase
import Vault

/// The versions of the rows that an answer has proved.
struct UploadVersions {
  private var known: [(id: UUID, version: String)] = []

  init(_ response: HTTPResponse, of batch: UploadBatch) {
    // The ids of rows that were stored before come with their versions of now, and not with their values.
    guard batch.kind.own != nil, batch.request != .ids else { return }
    if batch.request == .upload, batch.isByFunction {
      for row in UploadReply.rows(response.rows) ?? [] {
        if let version = row.version, row.status != .duplicate { known.append((row.id, version)) }
      }
    } else {
      var found: [(id: UUID, version: String)] = []
      _ = UploadReply.storedIDs(response.rows) { found.append(($0, $1)) }
      known = found
    }
    known = known.ordered { $0.id < $1.id }
  }

  func version(of id: UUID) -> String? {
    known.sortedPlace(of: id) { $0.id }.map { known[$0].version }
  }
}

/// Items that correct stored rows, and those that go on as corrections.
extension UploadSettlement {
  // MARK: Proved items

  /// Of the items that the server has stored: those whose users want something else meanwhile become changes or
  /// deletions of the stored rows. Returns the others.
  func follow(
    _ proved: UploadBatch, _ versions: UploadVersions
  ) throws(Failure) -> UploadBatch {
    guard proved.kind.own != nil else { return proved }
    let edited = try core.queue.edited(by: core.holder.bytes)
    if edited.isEmpty { return proved }
    let key = try core.keys().queues.derived(for: proved.owner)
    var left: [Int64] = []
    for sent in proved.items where edited.sortedContains(sent.sequence) {
      guard let row = try core.queue.find(sent.tag), let item = try row.read(key),
        let values = sent.values
      else { continue }
      if item.follow(values, version: versions.version(of: sent.id), proved.kind) {
        try goOn(row, item, proved.kind, key)
        left.append(sent.sequence)
      }
    }
    return proved.filter { !left.contains($0.sequence) }
  }

  /// The server has these items, in one of the forms that were sent: they become corrections, and their rows are
  /// read first.
  func correct(_ batch: UploadBatch, _ now: Instant) throws(Failure) {
    guard !batch.isEmpty else { return }
    var counted: [Counted] = []
    try core.database.transaction { () throws(Failure) in
      let key = try core.keys().queues.derived(for: batch.owner)
      for sent in batch.items {
        guard let row = try core.queue.find(sent.tag), let item = try row.read(key) else {
          continue
        }
        if !row.isEdited { item.noteSent(batch.kind) }
        let payload = item.payload
        if let one = Counted(stored: payload, item, core.configuration.backend) {
          counted.append(one)
        }
        if item.followUnread(batch.kind) {
          item.stored = item.stored.map {
            $0.moved(to: $0.row, version: $0.version, counted: payload)
          }
          try goOn(row, item, batch.kind, key)
        } else {
          try core.removeStored([row.item], now)
        }
      }
      pulls.requirePull()
      try syncRuns.endIfDone(batch.owner, now)
    }
    summaryCache.countSent(counted, of: batch, sessions.session)
  }

  /// The item goes on as a correction of its stored row. Items that wait for it to be stored are sent, unless it
  /// is to be deleted.
  private func goOn(
    _ row: QueueRow, _ item: QueueItem, _ kind: QueueKind, _ key: Key
  ) throws(Failure) {
    try row.put(item, kind, key, try core.keys())
    row.state = .pending
    row.beginAnew()
    row.attempts = 0
    row.isEdited = false
    try core.queue.write(row)
    if item.operation == .change { try core.queue.releaseDependents(of: row.item) }
  }

  /// Items that follow a deleted one are parked: they would refer to a row that is gone.
  func parkBelow(_ done: UploadBatch, _ now: Instant) throws(Failure) {
    for sent in done.items where sent.content?.operation == .delete {
      var rows: [QueueRow] = []
      for child in try core.dependencies.children(of: sent.tag) {
        if let row = try core.queue.find(child), row.state != .parked { rows.append(row) }
      }
      try core.dependencies.removeChildren(of: sent.tag)
      try park(rows, ParkReason(.parentDeleted), now)
    }
  }

  /// Show the stored items in their user's list. If the cache cannot be written, the next pull brings them.
  func keepOwn(
    _ proved: UploadBatch, _ versions: UploadVersions, _ now: Instant
  ) throws(Failure) {
    guard let kept = proved.kind.own else { return }
    var rows: [OwnRow] = []
    var deleted: [(id: UUID, version: String)] = []
    for item in proved.items {
      if item.isGone { deleted.append((item.id, versions.version(of: item.id) ?? "")) }
      guard !item.isGone, let values = item.values else { continue }
      rows.append(
        OwnRow(id: item.id, values: kept.kept(of: values), version: versions.version(of: item.id)))
    }
    try keep(rows, without: deleted, of: proved, now)
  }

  /// Show these rows in their user's list, and hide those that are gone. What was erased stays so.
  func keep(
    _ rows: [OwnRow], without deleted: [(id: UUID, version: String)] = [], of batch: UploadBatch,
    _ now: Instant
  ) throws(Failure) {
    guard let session = sessions.session, session.owner == batch.owner,
      core.configuration.mayCache(batch.org, session)
    else { return }
    do throws(Failure) {
      try ownRows.put(
        rows, batch.kind, batch.org, session, areInserts: !batch.isCorrection, now)
      if !deleted.isEmpty { try ownRows.remove(deleted, batch.kind, batch.org, session) }
    } catch {
      if error.code == .memoryExhausted { throw error }
      Log.warning("stored rows could not be kept", error)
    }
  }

  // MARK: Comparing

  /// What comparing a correction with its row has led to.
  private enum Compared {
    case settled
    /// Nobody has changed what it changes, and the question was whether the way is open.
    case open
    /// The row does not show every column that tells.
    case hidden
  }

  /// Compare the rows in the answer with the corrections; returns those whose rows it lacks.
  func compareNamed(
    _ batch: UploadBatch, _ received: Received
  ) throws(Failure) -> UploadBatch {
    var named: [UUID] = []
    var open: [UUID] = []
    guard let rows = received.response.rows else { return batch }
    for row in rows {
      guard let id = row.uuid("id"), !named.contains(id) else { continue }
      named.append(id)
      let one = batch.filter { $0.id == id }
      if one.isEmpty { continue }
      switch try compare(one, with: row.value, received) {
      case .settled: break
      case .open: open.append(id)
      case .hidden: try settle(one, .schema, one.inquiry?.reason, received)
      }
    }
    // Judged as they were sent, so that one which is refused on the way is searched for among all.
    try settle(batch.filter { open.contains($0.id) }, .unchanged, batch.inquiry?.reason, received)
    return batch.filter { !named.contains($0.id) }
  }

  /// Settle one correction by its row, as the server has it now.
  private func compare(
    _ one: UploadBatch, with row: JSON, _ received: Received
  ) throws(Failure) -> Compared {
    guard received.isCurrent, let kept = one.kind.own, let sent = one.items.first else {
      try settle(one, .unnamed, nil, received)
      return .settled
    }
    let key = try core.keys().queues.derived(for: one.owner)
    guard let queued = try core.queue.find(sent.tag), let item = try queued.read(key) else {
      return .settled
    }
    let named = sent.content?.namedVersion
    guard
      let result = item.compare(
        row, kept, named: named, isSent: named != nil && !queued.isEdited,
        isRepeated: queued.attempts > 0 || one.inquiry?.cause(received.now) ?? .unnamed != .unnamed)
    else { return .hidden }
    var reason: ParkReason?
    let shown = OwnRow(id: sent.id, values: kept.kept(of: row), version: row.string("updated_at"))
    switch result {
    case .same:
      sent.noteFound(kept.kept(of: row))
      try eraseProved(one, received)
      return .settled
    case .free:
      // The change is made to the row as it is now.
      let version = row.string("updated_at")
      if version != item.stored?.version { queued.isEdited = true }
      item.moveBase(to: row, version: version, kept)
      try queued.put(item, one.kind, key, try core.keys())
      try core.queue.write(queued)
      // A later edit or deletion stands on what the user's list shows.
      try keep([shown], of: one, received.now)
    case .changed(let columns):
      try keep([shown], of: one, received.now)
      reason = ParkReason(
        .changedElsewhere, field: columns.first, conflict: item.conflict(columns, with: row, kept))
    case .unchanged, .deleted: break
    }
    let isOfWay = one.inquiry?.cause(received.now).isAboutTheWay ?? false
    if isOfWay, result == .unchanged || result == .free { return .open }
    try settle(one, result.answer, reason ?? one.inquiry?.reason, received)
    return .settled
  }

  /// A function has answered about each correction.
  func finishCorrections(
    _ batch: UploadBatch, _ rows: [RowResult], _ received: Received
  ) throws(Failure) {
    let decisions = RowDecisions(rows, batch)
    if decisions.isJudged { try noteJudged(batch, received.now) }
    let rest = try eraseNamed(batch, decisions.stored, received)
    let compared = rows.ids { $0.status != .rejected }
    let others = rest.filter { !compared.contains($0.id) }
    try noteTaken(batch, others, decisions, received.now)
    let inquiry = UploadBatch.Inquiry(
      cause: .unnamed, reason: nil, isOfOne: true, sinceMS: received.now.monotonicMS)
    for result in rows {
      let one = rest.filter { $0.id == result.id }
      if one.isEmpty { continue }
      let asked = one.asking(.rows, inquiry)
      switch result.status {
      case .changed:
        if let row = result.row {
          if let version = result.version { row.set("updated_at", .string(version)) }
          if case .hidden = try compare(asked, with: row, received) {
            try settle(one, .unnamed, nil, received)
          }
        } else {
          try settle(one, .unnamed, nil, received)
        }
      case .gone: try settle(asked, .unnamed, nil, received)
      case .notAllowed, .conflict: try settle(asked, .unchanged, nil, received)
      case .rejected, .stored, .duplicate: break
      }
    }
    try settleRefused(others, decisions, received)
  }
}

extension Comparison {
  fileprivate var answer: UploadSituation.Answer {
    switch self {
    case .same: .named
    case .unchanged: .unchanged
    case .free: .free
    case .changed: .changed
    case .deleted: .deleted
    }
  }
}
