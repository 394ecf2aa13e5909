import Base
import Policy
import Store
import Supabase
import Vault

extension Engine {
  var owesPull: Bool {
    get { pulls.contacts || pulls.summary }
    set {
      pulls.contacts = newValue
      pulls.summary = newValue
    }
  }

  /// What a pull under way has brought is gone: begin again.
  func pullAnew() {
    pulls.current = nil
    owesPull = true
  }

  // MARK: When

  /// What is to be read next. Only when nothing of the user's is on its way: what somebody just wrote
  /// must not be hidden by an older row, nor counted twice.
  func nextPull(_ open: OpenSession, _ now: Instant) throws(Failure) -> Job? {
    guard let chosen = open.chosen, chosen.isUsable,
      try !queue.hasSending(of: open.owner)
    else { return nil }
    if !isFlying(.pull), contactsDue(chosen.orgID, now),
      let pull = try startPull(open, chosen.orgID, now)
    {
      return .contacts(open, pull)
    }
    let isSummaryDue = pulls.summary || isOver(pulls.summaryMS, now)
    if isSummaryDue, !isFlying(.summary),
      try !queue.isInDoubt(org: orgTag(chosen.orgID, try keys()), of: open.owner)
    {
      return .summary(open, chosen.orgID)
    }
    return nil
  }

  private func contactsDue(_ org: UUID, _ now: Instant) -> Bool {
    pulls.contacts || pulls.current?.org == org || isOver(pulls.lastMS, now)
  }

  private func isOver(_ lastMS: Int64?, _ now: Instant) -> Bool {
    guard let lastMS else { return false }
    return now.monotonicMS - lastMS >= configuration.limits.pullIntervalMS
  }

  /// When the cache has grown old enough to be asked for again.
  func nextPullMS(_ open: OpenSession, _ now: Instant) -> Int64? {
    guard open.choice != nil, let last = pulls.lastMS else { return nil }
    return min(last, pulls.summaryMS ?? last) + configuration.limits.pullIntervalMS
      - now.monotonicMS
  }

  /// The pull under way, or one that goes on where the last one got to, of whatever process.
  private func startPull(
    _ open: OpenSession, _ org: UUID, _ now: Instant
  ) throws(Failure) -> ContactsPull? {
    if let current = pulls.current, current.org == org { return current }
    let tag = cacheTag(org, open, try keys())
    let entry: DatasetTable.Entry?
    do throws(Failure) {
      entry = try withCache { (cache) throws(Failure) in
        try cache.datasets.read(.contacts, of: tag)
      }
    } catch {
      // Without a cache there is nothing to be read for; everything else goes on.
      Log.line(.warning, "the cache cannot be used: \(error.code.rawValue)")
      return nil
    }
    var cursor: Cursor?
    // Rows that were read with other columns are read again.
    if let sealed = entry?.cursor,
      let json = try open.vault.openJSON(sealed, datasetContext(tag, open, "cursor")),
      let last = Cursor(json), let columns = json["columns"], columns == columnList
    {
      cursor = last.overlapped(seconds: ContactsPull.overlapS)
    }
    return ContactsPull(org: org, after: cursor)
  }

  private var columnList: JSON {
    .array(configuration.backend.contactColumns.map { .string($0) })
  }

  // MARK: Contacts

  /// The answer to a page.
  func pulled(_ pull: ContactsPull, _ reply: HTTPResponse, _ now: Instant) throws(Failure) {
    guard let open, open.choice == pull.org else { return }
    pulls.contacts = false
    pulls.current = pull
    let verdict = RestClassification.rest(reply.facts)
    if verdict == .answered || verdict == .endOfData {
      let isTaken: Bool
      if case .versions(let last) = pull.stage {
        isTaken = try reconcile(behind: last, reply, pull, open, now)
      } else {
        isTaken = try takeIn(reply, pull, open, now)
      }
      if isTaken {
        try succeed(.rest)
        return try succeed(.pull)
      }
    }
    try readFailed(verdict, reply, now)
  }

  /// Take in what was read. A cache that cannot be written holds nothing else up: the server has it
  /// all, and it is read again later.
  func reading(
    _ reply: HTTPResponse, _ now: Instant, _ body: () throws(Failure) -> Void
  ) throws(Failure) {
    do throws(Failure) { try body() } catch  where error.code.retryable {
      Log.line(.warning, "what was read could not be stored: \(error.code.rawValue)")
      stale = true
      try backOff(.pull, reply, now)
    }
  }

  /// Nothing could be read; what there is stays.
  private func readFailed(
    _ verdict: RestOutcome, _ reply: HTTPResponse, _ now: Instant
  ) throws(Failure) {
    if verdict == .needsToken { try refuseToken(reply, now) } else { stale = true }
    // Whatever it is, uploads find out for themselves: reads must not hold them up.
    try backOff(.pull, reply, now)
  }

  /// One page's work: all of it, and how far it goes, in one transaction. nil when the cache was lost
  /// on the way: then the pull begins anew.
  private func step(
    _ pull: ContactsPull, of org: [UInt8],
    _ body: (CacheFile, DatasetTable.Entry, inout PullStep) throws(Failure) -> Void
  ) throws(Failure) -> PullStep? {
    var step = PullStep(pull)
    let file = try cache()
    guard pulls.current != nil else { return nil }
    var isLost = false
    do throws(Failure) {
      try file.database.transaction { () throws(Failure) in
        let known = try file.datasets.read(.contacts, of: org)
        // Erased meanwhile, by another process perhaps: what the pages before brought is gone.
        isLost = known == nil && !pull.isAtStart
        if isLost { return }
        let entry = known ?? DatasetTable.Entry()
        if pull.round != 0, pull.round != entry.round {
          // Another reconcile has begun since: that one sees to the end.
          step.isDone = true
        } else {
          try body(file, entry, &step)
        }
        if step.isOver {
          entry.skipped = step.pull.skipped
          entry.problem = step.problem?.rawValue
        }
        try file.datasets.write(.contacts, of: org, entry)
      }
      if step.hasErased { try file.database.flush() }
    } catch  where error.code == .storageDamaged {
      _ = try replaceCache()
      return nil
    }
    guard !isLost else {
      pullAnew()
      return nil
    }
    return step
  }

  /// A page of rows. False when it is no such page.
  private func takeIn(
    _ reply: HTTPResponse, _ sent: ContactsPull, _ open: OpenSession, _ now: Instant
  ) throws(Failure) -> Bool {
    let columns = configuration.backend.contactColumns
    guard let page = ContactsPage(reply.body, org: sent.org, columns: columns) else {
      return false
    }
    let keys = try keys()
    let org = cacheTag(sent.org, open, keys)
    let taken = try step(sent, of: org) { (file, entry, step) throws(Failure) in
      step.pull.skipped += Int64(page.skipped)
      if sent.isAtStart, entry.cursor != nil {
        // Read with other columns: nothing of it may stay.
        contactIndex = nil
        entry.asOfMS = nil
        step.hasErased = try file.contacts.removeAll(of: org) > 0
      }
      try store(page.rows, of: org, round: entry.round, open, file.contacts, &step.pull)
      switch sent.stage {
      case .changes(let before): try advance(behind: before, page, of: org, open, now, entry, &step)
      case .missing(let ids, let then):
        let rest = Array(ids.dropFirst(ContactsPull.idsAtOnce))
        step.pull.stage = rest.isEmpty ? .versions(after: then) : .missing(rest, then: then)
        if rest.isEmpty { try note(then, in: entry, of: org, open) }
      case .versions: break
      }
    }
    guard let taken else { return true }
    if let contactIndex { reindex(page.rows, org, contactIndex, keys) }
    try proceed(taken, now)
    return true
  }

  private func store(
    _ rows: [ContactRow], of org: [UInt8], round: Int64, _ open: OpenSession,
    _ contacts: ContactTable, _ pull: inout ContactsPull
  ) throws(Failure) {
    let keys = try keys()
    for row in rows {
      let tag = contactTag(row.id, of: org, keys)
      guard let json = row.json else {
        if try contacts.remove(row: tag) { pull.removed += 1 }
        continue
      }
      // Mostly what the overlap brings once more.
      if !pull.isWhole, try contacts.confirm(row: tag, version: row.updatedAt, round: round) {
        continue
      }
      try contacts.put(
        row: tag, org: org, version: row.updatedAt, round: round,
        sealed: try open.vault.seal(json, contactContext(tag, open)))
      pull.rows += 1
    }
  }

  /// Where the changes go on: behind the last row, or, when that was the last page, with a reconcile.
  private func advance(
    behind before: Cursor?, _ page: ContactsPage, of org: [UInt8], _ open: OpenSession,
    _ now: Instant, _ entry: DatasetTable.Entry, _ step: inout PullStep
  ) throws(Failure) {
    if let last = page.last {
      if let before, !last.isBeyond(before) {
        step.problem = .loop
        return
      }
      let place = last.capped(at: try serverMS(now)).json
      place.set("columns", columnList)
      entry.cursor = try open.vault.seal(place, datasetContext(org, open, "cursor"))
      step.pull.stage = .changes(after: last)
    }
    // Rows without a place in the order lead no further.
    guard step.pull.isLast(page.last == nil ? 0 : page.count) else { return }
    if step.pull.isWhole, entry.reconciledMS == nil { entry.reconciledMS = now.wallMS }
    entry.asOfMS = now.wallMS
    guard isReconcileDue(entry, now) else {
      step.isDone = true
      return
    }
    // Begin one, or go on with one that was interrupted.
    var after: UUID?
    if let sealed = entry.reconciled {
      after = try open.vault.openJSON(sealed, datasetContext(org, open, "reconciled"))?["id"]?
        .uuid
    }
    if after == nil { entry.round += 1 }
    step.pull.reconcile(round: entry.round, after: after)
  }

  private func isReconcileDue(_ entry: DatasetTable.Entry, _ now: Instant) -> Bool {
    guard let last = entry.reconciledMS, entry.reconciled == nil else { return true }
    // A clock that was moved back must not put it off.
    return last > now.wallMS || now.wallMS - last >= configuration.limits.reconcileIntervalMS
  }

  private func note(
    _ id: UUID, in entry: DatasetTable.Entry, of org: [UInt8], _ open: OpenSession
  ) throws(Failure) {
    entry.reconciled = try open.vault.seal(
      ["id": .uuid(id)], datasetContext(org, open, "reconciled"))
  }

  /// A page of a reconcile. What the cache lacks, or has in another version, is fetched next; with the
  /// last page, what was not met is removed. False when it is no such page.
  private func reconcile(
    behind last: UUID?, _ reply: HTTPResponse, _ sent: ContactsPull, _ open: OpenSession,
    _ now: Instant
  ) throws(Failure) -> Bool {
    guard let page = VersionsPage(reply.body) else { return false }
    let keys = try keys()
    let org = cacheTag(sent.org, open, keys)
    let taken = try step(sent, of: org) { (file, entry, step) throws(Failure) in
      step.pull.skipped += Int64(page.skipped)
      guard page.skipped == 0 else {
        // Which row is meant is unknown: none may be taken for deleted.
        entry.reconciled = nil
        entry.reconciledMS = now.wallMS
        step.isDone = true
        return
      }
      var missing: [UUID] = []
      for row in page.rows {
        let tag = contactTag(row.id, of: org, keys)
        let isThere = try file.contacts.confirm(
          row: tag, version: row.version, round: entry.round)
        if !isThere { missing.append(row.id) }
      }
      if step.pull.isLast(page.rows.isEmpty ? 0 : page.count), missing.isEmpty {
        let removed = try file.contacts.removeUnmet(of: org, round: entry.round)
        step.pull.removed += Int64(removed)
        if removed > 0 { contactIndex = nil }
        entry.reconciled = nil
        entry.reconciledMS = now.wallMS
        step.isDone = true
      } else if let end = page.rows.last?.id {
        if let last, end <= last {
          step.problem = .loop
        } else if missing.isEmpty {
          try note(end, in: entry, of: org, open)
          step.pull.stage = .versions(after: end)
        } else {
          step.pull.stage = .missing(missing, then: end)
        }
      }
    }
    if let taken { try proceed(taken, now) }
    return true
  }

  /// Go on with the next page, or tell the host that there is something new to show.
  private func proceed(_ step: PullStep, _ now: Instant) throws(Failure) {
    pulls.current = step.isOver ? nil : step.pull
    guard step.isOver else { return }
    stale = step.problem != nil
    pulls.lastMS = now.monotonicMS
    try tellPulled(
      .contacts, rows: step.pull.rows, removed: step.pull.removed, skipped: step.pull.skipped,
      step.problem)
  }

  private func tellPulled(
    _ name: DatasetTable.Name, rows: Int64, removed: Int64 = 0, skipped: Int64 = 0,
    _ problem: PullProblem? = nil
  ) throws(Failure) {
    if skipped > 0 || problem != nil {
      Log.line(
        .warning, "a pull: \(skipped) rows could not be used, \(problem?.rawValue ?? "done")")
    }
    try events.tell(
      [
        "type": "pull_completed", "dataset": .string(name.rawValue), "rows": .int(rows),
        "removed": .int(removed), "skipped": .int(skipped), "problem": JSON(problem?.rawValue),
      ], meta)
  }

  // MARK: The summary

  /// The answer with the figures. What was uploaded while they were read may be in them or not: then
  /// they are asked for again, rather than counted twice.
  func summarised(
    _ org: UUID, _ uploads: Int64, _ reply: HTTPResponse, _ now: Instant
  ) throws(Failure) {
    guard let open, open.choice == org else { return }
    let verdict = RestClassification.rest(reply.facts)
    let body = reply.body
    let figures = body?.kind == .array ? body?.elements.first : body
    guard verdict == .answered, let figures, figures.kind == .object else {
      return try readFailed(verdict, reply, now)
    }
    try succeed(.rest)
    try succeed(.pull)
    guard try meta.int(.uploads) ?? 0 == uploads else { return }
    pulls.summary = false
    pulls.summaryMS = now.monotonicMS
    let tag = cacheTag(org, open, try keys())
    let entry = DatasetTable.Entry()
    entry.asOfMS = now.wallMS
    entry.sealed = try open.vault.seal(
      ["figures": figures], datasetContext(tag, open, "sealed"))
    try withCache { (cache) throws(Failure) in
      try cache.datasets.write(.summary, of: tag, entry)
    }
    try tellPulled(.summary, rows: 1)
  }
}
