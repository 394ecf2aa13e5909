import Base
import Policy
import Store
import Supabase
import Vault

/// Sets files aside and carries over what they still hold.
///
/// A damaged main file is renamed, never deleted. A fresh one takes its place and stores the old
/// one's name. When the device key is available, one transaction carries over every item whose seal
/// opens, the session row, notices and orders to revoke a session, and adds the notice that says
/// how many items these were, and whether anything could not be read. The seals of the session row are
/// opened at its first use. Pending sign-ins are not carried over: the user signs in again.
///
/// Damage may bring back an item that was stored shortly before. Items keep their ids, so the server
/// stores nothing twice.
struct Recovery: Rules {
  /// What became of a file.
  private struct Report {
    var carried: Int64 = 0
    /// Something in it could not be read, so items may be lost.
    var isUnreadable = false
    var hasSession = false
  }

  struct State {
    /// A damaged file was set aside when the current one was opened.
    var hasRecovered: Bool
    /// The data files are gone and could not be made anew.
    fileprivate var isAway = false
    /// A file that was set aside waits for the device key.
    fileprivate(set) var isNeeded = false

    init(hasRecovered: Bool) { self.hasRecovered = hasRecovered }
  }

  let parts: Parts
  var hasRecovered: Bool { parts.recoveryState.hasRecovered }
  var isNeeded: Bool { parts.recoveryState.isNeeded }
  private var folder: String { core.configuration.dataFolder }

  // MARK: Files

  /// Find out whether an earlier process left a file to carry over.
  func findUnfinished() throws(Failure) {
    let aside = try core.meta.text(.salvage)
    if let aside { try DataFolder.checkAside(aside, in: folder) }
    parts.recoveryState.isNeeded = aside != nil
  }

  /// Be ready for a call: another process may have set a file aside or changed its schema, or the disk
  /// may have failed under a connection.
  func followFiles() throws(Failure) {
    cache.closeIfSuspect()
    if core.database.isOpen, core.database.isCurrent {
      // The old connection serves until a new one can be opened.
      guard core.database.isSuspect, let fresh = try? DataFolder.openSharedMain(in: folder) else {
        return try core.database.checkSchema()
      }
      return replaceConnection(fresh)
    }
    sessions.reset(.file)
    // Closed first: the log's index may be that of the new file as well, and to close one connection takes the
    // locks of the other, so that another process shortens the index while it is used (SIGBUS).
    core.database.close()
    let next: (database: Database, replaced: Bool)
    do throws(Failure) {
      next = try DataFolder.openMain(in: folder, at: core.clock.now())
      guard ProjectChange.other(core.configuration, next.database) == nil else {
        throw Failure(.storageFailed, "the main file is another project's")
      }
    } catch {
      if !parts.recoveryState.isAway {
        Log.line(.warning, "no call works: the data files cannot be opened")
      }
      parts.recoveryState.isAway = true
      throw error
    }
    parts.recoveryState.isAway = false
    replaceConnection(next.database)
    parts.recoveryState.hasRecovered = next.replaced
    try findUnfinished()
  }

  private func replaceConnection(_ fresh: Database) {
    let old = core.database
    core.use(fresh)
    // A screen that was decided from the old file may be wrong.
    core.neighbours.urgesLook = true
    old.close()
  }

  /// A user has signed in, and the key store has no key for the files: set them aside, and begin anew with a
  /// key of another name. Nothing is changed unless the store saves that key and gives it back. The old
  /// files stay, and so does their key, which the store may have again later.
  func beginAnew() throws(Failure) {
    let why = core.lostKey.text(Core.keyIsLost)
    let next = try DataFolder.replaceKeyless(core.database, in: folder, at: core.clock.now()) {
      () throws(Failure) in
      try core.keyRing.saveNext { core.keyFailure($0) }
      Log.line(.warning, why + "; they are set aside")
      sessions.reset(.keylessFiles)
    }
    // Another process may have done it.
    sessions.reset(.keylessFiles)
    core.use(next)
    // The session goes with the files, unless another process has stored one in the new file.
    try sessions.end(.unreadable(generation: 0))
    try findUnfinished()
    // The proof of the new key does not depend on the transaction that stores the session.
    _ = try core.keys()
  }

  /// Set a damaged main file aside, start a fresh one, and carry over what can be read already. Returns
  /// false when the file is not damaged: the failure had another cause.
  func recover() throws(Failure) -> Bool {
    let damaged = core.database
    guard damaged.isDamaged else { return false }
    damaged.close()
    // The fresh file holds no proof of the device key yet, so the keys are forgotten too.
    sessions.reset(.damagedFile)
    let next = try DataFolder.openMain(
      in: folder, damaged: damaged.fileID, at: core.clock.now())
    core.use(next.database)
    if next.replaced { parts.recoveryState.hasRecovered = true }
    try findUnfinished()
    if try core.keyState() == .ready { try completeIfNeeded() }
    return true
  }

  // MARK: Carrying over

  /// Carry over what a file that was set aside still holds, if there is one. Needs the keys,
  /// because only their seals prove a row. After a failure that may pass, such as a full disk, the next
  /// call tries again.
  func completeIfNeeded() throws(Failure) {
    guard isNeeded, let keys = core.keyRing.keys else { return }
    do throws(Failure) {
      // A file may have been damaged before it had carried over another one.
      var done: [String] = []
      while let next = try completeNext(done, keys) { done.append(next) }
      parts.recoveryState.isNeeded = false
    } catch {
      parts.recoveryState.isNeeded = error.code.retryable
      throw error
    }
  }

  /// Carry over one file; returns its name, or nil if none is left. `done`: the files before it. The
  /// transaction that carries over reads that it has to, so that of several handles one does it.
  private func completeNext(
    _ done: [String], _ keys: KeyRing.Keys
  ) throws(Failure) -> String? {
    try core.database.transaction { () throws(Failure) in
      guard let aside = try core.meta.text(.salvage), !done.contains(aside) else { return nil }
      try DataFolder.checkAside(aside, in: folder)
      try complete(aside, done + [aside], keys)
      return aside
    }
  }

  /// `done`: this file, and those before it.
  private func complete(
    _ aside: String, _ done: [String], _ keys: KeyRing.Keys
  ) throws(Failure) {
    let salvage = try Salvage.open(folder + "/" + aside)
    let device = try salvage.number(.deviceKey)
    let hasKey = try device == core.meta.int(.deviceKey) ?? 0
    let report = try carry(salvage, keys, withSession: hasKey)
    // One that waited when its key was given up is looked into when the key is back.
    if !hasKey { try list(aside, device, salvage) }
    // A file may have been damaged before it had carried over another one.
    var earlier = try salvage.text(.salvage)
    if let name = earlier, done.contains(name) || !DataFolder.isAside(name, in: folder) {
      earlier = nil
    }
    try core.meta.set(.salvage, Value(earlier))
    Log.line(
      .warning,
      "\(aside) was set aside: \(report.carried) items carried over, "
        + (report.isUnreadable ? "some of it unreadable" : "all of it readable"))
    // The decision has said that the key is gone.
    if !hasKey, !report.isUnreadable { return }
    try emit(report, aside, hasKey ? .storageRecovered : .storageKeyLost)
  }

  private func list(_ aside: String, _ device: Int64, _ salvage: Salvage) throws(Failure) {
    let keyless = try KeylessList(try core.meta.text(.keyless))
    guard keyless.json[member: aside] == nil else { return }
    keyless.add(aside, device, try salvage.blob(.keyCheck))
    try core.meta.set(.keyless, .text(try keyless.text))
  }

  private func emit(_ report: Report, _ aside: String, _ reason: MessageCode) throws(Failure) {
    try notices.add(
      "storage_recovered", reason: reason.rawValue,
      [
        "file": .string(aside), "carried": .int(report.carried),
        "unreadable": .bool(report.isUnreadable), "session": .bool(report.hasSession),
      ], owner: nil)
  }

  /// `withSession`: without its key a session is worth nothing.
  private func carry(
    _ salvage: Salvage, _ keys: KeyRing.Keys, withSession: Bool
  ) throws(Failure) -> Report {
    var report = Report()
    // Items that refer to others: those may be found later.
    var children: [[UInt8]] = []
    try salvage.eachItem { (row) throws(Failure) in
      if try core.queue.find(row.item) != nil { return }
      guard let item = try row.read(try keys.queues.derived(for: row.owner)) else {
        report.isUnreadable = true
        return
      }
      try carry(row, item, keys)
      report.carried += 1
      if !ItemLinks.parents(of: item, core.configuration.backend.kind(item.kind)).isEmpty {
        children.append(row.item)
      }
    }
    for tag in children { try links.hold(tag, keys) }
    try salvage.eachName { (tag) throws(Failure) in
      if try core.queue.find(tag) == nil { report.isUnreadable = true }
    }
    try salvage.eachNotice { (number, owner, sealed) throws(Failure) in
      if try !notices.addAgain(number, owner: owner, sealed, keys) { report.isUnreadable = true }
    }
    try salvage.eachRevocation { (sealed) throws(Failure) in
      if try Revocation.isOrder(sealed, keys) {
        _ = try core.revocations.add(sealed: sealed)
      } else {
        report.isUnreadable = true
      }
    }
    if withSession, let row = try salvage.session() { report.hasSession = try carry(row) }
    if !salvage.isWhole { report.isUnreadable = true }
    return report
  }

  /// Carry an item over, with the next number: items come in the order of their registration.
  private func carry(
    _ row: QueueRow, _ item: QueueItem, _ keys: KeyRing.Keys
  ) throws(Failure) {
    // Only the seal is proof.
    row.org = keys.orgTag(item.org)
    let kind = core.configuration.backend.kind(item.kind)
    row.list = item.list(row.owner, keys)
    row.listedMS = item.listedMS(kind, createdMS: row.createdMS)
    // The image may be older than the item's last request, and the server may have the item.
    row.attempts = max(row.attempts, 1)
    // What it waited for may be stored meanwhile; `ItemLinks.hold` tells.
    if row.state == .waiting(.dependency) { row.state = .pending }
    _ = try core.queue.insert(row)
    try core.syncRuns.start(of: row.owner, now: try core.steadyToStore(core.clock.now()))
  }

  /// Carry the session over unless the fresh file has a user or an ended session.
  private func carry(_ row: SessionRow) throws(Failure) -> Bool {
    let fresh = try sessions.row()
    guard fresh.owner == nil, fresh.ended == nil else { return false }
    row.generation = max(row.generation, fresh.generation) + 1
    return try core.sessionTable.write(row, expecting: fresh.generation)
  }
}
