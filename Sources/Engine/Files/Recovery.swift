import Base
import Policy
import Store
import Supabase
import Vault

/// Sets files aside and carries over what they still hold.
///
/// A damaged main file is renamed, never deleted, and a fresh one takes its place and notes the old
/// one's name. As soon as the device key is at hand, every row whose seal opens is carried over, in
/// one transaction with the event that says what was saved and what was lost. Old page images may
/// show an item twice or bring back one that was stored shortly before: items keep their ids, so the
/// server stores nothing twice.
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
  /// A file that was set aside waits for the device key.
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

  /// Look whether an earlier process left a file to be carried over.
  func findUnfinished() throws(Failure) {
    isNeeded = try core.meta.text(.salvage) != nil
  }

  /// Be ready for a call: another process may have set a file aside, or the disk may have failed under
  /// a connection.
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

  /// The device key is gone, so nothing in the files can be read here. Keep them under another name
  /// and begin anew.
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

  /// Carry over what a file that was set aside still holds, if there is one. Without the keys no row
  /// can be proved, so nothing is done then.
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
    // The image may be older than the item's last request, and the server may have the item.
    row.attempts = max(row.attempts, 1)
    // What it waited for may be stored meanwhile; `linkParents` tells.
    if row.state == .waiting(.dependency) { row.state = .pending }
    let sequence = try core.queue.insert(row)
    if let kind = core.configuration.backend.kind(item.kind),
      try links.linkParents(of: item, kind, row.item, row.owner, keys),
      row.state != .parked, row.state != .waiting(.organisation)
    {
      try core.queue.transition(sequence, .waiting(.dependency))
    }
    try core.syncRuns.start(of: row.owner, now: core.clock.now().wallMS)
    report.salvaged += 1
  }

  /// Carry the session over unless somebody signed in, or the session ended, in the fresh file.
  private func carry(_ row: SessionRow) throws(Failure) -> Bool {
    let fresh = try sessions.row()
    guard fresh.owner == nil, fresh.ended == nil else { return false }
    row.generation = max(row.generation, fresh.generation) + 1
    return try core.sessionTable.write(row, expecting: fresh.generation)
  }
}
