public import Base
import Policy
import Store
import Supabase
import Vault

/// Registrations, counted as the summary counts them.
struct Figures {
  var activities: Int64 = 0
  var minutes: Int64 = 0

  init() {}

  init(_ json: JSON?) {
    activities = json?.int("activities") ?? 0
    minutes = json?.int("minutes") ?? 0
  }

  var json: JSON { ["activities": .int(activities), "minutes": .int(minutes)] }

  mutating func add(_ registered: Registered, since: Int64?) {
    if let since, let at = registered.atMS, at < since { return }
    activities += 1
    minutes += registered.minutes
  }
}

/// What the summary will count of a queued item.
struct Registered {
  let minutes: Int64
  /// When the visit was.
  let atMS: Int64?

  /// More than anybody registers; sums of it stay exact in JSON.
  private static var mostMinutes: Int64 { 1_000_000 }

  /// nil for an item of a kind that the summary does not count.
  init?(_ item: QueueItem, _ backend: Backend) {
    guard item.kind == backend.summaryKind else { return nil }
    minutes = min(max(0, item.payload.int("minutes") ?? 0), Registered.mostMinutes)
    atMS = item.payload.string("occurred_at").flatMap { ISO8601.parse($0) } ?? item.occurredAtMS
  }
}

/// The server's figures, and what has been sent since they were read.
private struct Summary {
  var figures: JSON = .null
  var sent = Figures()
  var entry: DatasetTable.Entry?

  /// The beginning of the time that the figures cover.
  var sinceMS: Int64? { figures.string("since").flatMap { ISO8601.parse($0) } }

  var json: JSON { ["figures": figures, "sent": sent.json] }
}

extension Engine {
  private func readSummary(
    of org: [UInt8], _ open: OpenSession, _ cache: CacheFile
  ) throws(Failure) -> Summary {
    var result = Summary()
    result.entry = try cache.datasets.read(.summary, of: org)
    if let sealed = result.entry?.sealed,
      let json = try open.vault.openJSON(sealed, datasetContext(org, open, "sealed"))
    {
      result.figures = json["figures"] ?? .null
      result.sent = Figures(json["sent"])
    }
    return result
  }

  public func summaryGet(_ request: JSON) throws(Failure) -> JSON {
    _ = try Fields(request, known: [])
    let (open, org) = try requireOrganisation()
    let tag = cacheTag(org.orgID, open, try keys())
    let summary = try withCache { (cache) throws(Failure) in
      try readSummary(of: tag, open, cache)
    }
    let queued = try queued(in: org.orgID, since: summary.sinceMS, open)
    let asOf = summary.entry?.asOfMS
    var notices = notices(asOf: asOf)
    notices.isUnsent = queued.activities > 0
    return [
      "summary": summary.figures, "as_of_ms": JSON(asOf), "sent": summary.sent.json,
      "queued": queued.json, "banners": banners(notices, asOf: asOf),
    ]
  }

  /// What is registered and not yet stored on the server. (A parked item waits for its user, not for a
  /// network: whether it will ever count is open.)
  private func queued(
    in org: UUID, since: Int64?, _ open: OpenSession
  ) throws(Failure) -> Figures {
    var result = Figures()
    try queue.eachRow(of: open.owner, state: nil) { (row) throws(Failure) in
      guard row.state != .parked, let item = try readItem(row, open.queueKey), item.org == org,
        let registered = Registered(item, configuration.backend)
      else { return }
      result.add(registered, since: since)
    }
    return result
  }

  /// Items are proved to be stored, and the cached figures do not have them yet. Noted after the queue
  /// has let go of them: counted a little late they may be, twice never.
  func countSent(_ items: [UploadBatch.Item], of org: UUID, _ owner: [UInt8]) {
    guard let open, open.owner == owner else { return }
    do throws(Failure) {
      let tag = cacheTag(org, open, try keys())
      try withCache { (cache) throws(Failure) in
        try cache.database.transaction { () throws(Failure) in
          var summary = try readSummary(of: tag, open, cache)
          guard let entry = summary.entry else { return }
          for item in items {
            if let registered = item.registered {
              summary.sent.add(registered, since: summary.sinceMS)
            }
          }
          entry.sealed = try open.vault.seal(summary.json, datasetContext(tag, open, "sealed"))
          try cache.datasets.write(.summary, of: tag, entry)
        }
      }
    } catch {
      // The next pull has them.
      Log.line(.warning, "what was sent could not be counted: \(error.code.rawValue)")
    }
  }
}
