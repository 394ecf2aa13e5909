import Base
import Policy
import Store
import Supabase
import Vault

/// Sets files aside and carries over what they still hold.
///
/// A damaged main file is renamed, never deleted. A fresh one takes its place and stores the old
/// one's name. When the device key is available, one transaction carries over every item whose seal
/// opens and the session row with the highest generation, and adds the event that says what was
/// carried over and what was lost. The seals of the session row are opened at its first use.
/// Durable events, revocations and pending sign-ins are not carried over.
///
/// Old page images may show an item twice or bring back one that was stored shortly before. Items
/// keep their ids, so the server stores nothing twice. An older damaged image of an item can count
/// as lost although a newer one was carried over.
final class Recovery {
  private struct Report {
    var salvaged: Int64 = 0
    var lost: Int64 = 0
    var hasSession = false
  }

  private let core: Core
  private let sessions: SessionStore
  private let events: EventQueue
  private let cache: CacheFile
  private let links: ItemLinks
  /// A damaged file was set aside when the current one was opened.
  private(set) var hasRecovered: Bool
  /// The contents of a file that was set aside are still to be carried over; that needs the device
  /// key.
  private(set) var isNeeded = false { didSet { core.revision.advance() } }

  init(
    _ core: Core, _ sessions: SessionStore, events: EventQueue, cache: CacheFile,
    links: ItemLinks, hasRecovered: Bool
  ) {
    self.core = core
    self.sessions = sessions
    self.events = events
    self.cache = cache
    self.links = links
    self.hasRecovered = hasRecovered
  }

  private var folder: String { core.configuration.dataFolder }

  // MARK: Files

  /// Find out whether an earlier process left a file to carry over.
  func findUnfinished() throws(Failure) {
    isNeeded = try core.meta.text(.salvage) != nil
  }

  /// Prepare for a call: replace a connection if another process set its file aside or its disk
  /// failed.
  func followFiles() throws(Failure) {
    cache.closeIfSuspect()
    if core.database.isOpen, core.database.isCurrent {
      // The old connection serves until a new one can be opened.
      guard core.database.isSuspect, let fresh = try? DataFolder.openMain(in: folder) else {
        return
      }
      return replaceConnection(fresh)
    }
    sessions.reset(.file)
    let next = try DataFolder.openOrReplaceMain(in: folder, at: core.clock.now())
    replaceConnection(next.database)
    hasRecovered = next.replaced
    try findUnfinished()
  }

  private func replaceConnection(_ fresh: Database) {
    let old = core.database
    core.use(fresh)
    old.close()
  }

  /// The device key is lost, so nothing in the files can be read here. Rename them and start with
  /// empty ones.
  func quarantine() throws(Failure) {
    let now = core.clock.now()
    sessions.reset(.keylessFiles)
    core.database.close()
    _ = try DataFolder.setAside(DataFolder.mainPath(in: folder), "keyless", at: now.wallMS)
    _ = try DataFolder.setAside(DataFolder.cachePath(in: folder), "keyless", at: now.wallMS)
    core.use(try DataFolder.openMain(in: folder))
  }

  /// Set a damaged main file aside, start a fresh one, and carry over what can be read already.
  /// Returns false when the file is not damaged: the failure had another cause.
  func recover() throws(Failure) -> Bool {
    guard core.database.isDamaged else { return false }
    core.database.close()
    // The fresh file holds no proof of the device key yet, so the keys are forgotten too.
    sessions.reset(.damagedFile)
    core.use(try DataFolder.replaceDamaged(in: folder, at: core.clock.now()))
    hasRecovered = true
    isNeeded = true
    if try core.keyRing.state(for: core.database) == .ready { try completeIfNeeded() }
    return true
  }

  // MARK: Carrying over

  /// Carry over what a file that was set aside still holds, if there is one. Needs the keys,
  /// because only their seals prove a row.
  func completeIfNeeded() throws(Failure) {
    guard isNeeded, let keys = core.keyRing.keys else { return }
    isNeeded = false
    guard let aside = try core.meta.text(.salvage) else { return }
    let salvage = Salvage(path: folder + "/" + aside)
    var report = Report()
    try core.database.transaction { () throws(Failure) in
      var newest: SessionRow?
      try salvage.each { (record) throws(Failure) in
        if let row = QueueRow(record) {
          try carry(row, keys, &report)
        } else if let row = SessionRow(record), row.generation >= newest?.generation ?? 0 {
          newest = row
        }
      }
      if let newest { report.hasSession = try carry(newest) }
      try core.meta.set(.salvage, .null)
      try emit(report, aside, unreadablePages: salvage.unreadablePages)
    }
    Log.line(
      .warning,
      "a damaged file was set aside: \(report.salvaged) items carried over, "
        + "\(report.lost) items and \(salvage.unreadablePages) pages unreadable")
  }

  private func emit(
    _ report: Report, _ aside: String, unreadablePages: Int64
  ) throws(Failure) {
    try events.emitDurable(
      [
        "type": "storage_recovered", "file": .string(aside),
        "salvaged": .int(report.salvaged), "lost": .int(report.lost),
        "unreadable_pages": .int(unreadablePages), "session": .bool(report.hasSession),
        "message": core.message(.storageRecovered),
      ], owner: nil)
  }

  /// Carry an item over if its seal opens.
  private func carry(
    _ row: QueueRow, _ keys: KeyRing.Keys, _ report: inout Report
  ) throws(Failure) {
    guard try core.queue.find(row.item) == nil else { return }
    let key = try keys.queues.derived(for: row.owner)
    guard let item = try row.read(key) else {
      report.lost += 1
      return
    }
    let sequence = try core.queue.insert(row)
    switch row.state {
    case .parked:
      try core.queue.transition(sequence, .parked(rejection: row.rejection))
    case .waiting(.organisation):
      try core.queue.transition(sequence, .waiting(.organisation))
    default: try core.queue.transition(sequence, .pending())
    }
    if let kind = core.configuration.backend.kind(item.kind),
      try links.linkParents(of: item, kind, row.item, row.owner, keys), row.state != .parked
    {
      try core.queue.transition(sequence, .waiting(.dependency))
    }
    try core.syncRuns.start(of: row.owner, now: core.clock.now().wallMS)
    report.salvaged += 1
  }

  /// Carry the session over unless the fresh file has a user or an ended session.
  private func carry(_ row: SessionRow) throws(Failure) -> Bool {
    let fresh = try sessions.row()
    guard fresh.owner == nil, fresh.ended == nil else { return false }
    row.generation = max(row.generation, fresh.generation) + 1
    return try core.sessionTable.write(row, expecting: fresh.generation)
  }
}
