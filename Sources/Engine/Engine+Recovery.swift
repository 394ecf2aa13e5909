public import Base
import CPlatform
import Policy
import Store
import Supabase
import Vault

/// What was carried over from a damaged file.
private struct Carried {
  var items: Int64 = 0
  var unreadable: Int64 = 0
  var session = false
}

extension Engine {
  /// Set a damaged file aside and start a fresh one; what can be read is carried over as soon as the
  /// device key is at hand.
  ///
  /// Returns false when the file is not damaged: the failure was another one.
  public func recover() throws(Failure) -> Bool {
    guard main.isDamaged else { return false }
    main.close()
    open = nil
    flights = []
    readBack = []
    main = try Files.replaceDamaged(in: configuration.dataFolder, at: clock.now())
    recovered = true
    owesSalvage = true
    // The fresh file has no proof of the device key yet.
    ring.forget()
    try carryOver()
    return true
  }

  /// Be ready for a call: another process may have set the file aside, or the disk may have failed.
  public func followFile() throws(Failure) {
    handedOut = nil
    if let file = cacheFile?.database, file.isSuspect { closeCache() }
    if main.isOpen, main.isCurrent {
      // The old connection serves until a new one can be had.
      guard main.isSuspect, let fresh = try? Files.openMain(in: configuration.dataFolder) else {
        return
      }
      main.close()
      main = fresh
      return
    }
    open = nil
    ring.forget()
    let next = try Files.openOrReplaceMain(in: configuration.dataFolder, at: clock.now())
    main.close()
    (main, recovered) = next
    owesSalvage = try meta.text(.salvage) != nil
  }

  /// Carry over what a file that was set aside still holds. Without the device key nothing of it can
  /// be proved; then it is tried again by the next call.
  func carryOver() throws(Failure) {
    guard try ring.state(for: main) == .ready, let keys = ring.keys else { return }
    owesSalvage = false
    guard let aside = try meta.text(.salvage) else { return }
    let salvage = Salvage(path: configuration.dataFolder + "/" + aside)
    var carried = Carried()
    try main.transaction { () throws(Failure) in
      var newest: SessionRow?
      try salvage.each { (record) throws(Failure) in
        if let row = QueueRow(record) {
          try carry(row, keys, &carried)
        } else if let row = SessionRow(record), row.generation >= newest?.generation ?? 0 {
          newest = row
        }
      }
      if let newest { carried.session = try carry(newest) }
      try meta.set(.salvage, .null)
      try notify(
        [
          "type": "storage_recovered", "file": .string(aside), "salvaged": .int(carried.items),
          "lost": .int(carried.unreadable), "session": .bool(carried.session),
          "message": ["code": "storage_recovered", "text": words("storage_recovered")],
        ], owner: nil)
    }
    Log.line(
      .warning,
      "a damaged file was set aside: \(carried.items) items carried over, "
        + "\(carried.unreadable) unreadable")
  }

  /// An item goes over if its seal is whole. Old images of pages may show it twice; and one that was
  /// stored or cancelled shortly before may come back: the server stores nothing twice.
  private func carry(
    _ found: QueueRow, _ keys: KeyRing.Keys, _ carried: inout Carried
  ) throws(Failure) {
    guard try queue.find(found.item) == nil else { return }
    let key = try keys.queues.derived(for: found.owner)
    guard let item = try readItem(found, key) else {
      carried.unreadable += 1
      return
    }
    let row = found
    let sequence = try queue.insert(row)
    switch row.state {
    case .parked: try queue.transition(sequence, .parked(rejection: row.rejection))
    case .waiting(.organisation): try queue.transition(sequence, .waiting(.organisation))
    default: try queue.transition(sequence, .pending())
    }
    if let kind = configuration.backend.kind(item.kind),
      try linkParents(of: item, kind, row.item, row.owner, keys), row.state != .parked
    {
      try queue.transition(sequence, .waiting(.dependency))
    }
    try syncRuns.start(of: row.owner, now: clock.now().wallMS)
    carried.items += 1
  }

  private func carry(_ found: SessionRow) throws(Failure) -> Bool {
    let row = found
    let fresh = try sessions.read()
    guard fresh.owner == nil, fresh.ended == nil else { return false }
    row.generation = max(row.generation, fresh.generation) + 1
    return try sessions.write(row, expecting: fresh.generation)
  }
}
