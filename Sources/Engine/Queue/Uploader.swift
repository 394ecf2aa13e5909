import Base
import Policy
import Store
import Supabase
import Vault

/// Takes items from the queue and sends them.
///
/// Items are leased to this handle before they are sent. The leases of a dead or late process are
/// reclaimed: its items become pending and are charged with an attempt, because the server may have
/// them.
struct Uploader: Rules {
  /// An upload's time-out and grace.
  private static var leaseMS: Int64 { 75_000 }
  /// How often other processes' leases are checked.
  private static var leaseCheckMS: Int64 { 5000 }

  let parts: Parts

  // MARK: Sending

  /// Send the next batch. Items that turn out to be unreadable are parked, and those of an unknown
  /// kind wait. Of cancelled items the server is asked whether it has them.
  func send(_ session: OpenSession, _ now: Instant) throws(Failure) {
    let backend = core.configuration.backend
    var items: [(row: QueueRow, item: QueueItem)] = []
    var held: [QueueRow] = []
    for row in try take(session, now) {
      guard let item = try row.read(session.queueKey) else {
        try settlement.park([row], ParkReason(.unreadable), now)
        continue
      }
      // Corrections of all operations have one key; this version may know a way to change and none
      // to delete.
      if item.kind(backend) == nil { held.append(row) } else { items.append((row, item)) }
    }
    if !held.isEmpty { try holdUnknownKind(held, session.owner, now) }
    guard let head = items.first, let kind = backend.kind(head.item.kind) else { return }
    items = items.ordered { $0.item.id < $1.item.id }
    // All have the same columns, as their batch key says.
    let hasUser = items.lazy.compactMap { $0.item.hasUser }.first ?? kind.hasUser
    let all = UploadBatch(
      owner: session.owner, key: head.row.batchKey, org: head.item.org, user: session.userID,
      kind: kind, columns: head.item.columns(kind, hasUser: hasUser),
      items: items.map {
        UploadBatch.Item($0.row, $0.item, Counted($0.item, backend), isKept: kind.own != nil)
      })
    func mustAsk(_ item: UploadBatch.Item) -> Bool {
      item.isCancelled || item.isCorrection && item.content?.namedVersion == nil
    }
    settlement.ask(all.filter(mustAsk), .unnamed, nil, now)
    var batch = all.filter { !mustAsk($0) }
    if batch.isCorrection, !batch.isByFunction, batch.items.count > 1 {
      // They were queued when a function took many.
      try settlement.release(batch.with(Array(batch.items.dropFirst())))
      batch = batch.with(Array(batch.items.prefix(1)))
    }
    guard !batch.isEmpty else { return }
    let request =
      batch.isCorrection
      ? RestRequests.correct(
        backend, kind: kind, org: batch.org, batch.items.compactMap { $0.content?.correction },
        bearer: session.accessToken)
      : RestRequests.upload(
        backend, kind: kind, columns: batch.columns,
        rows: items.lazy.filter { !$0.item.isCancelled }.map {
          $0.item.row(user: hasUser ? session.userID : nil)
        },
        bearer: session.accessToken)
    guard let request else { return }
    try inFlight.send(request, .upload(batch), generation: session.generation, now)
  }

  /// Lease the next items that may share a request.
  private func take(_ session: OpenSession, _ now: Instant) throws(Failure) -> [QueueRow] {
    try core.database.transaction { () throws(Failure) in
      let begun = try core.steadyToStore(now)
      let isTight = core.database.isTight
      let isProbing = try pauses.isProbing(.upload)
      let mostBytes = isTight ? UploadSize.tightBytes : UploadSize.mostBytes
      let rows = try core.queue.take(
        of: session.owner, holder: core.holder.bytes, until: begun + Uploader.leaseMS,
        maximumSize: Int64(mostBytes)
      ) { (key) in
        if key.isSingle { return 1 }
        return uploads.maxItems(of: key, isProbing: isProbing, isTight: isTight)
      }
      if rows.isEmpty { return rows }
      _ = try core.meta.next(.uploads)
      try core.syncRuns.start(of: session.owner, now: begun)
      return rows
    }
  }

  // MARK: Unknown kinds

  // Versions of an app may share a folder. Items whose kind a configuration does not list are marked
  // as waiting, so that the host sees why, and a handle whose configuration lists it takes the mark
  // away. A handle looks at each batch key once.

  /// The configuration does not list the items' kind: they wait for one that does.
  private func holdUnknownKind(
    _ rows: [QueueRow], _ owner: [UInt8], _ now: Instant
  ) throws(Failure) {
    if let first = rows.first { uploads.add(unknownKind: first.batchKey) }
    try core.database.transaction { () throws(Failure) in
      for row in rows { try core.queue.transition(row.sequence, .waiting(.kind)) }
      try syncRuns.endIfDone(owner, now)
    }
  }

  /// Whether items wait for a handle that knows their kind, and this handle has not looked at them.
  func hasHeldKinds(_ session: OpenSession) throws(Failure) -> Bool {
    try core.queue.waiting(of: session.owner, for: .kind).contains {
      !uploads.isOfUnknownKind($0.batchKey)
    }
  }

  /// Release the items that wait for a handle that knows their kind, if this one does.
  func releaseKnownKinds(_ session: OpenSession) throws(Failure) {
    for held in try core.queue.waiting(of: session.owner, for: .kind)
    where !uploads.isOfUnknownKind(held.batchKey) {
      let item = try core.queue.find(held.item)?.read(session.queueKey)
      // An unreadable item is released too: sending parks it.
      if let item, item.kind(core.configuration.backend) == nil {
        uploads.add(unknownKind: held.batchKey)
      } else {
        try core.queue.releaseKind(batchKey: held.batchKey, of: session.owner)
      }
    }
  }

  // MARK: Reading back

  /// Ask the server which items of the batch it has.
  func sendReadBack(
    _ batch: UploadBatch, _ session: OpenSession, _ now: Instant
  ) throws(Failure) {
    let ids =
      batch.request == .control
      ? [Random.uuid(at: now.wallMS)]
      : batch.items.map { $0.id }
    try inFlight.send(
      RestRequests.readBack(
        core.configuration.backend, kind: batch.kind, org: batch.org, user: session.userID,
        ids: ids,
        columns: settlement.columns(of: batch), bearer: session.accessToken),
      .readBack(batch), generation: session.generation, now)
    uploads.readBacks.removeFirst()
  }

  /// Cancel the read-backs; items are re-sent idempotently. The server may have them, so each is
  /// charged with an attempt.
  func abandonReadBacks() throws(Failure) {
    for batch in uploads.readBacks {
      try settlement.release(try settlement.stillLeased(batch), charged: true)
    }
    uploads.readBacks = []
  }

  // MARK: Leases

  /// Whether a dead or late process holds items, or this handle holds items whose request could not
  /// be made. A living process keeps its items until its lease ends. Call it only while no upload is
  /// in flight.
  func hasLostLeases(_ now: Instant) throws(Failure) -> Bool {
    try !lostHolders(now, late: core.steady(now)).isEmpty
  }

  /// `late`: leases until then have ended. nil: none has, because at a start the clock may not be set.
  func reclaimLostLeases(_ now: Instant, late: SteadyTime?) throws(Failure) {
    for holder in try lostHolders(now, late: late) { try core.queue.reclaim(from: holder) }
  }

  private func lostHolders(_ now: Instant, late: SteadyTime?) throws(Failure) -> [[UInt8]] {
    guard try core.queue.hasLeases() else { return [] }
    return try core.queue.leases().filter { lease in
      late.map { lease.until <= $0 } ?? false || isVoid(lease.holder, now)
    }.map { $0.holder }
  }

  private func isVoid(_ holder: [UInt8], _ now: Instant) -> Bool {
    holder == core.holder.bytes || !Holder.isAlive(holder, bootID: now.bootID)
  }

  /// How long until the next check of other processes' leases; nil: there are none. A holder may
  /// finish or die long before its lease ends.
  func nextLeaseCheckMS(_ now: Instant) throws(Failure) -> Int64? {
    var next: Int64?
    let time = try core.steady(now)
    for lease in try core.queue.leases() where lease.holder != core.holder.bytes {
      let left = lease.until - time
      if left > 0 { next = min(next ?? Uploader.leaseCheckMS, left) }
    }
    return next
  }

  /// Give back what this handle holds.
  func releaseLeases() throws(Failure) {
    try core.queue.reclaim(from: core.holder.bytes)
  }
}
