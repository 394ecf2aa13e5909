import Base
import Policy
import Store
import Supabase
import Vault

/// The server's figures, and the count of items sent since.
struct CachedSummary {
  var figures: JSON = .null
  var sent = Figures()
  var entry: DatasetTable.Entry?

  /// The beginning of the period that the figures cover.
  var sinceMS: Int64? { figures.string("since").flatMap { ISO8601.parse($0) } }

  var json: JSON { ["figures": figures, "sent": sent.json] }
}

/// The activity summary in the cache.
///
/// Three numbers make up what the user has registered: the server's figures, what was stored since
/// they were read (`sent`), and what is still queued (`queued`). An item moves from one to the next
/// and is never in two: figures that were read during an upload may or may not count its items, so
/// they are dropped and requested again.
struct SummaryCache: Rules {
  let parts: Parts

  func read(
    of org: [UInt8], _ session: OpenSession, _ tables: CacheTables
  ) throws(Failure) -> CachedSummary {
    var result = CachedSummary()
    result.entry = try tables.datasets.read(.summary, of: org)
    if let sealed = result.entry?.sealed,
      let json = try session.cacheKey.openJSON(
        sealed, CacheNames.datasetContext(org, session, "sealed"))
    {
      result.figures = json["figures"] ?? .null
      result.sent = Figures(json["sent"])
    }
    return result
  }

  /// Count stored items until the next figures arrive. Runs after they were deleted from the queue: it
  /// may undercount until the next pull, and never double-counts.
  func countSent(_ counted: [Counted], of batch: UploadBatch, _ session: OpenSession?) {
    let backend = core.configuration.backend
    guard let session, session.owner == batch.owner, backend.has(.summary) else { return }
    let org = backend.hasOrganisations ? batch.org : nil
    do throws(Failure) {
      let tag = CacheNames.org(org, session, try core.keys())
      try cache.use { (tables) throws(Failure) in
        try tables.database.transaction { () throws(Failure) in
          var summary = try read(of: tag, session, tables)
          guard let entry = summary.entry else { return }
          for one in counted { summary.sent.add(one, since: summary.sinceMS) }
          entry.sealed = try session.cacheKey.seal(
            summary.json, CacheNames.datasetContext(tag, session, "sealed"))
          try tables.datasets.write(.summary, of: tag, entry)
        }
      }
    } catch {
      // The next pull brings them.
      Log.warning("stored items could not be counted", error)
    }
  }

  /// Store the server's figures.
  func store(
    _ figures: JSON, of org: UUID?, _ session: OpenSession, _ now: Instant
  ) throws(Failure) {
    let tag = CacheNames.org(org, session, try core.keys())
    let entry = DatasetTable.Entry()
    entry.asOfMS = now.wallMS
    entry.sealed = try session.cacheKey.seal(
      ["figures": figures], CacheNames.datasetContext(tag, session, "sealed"))
    try cache.use { (tables) throws(Failure) in
      try tables.datasets.write(.summary, of: tag, entry)
    }
  }
}

/// `summary_get`, and the request for the figures.
struct Summary: Rules {
  let parts: Parts

  func get(_ request: JSON) throws(Failure) -> JSON {
    _ = try Fields(request, known: [])
    try core.configuration.backend.require(.summary)
    let (session, org) = try decider.requirePlace()
    let tag = CacheNames.org(org, session, try core.keys())
    let summary = try cache.use { (tables) throws(Failure) in
      try summaryCache.read(of: tag, session, tables)
    }
    let unsent = try UnsentFigures(core, session, in: org, since: summary.sinceMS).sum()
    // Another process first takes an item out of the queue and then counts it in the cache.
    try core.database.requireUnchanged()
    let asOfMS = summary.entry?.asOfMS
    var banners = try presenter.dataBanners(.summary, asOfMS: asOfMS)
    banners.isUnsent = unsent.items > 0
    return [
      "summary": summary.figures, "as_of_ms": JSON(asOfMS), "sent": summary.sent.json,
      "queued": unsent.figures.json, "banners": presenter.banners(banners, asOfMS: asOfMS),
    ]
  }

  // MARK: Pulling

  func isDue(_ now: Instant) -> Bool {
    guard core.configuration.backend.has(.summary) else { return false }
    return pulls.needsSummary || core.isPullOver(pulls.summaryMS, now)
  }

  func send(_ session: OpenSession, _ org: UUID?, _ now: Instant) throws(Failure) {
    try inFlight.send(
      RestRequests.summary(core.configuration.backend, org: org, bearer: session.accessToken),
      .summary(org: org, uploads: try core.meta.int(.uploads) ?? 0),
      generation: session.generation, now)
  }

  /// `uploads`: the number of uploads that had begun when the request was sent.
  func finish(
    _ org: UUID?, uploads: Int64, _ response: HTTPResponse, _ now: Instant
  ) throws(Failure) {
    guard let session = sessions.session, core.configuration.mayCache(org, session) else { return }
    let outcome = RestClassification.rest(response.facts)
    let figures = response.body ?? response.rows?.first
    // Figures may have any names. A captive portal's JSON has none.
    guard outcome == .answered, let figures, figures.kind == .object, figures.holdsNumber else {
      return try refresh.failRead(.summary, outcome, response, now)
    }
    try pauses.succeed(.summary)
    guard try core.meta.int(.uploads) ?? 0 == uploads else { return }
    try summaryCache.store(figures, of: org, session, now)
    pulls.finishSummary(now.monotonicMS)
    news.notePull()
  }
}

extension JSON {
  /// Whether there is a number in it, at any depth.
  fileprivate var holdsNumber: Bool {
    switch kind {
    case .integer, .real: true
    case .array: elements.contains { $0.holdsNumber }
    case .object: members.contains { $0.value.holdsNumber }
    case .string, .boolean, .null: false
    }
  }
}
