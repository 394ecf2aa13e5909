import Base
import Policy
import Store
import Supabase
import Vault

/// Pulls sets of rows into the cache, page by page and one after another: the contacts of the chosen organisation,
/// then the user's own rows of each kind there.
///
/// **Changes.** Rows are read in the order (updated_at, id) after a cursor, the last row of the
/// previous pull. A row that was committed late can have an earlier `updated_at`, so a pull first
/// goes back by 10 s (`overlapS`); a known row costs one look-up. Without a cursor, or with other
/// columns, the pull begins at the first row.
///
/// **Reconcile.** Every `reconcile_interval_s`, and after a change of the membership, ids and
/// versions of all rows are read in pages. Each row that the cache has is marked with the
/// reconcile's number; one that is missing, or has another version, is fetched. After the last page
/// the rows without the mark are removed: they were deleted or are no longer visible. The position
/// is stored after each page, so an interrupted reconcile continues. One that began more than an hour ago
/// is begun anew, and the next one is due an interval after its beginning: rows that it has passed may be
/// gone.
///
/// Each page is stored in one transaction with the position that it reached. A page that does not
/// advance the position ends the pull (`loop`). A page of own rows that was read while an upload began is read
/// again, because the upload's rows are cached already (`OwnRowCache`). A row that cannot be used is skipped; a whole pull
/// without one usable row is no complete pull (`unusable_row`). If the cache is lost meanwhile, the
/// pull starts again.
struct RowPuller: Rules {
  let parts: Parts

  // MARK: When

  /// The set that is pulled next. While contacts have a page to come, the rows of the first kind wait.
  private func next(_ org: UUID?, _ now: Instant) -> PullState.Rows? {
    pulls.rows.first {
      $0.isNeeded || $0.pull.map { $0.source.org == org } ?? false
        || core.isPullOver($0.finishedMS, now)
    }
  }

  func isDue(_ org: UUID?, _ now: Instant) -> Bool { next(org, now) != nil }

  // MARK: Asking

  /// Send the next page's request. If the cache cannot be used, only reads pause.
  func send(_ session: OpenSession, _ org: UUID?, _ now: Instant) throws(Failure) {
    guard let rows = next(org, now), var pull = try pull(rows, session, org, now) else { return }
    pull.uploads = try core.meta.int(.uploads) ?? 0
    try inFlight.send(
      pull.request(core.configuration.backend, session.accessToken), .rows(pull),
      generation: session.generation, now)
  }

  /// The running pull of a set, or a new one; nil: the cache cannot be used.
  private func pull(
    _ rows: PullState.Rows, _ session: OpenSession, _ org: UUID?, _ now: Instant
  ) throws(Failure) -> RowPull? {
    if let current = rows.pull, current.source.org == org, !current.isOld(now) { return current }
    let source: RowSource
    if let kind = rows.kind {
      guard
        let own = RowSource.own(
          kind, org: org, user: session.userID, nowMS: try core.serverMS(now))
      else { return nil }
      source = own
    } else {
      source = .contacts(core.configuration.backend, org: org)
    }
    do throws(Failure) {
      let failures = try core.pauses.read(Purpose.pull.rawValue).attempts
      let set = CacheNames.set(source, session, try core.keys())
      let entry = try cache.use { (cache) throws(Failure) in
        try cache.datasets.read(.rows, of: set)
      }
      let made = RowPull(
        source, after: try cursor(in: entry, of: set, source, session), round: entry?.round ?? 0,
        failures: Int64(failures))
      pulls.begin(made)
      return made
    } catch  where error.code != .memoryExhausted && !core.reads.mustRunAgain {
      Log.warning("the cache cannot be used", error)
      try pauses.backOff(.pull, HTTPResponse.timedOut, now)
      return nil
    }
  }

  /// The position of the last pull of any process; nil: start at the first row, for instance
  /// because the columns changed.
  private func cursor(
    in entry: DatasetTable.Entry?, of set: [UInt8], _ source: RowSource, _ session: OpenSession
  ) throws(Failure) -> Cursor? {
    guard let sealed = entry?.cursor,
      let json = try session.cacheKey.openJSON(
        sealed, CacheNames.datasetContext(set, session, "cursor")),
      let last = Cursor(json), let columns = json["columns"], columns == RowPuller.form(source)
    else { return nil }
    return last.overlapped(seconds: RowPull.overlapS)
  }

  private static func form(_ source: RowSource) -> JSON {
    .array(source.form.map { .string($0) })
  }

  // MARK: Responses

  func finish(_ sent: RowPull, _ response: HTTPResponse, _ now: Instant) throws(Failure) {
    guard let session = sessions.session,
      core.configuration.mayCache(sent.source.org, session)
    else { return }
    var pull = sent
    let outcome = RestClassification.rest(response.facts)
    guard outcome == .answered || outcome == .endOfData, let rows = response.rows else {
      pull.fail()
      pulls.fail(pull)
      return try refresh.failRead(.pull, outcome, response, now)
    }
    pull.succeed()
    if sent.source.isAhead(of: try core.serverMS(now)) {
      // The answer has told the time: under the clock before, rows are left out.
      pulls.restart()
    } else if sent.source.kind != nil, try core.meta.int(.uploads) ?? 0 != sent.uploads {
      // An upload has begun meanwhile: this page may lack what is cached of the rows that it has stored.
      pulls.proceed(pull)
    } else if case .versions(let last) = pull.stage {
      try reconcile(after: last, VersionsPage(rows), pull, session, now)
    } else {
      try storeRows(rows, sent, pull, session, now)
    }
    try pauses.succeed(.pull)
  }

  /// Store one page and its position in one transaction, and go on. If the cache was lost meanwhile, the pull
  /// starts again.
  private func store(
    _ sent: RowPull, of set: [UInt8], _ session: OpenSession, _ now: Instant,
    _ body: (CacheTables, DatasetTable.Entry, inout RowPull) throws(Failure) -> Void
  ) throws(Failure) {
    let tables = try cache.open()
    guard pulls.isUnderWay(sent) else { return }
    let place = CacheNames.org(sent.source.org, session, try core.keys())
    var pull = sent
    var isLost = false
    var hasErased = false
    do throws(Failure) {
      try tables.database.transaction { () throws(Failure) in
        let known = try tables.datasets.read(.rows, of: set)
        // Erased meanwhile, perhaps by another process, so that the rows of the earlier pages are gone; or begun by
        // another handle, after whose pages this one goes on.
        isLost =
          try sent.isAtStart
          ? cursor(in: known, of: set, sent.source, session) != nil : known?.wasRead != true
        if isLost { return }
        let entry = known ?? DatasetTable.Entry()
        if sent.isAtStart {
          pull.begin(in: entry)
          if entry.cursor != nil { hasErased = try erase(set, sent.source, entry, tables) }
        }
        if pull.round != entry.round {
          // Another handle has begun at the first row, or a reconcile; that one completes.
          pull.isDone = true
        } else {
          try body(tables, entry, &pull)
        }
        if pull.isDone, let sinceMS = pull.source.sinceMS {
          pull.removed += Int64(try tables.contacts.removeListed(of: set, before: sinceMS))
        }
        if pull.isOver {
          entry.skipped = pull.skipped
          entry.problem = pull.problem?.rawValue
        }
        try tables.datasets.write(.rows, of: set, in: place, entry)
      }
      if hasErased { try tables.database.flush() }
    } catch  where tables.database.isDamaged {
      try cache.replace()
      return
    }
    guard !isLost else { return pulls.restart() }
    try proceed(pull, now)
  }

  /// Remove the rows that were read with other columns; whether there were any.
  private func erase(
    _ set: [UInt8], _ source: RowSource, _ entry: DatasetTable.Entry, _ tables: CacheTables
  ) throws(Failure) -> Bool {
    if source.kind == nil { cache.dropIndex() }
    entry.asOfMS = nil
    return try tables.contacts.removeAll(of: set) + tables.blocks.removeAll(of: set) > 0
  }

  // MARK: Changes

  /// Store a page of rows: changes, or rows that a reconcile missed.
  private func storeRows(
    _ rows: ResponseRows, _ sent: RowPull, _ pull: RowPull, _ session: OpenSession,
    _ now: Instant
  ) throws(Failure) {
    let source = sent.source
    let set = CacheNames.set(source, session, try core.keys())
    try store(pull, of: set, session, now) { (tables, entry, pull) throws(Failure) in
      let writer = try RowWriter(core, session, source, of: set, tables)
      let answer = try RowsPage(rows, of: source) { (row) throws(Failure) in
        try writer.take(row, round: entry.round, &pull)
      }
      pull.count(answer.page)
      guard !pull.isOver else { return }
      try writer.writeBlocks()
      switch sent.stage {
      case .changes(let before):
        try advance(after: before, answer.page, of: set, tables, session, now, entry, &pull)
      case .missing(let ids, let then):
        let rest = sent.rest(of: ids, after: answer.ids)
        pull.stage = rest.isEmpty ? .versions(after: then) : .missing(rest, then: then)
        if rest.isEmpty { try note(then, pull, in: entry, of: set, session) }
      case .versions: break
      }
    }
  }

  /// Continue after the last row of the page; after the last page, begin a reconcile if it is due.
  private func advance(
    after before: Cursor?, _ page: Page<Cursor>, of set: [UInt8], _ tables: CacheTables,
    _ session: OpenSession, _ now: Instant, _ entry: DatasetTable.Entry, _ pull: inout RowPull
  ) throws(Failure) {
    if let last = page.last {
      if let before, !last.isBeyond(before) {
        pull.problem = .loop
        return
      }
      let place = last.capped(at: try core.serverMS(now)).json
      place.set("columns", RowPuller.form(pull.source))
      entry.cursor = try session.cacheKey.seal(
        place, CacheNames.datasetContext(set, session, "cursor"))
      pull.stage = .changes(after: last)
    }
    // Rows without id and time do not advance the position.
    guard page.isLast || page.last == nil else { return }
    if pull.isWhole, pull.rows == 0, pull.fault != nil {
      entry.cursor = nil
      pull.problem = .unusableRow
      return
    }
    // An item that was put into the list before its row is read may have been deleted since.
    if pull.isWhole, entry.reconciledMS == nil,
      try !tables.contacts.hasUnmet(of: set, round: entry.round)
    {
      entry.reconciledMS = now.wallMS
    }
    entry.asOfMS = now.wallMS
    guard isReconcileDue(entry, now) else {
      pull.isDone = true
      return
    }
    // Begin a reconcile, or continue one that was interrupted.
    if let position = try position(in: entry, of: set, session, now) {
      pull.reconcile(round: entry.round, after: position.after, since: position.sinceMS)
    } else {
      entry.round += 1
      pull.reconcile(round: entry.round, after: nil, since: now.wallMS)
    }
  }

  // MARK: Reconcile

  private func isReconcileDue(_ entry: DatasetTable.Entry, _ now: Instant) -> Bool {
    guard let last = entry.reconciledMS, entry.reconciled == nil else { return true }
    // A clock that is set back does not delay it.
    return last > now.wallMS
      || now.wallMS - last >= core.configuration.limits.reconcileIntervalMS
  }

  /// Where a reconcile was interrupted; nil: there was none, or it is too old.
  private func position(
    in entry: DatasetTable.Entry, of set: [UInt8], _ session: OpenSession, _ now: Instant
  ) throws(Failure) -> (after: UUID, sinceMS: Int64)? {
    guard let sealed = entry.reconciled,
      let json = try session.cacheKey.openJSON(
        sealed, CacheNames.datasetContext(set, session, "reconciled")),
      let after = json.uuid("id"), let sinceMS = json.int("since_ms"),
      !RowPull.isOld(since: sinceMS, now)
    else { return nil }
    return (after, sinceMS)
  }

  private func note(
    _ id: UUID, _ pull: RowPull, in entry: DatasetTable.Entry, of set: [UInt8],
    _ session: OpenSession
  ) throws(Failure) {
    entry.reconciled = try session.cacheKey.seal(
      ["id": .uuid(id), "since_ms": .int(pull.sinceMS)],
      CacheNames.datasetContext(set, session, "reconciled"))
  }

  /// Process a page of a reconcile: fetch next what the cache lacks or has in another version;
  /// after the last page, remove unmarked rows.
  private func reconcile(
    after last: UUID?, _ answer: VersionsPage, _ sent: RowPull, _ session: OpenSession,
    _ now: Instant
  ) throws(Failure) {
    let keys = try core.keys()
    let set = CacheNames.set(sent.source, session, keys)
    try store(sent, of: set, session, now) { (tables, entry, pull) throws(Failure) in
      let page = answer.page
      pull.count(page)
      guard !pull.isOver else { return }
      guard page.skipped == 0 else {
        // A row without an id may be any row, so no row counts as deleted.
        finishReconcile(entry, &pull)
        return
      }
      var missing: [UUID] = []
      for row in answer.rows {
        let tag = CacheNames.row(row.id, sent.source, of: set, session, keys)
        let isKnown = try tables.contacts.confirm(
          row: tag, in: set, version: row.version, round: entry.round)
        if !isKnown { missing.append(row.id) }
      }
      if page.isLast {
        let writer = try RowWriter(core, session, sent.source, of: set, tables)
        pull.removed += Int64(try writer.removeUnmet(round: entry.round))
        try writer.writeBlocks()
        finishReconcile(entry, &pull)
      } else if let end = page.last {
        if let last, end <= last {
          pull.problem = .loop
        } else if missing.isEmpty {
          try note(end, sent, in: entry, of: set, session)
          pull.stage = .versions(after: end)
        } else {
          pull.stage = .missing(missing, then: end)
        }
      }
    }
  }

  /// What was deleted after the reconcile began may not have been found, so it is as old as its beginning.
  private func finishReconcile(_ entry: DatasetTable.Entry, _ pull: inout RowPull) {
    entry.reconciled = nil
    entry.reconciledMS = pull.sinceMS
    pull.isDone = true
  }

  // MARK: The end

  /// Continue with the next page, or end the pull.
  private func proceed(_ pull: RowPull, _ now: Instant) throws(Failure) {
    guard pull.isOver else { return pulls.proceed(pull) }
    pulls.finish(pull, now.monotonicMS)
    problems.notePull(pull, pull.problem, now)
    if pull.problem == nil { reachability.noteSuccess() } else { reachability.noteFailure() }
    Log.line(
      pull.skipped > 0 || pull.problem != nil ? .warning : .info,
      "\(pull.source.name) pulled: \(pull.rows) rows, \(pull.removed) removed, \(pull.skipped) not usable, "
        + (pull.problem?.rawValue ?? "done"))
    news.notePull()
  }
}

extension Core {
  /// Whether a pull of that time, by the monotonic clock, is older than the interval.
  func isPullOver(_ lastMS: Int64?, _ now: Instant) -> Bool {
    guard let lastMS else { return false }
    return now.monotonicMS - lastMS >= configuration.limits.pullIntervalMS
  }
}
