public import Base
import Policy
import Store
import Supabase
import Vault

extension Engine {
  // MARK: The file

  /// The cache, opened when first needed. A damaged file is set aside: the server has all of it.
  func cache() throws(Failure) -> CacheFile {
    if let cacheFile { return cacheFile }
    let opened: CacheFile
    do throws(Failure) {
      opened = CacheFile(try Files.openCache(in: configuration.dataFolder))
    } catch where error.code == .storageDamaged || error.code == .storageNewer {
      opened = try replaceCache()
    }
    cacheFile = opened
    return opened
  }

  private func replaceCache() throws(Failure) -> CacheFile {
    cacheFile?.database.close()
    cacheFile = nil
    contactIndex = nil
    let folder = configuration.dataFolder
    _ = try Files.setAside(Files.cachePath(in: folder), "damaged", at: clock.now().wallMS)
    Log.line(.warning, "the cache was damaged; it is rebuilt from the server")
    owesPull = true
    return CacheFile(try Files.openCache(in: folder))
  }

  /// Use the cache; when it turns out damaged, once more on a fresh one.
  func withCache<Result>(
    _ body: (CacheFile) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    let file = try cache()
    do throws(Failure) { return try body(file) } catch where error.code == .storageDamaged {
      let fresh = try replaceCache()
      cacheFile = fresh
      return try body(fresh)
    }
  }

  /// Forget everything cached: its key is gone or going, so a failure here leaves nothing readable.
  func dropCache() {
    contactIndex = nil
    pulls = PullState()
    do throws(Failure) {
      try withCache { (cache) throws(Failure) in
        try cache.database.transaction { () throws(Failure) in
          try cache.contacts.removeAll()
          try cache.sources.removeAll()
        }
      }
    } catch {
      Log.line(.warning, "the cache could not be emptied: \(error.code.rawValue)")
    }
  }

  func purgeCache(of org: [UInt8]) throws(Failure) {
    contactIndex = nil
    try withCache { (cache) throws(Failure) in
      try cache.database.transaction { () throws(Failure) in
        try cache.contacts.removeAll(of: org)
        try cache.sources.removeAll(of: org)
      }
    }
  }

  func cacheTag(_ org: UUID, _ open: OpenSession, _ keys: KeyRing.Keys) -> [UInt8] {
    keys.lookup.tag("cache", open.owner, org.bytes)
  }

  private static func context(_ table: String, _ row: [UInt8], _ owner: [UInt8], _ column: String)
    -> SealContext
  {
    SealContext(table: table, row: row, owner: owner, column: column)
  }

  // MARK: Pulling

  var owesPull: Bool {
    get { pulls.contacts || pulls.summary }
    set {
      pulls.contacts = newValue
      pulls.summary = newValue
    }
  }

  func nextPull(_ open: OpenSession, _ now: Instant) throws(Failure) -> Job? {
    guard let chosen = open.chosen, chosen.active, chosen.orgActive else { return nil }
    if !isFlying(.pull), try contactsDue(open, chosen.orgID, now) {
      return .contacts(open, try startPull(open, chosen.orgID, now))
    }
    if pulls.summary, !isFlying(.summary) { return .summary(open, chosen.orgID) }
    return nil
  }

  private func contactsDue(
    _ open: OpenSession, _ org: UUID, _ now: Instant
  ) throws(Failure) -> Bool {
    if pulls.contacts { return true }
    if let current = pulls.current, current.org == org { return true }
    return try nextPullMS(open, now).map { $0 <= 0 } ?? false
  }

  /// When the cache has grown old enough to be asked for again.
  func nextPullMS(_ open: OpenSession, _ now: Instant) throws(Failure) -> Int64? {
    guard open.choice != nil, let last = lastPullMS else { return nil }
    return last + ContactsPull.periodMS - now.monotonicMS
  }

  private func startPull(
    _ open: OpenSession, _ org: UUID, _ now: Instant
  ) throws(Failure) -> ContactsPull {
    if let current = pulls.current, current.org == org { return current }
    let keys = try keys()
    let tag = cacheTag(org, open, keys)
    let entry = try withCache { (cache) throws(Failure) in
      try cache.sources.read(.contacts, of: tag)
    }
    var cursor: Cursor?
    if let sealed = entry?.cursor,
      let json = try open.vault.openJSON(
        sealed, Engine.context("source", tag, open.owner, "cursor")),
      let updated = json["updated_at"]?.string,
      let id = json["id"]?.string.flatMap({ UUID($0) })
    {
      cursor = Cursor(updatedAt: updated, id: id).overlapped(seconds: ContactsPull.overlapS)
    }
    let reconciles =
      cursor != nil
      && now.wallMS - (entry?.reconciledMS ?? 0) > ContactsPull.reconcilePeriodMS
    return ContactsPull(org: org, stage: .rows(after: cursor), reconciles: reconciles)
  }

  /// The answer to a page: rows and cursor in one transaction, freshness with the last page.
  func pulled(_ pull: ContactsPull, _ reply: Reply, _ now: Instant) throws(Failure) {
    guard let open, open.choice == pull.org else { return }
    pulls.contacts = false
    let verdict = RestClassification.rest(reply.answer)
    guard verdict == .answered || verdict == .endOfData else {
      return try pullFailed(verdict, pull, reply, now)
    }
    switch pull.stage {
    case .rows:
      guard let rows = ContactsReply.rows(reply.body) else {
        return try pullFailed(.transient, pull, reply, now)
      }
      try succeed(.rest)
      try succeed(.pull)
      try apply(rows, pull, open, now)
    case .ids:
      guard let ids = ContactsReply.ids(reply.body) else {
        return try pullFailed(.transient, pull, reply, now)
      }
      try succeed(.rest)
      try succeed(.pull)
      var next = pull
      next.seen.formUnion(ids)
      if ids.count >= ContactsPull.lastPageBelow, let last = ids.last {
        next.stage = .ids(after: last)
        pulls.current = next
      } else {
        try removeUnseen(next.seen, pull, open, now)
        pulls.current = nil
      }
    }
  }

  private func pullFailed(
    _ verdict: RestVerdict, _ pull: ContactsPull, _ reply: Reply, _ now: Instant
  ) throws(Failure) {
    pulls.current = pull
    if verdict == .needsToken {
      try refuseToken(reply, now)
    } else {
      stale = true
      try backOff(verdict == .transient ? .rest : .pull, reply, now)
    }
  }

  private func apply(
    _ rows: [ContactRow], _ pull: ContactsPull, _ open: OpenSession, _ now: Instant
  ) throws(Failure) {
    let keys = try keys()
    let org = cacheTag(pull.org, open, keys)
    let isLast = rows.count < ContactsPull.lastPageBelow
    var next = pull
    try withCache { (cache) throws(Failure) in
      try cache.database.transaction { () throws(Failure) in
        for row in rows {
          let tag = keys.lookup.tag("contact", open.owner, row.id.bytes)
          if row.deleted {
            try cache.contacts.remove(row: tag)
          } else {
            let sealed = try open.vault.seal(
              cacheable(row.json), Engine.context("contact", tag, open.owner, "sealed"))
            try cache.contacts.put(row: tag, org: org, sealed: sealed)
          }
        }
        let before = try cache.sources.read(.contacts, of: org)
        var entry = before ?? SourceTable.Entry(asOfMS: 0, reconciledMS: now.wallMS)
        if let last = rows.last {
          entry.cursor = try open.vault.seal(
            ["updated_at": .string(last.updatedAt), "id": .string(last.id.text)],
            Engine.context("source", org, open.owner, "cursor"))
          next.stage = .rows(after: Cursor(updatedAt: last.updatedAt, id: last.id))
        }
        if isLast { entry.asOfMS = now.wallMS }
        try cache.sources.write(.contacts, of: org, entry)
      }
    }
    contactIndex = nil
    if isLast {
      lastPullMS = now.monotonicMS
      stale = false
      next.stage = .ids(after: nil)
      pulls.current = pull.reconciles ? next : nil
    } else {
      pulls.current = next
    }
  }

  /// The columns that may be cached: a server that sends more must not be trusted with it.
  private func cacheable(_ row: JSON) -> JSON {
    let result = [:] as JSON
    for column in configuration.backend.contactColumns {
      if let value = row[column] { result.set(column, value) }
    }
    return result
  }

  private func removeUnseen(
    _ seen: Set<UUID>, _ pull: ContactsPull, _ open: OpenSession, _ now: Instant
  ) throws(Failure) {
    let keys = try keys()
    let org = cacheTag(pull.org, open, keys)
    var tags: Set<UUID> = []
    for id in seen {
      if let tag = UUID(bytes: keys.lookup.tag("contact", open.owner, id.bytes)) {
        tags.insert(tag)
      }
    }
    try withCache { (cache) throws(Failure) in
      try cache.database.transaction { () throws(Failure) in
        var gone: [[UInt8]] = []
        try cache.contacts.each(of: org) { (row, _) throws(Failure) in
          if let tag = UUID(bytes: row), !tags.contains(tag) { gone.append(row) }
        }
        for row in gone { try cache.contacts.remove(row: row) }
        if var entry = try cache.sources.read(.contacts, of: org) {
          entry.reconciledMS = now.wallMS
          try cache.sources.write(.contacts, of: org, entry)
        }
      }
    }
    contactIndex = nil
  }

  func summarised(_ org: UUID, _ reply: Reply, _ now: Instant) throws(Failure) {
    guard let open, open.choice == org else { return }
    pulls.summary = false
    let verdict = RestClassification.rest(reply.answer)
    guard verdict == .answered, let body = reply.body else {
      pulls.summary = true
      stale = true
      if verdict == .needsToken { return try refuseToken(reply, now) }
      return try backOff(verdict == .transient ? .rest : .pull, reply, now)
    }
    try succeed(.rest)
    try succeed(.pull)
    let tag = cacheTag(org, open, try keys())
    let figures = body.kind == .array ? body.elements.first ?? .null : body
    let sealed = try open.vault.seal(
      ["summary": figures], Engine.context("source", tag, open.owner, "summary"))
    try withCache { (cache) throws(Failure) in
      try cache.sources.write(
        .summary, of: tag, SourceTable.Entry(asOfMS: now.wallMS, sealed: sealed))
    }
  }

  // MARK: Reading

  /// What a screen says beside cached data.
  private func dataBanners(asOf: Int64?) -> [JSON] {
    var list: [JSON] = []
    if !online {
      list.append(banner(.offline, asOf: asOf))
    } else if stale, asOf != nil {
      list.append(banner(.staleData, asOf: asOf))
    }
    if asOf == nil { list.append(banner(.nothingCached, asOf: nil)) }
    return list
  }

  private func index(
    _ open: OpenSession, _ org: [UInt8]
  ) throws(Failure) -> ContactIndex {
    if let contactIndex, contactIndex.org == org { return contactIndex }
    var entries: [ContactIndex.Entry] = []
    try withCache { (cache) throws(Failure) in
      entries = []
      try cache.contacts.each(of: org) { (row, sealed) throws(Failure) in
        guard
          let json = try open.vault.openJSON(
            sealed, Engine.context("contact", row, open.owner, "sealed"))
        else { return }
        entries.append(
          ContactIndex.Entry(name: Folding.fold(json["name"]?.string ?? ""), json: json))
      }
    }
    entries.sort { $0.name.lexicographicallyPrecedes($1.name) }
    let made = ContactIndex(org: org, entries: entries)
    contactIndex = made
    return made
  }

  public func contactSearch(_ request: JSON) throws(Failure) -> JSON {
    let fields = try Fields(request, known: ["query", "limit"])
    let (open, org) = try requireOrganisation()
    guard let query = try fields.required("query").string else {
      throw fields.wrongType("query", "a string")
    }
    guard query.utf8.count <= 256 else { throw fields.invalid("query", "at most 256 bytes") }
    let limit = try fields.integer(ifPresent: "limit", in: 1...200) ?? 50
    let tag = cacheTag(org.orgID, open, try keys())
    let asOf = try withCache { (cache) throws(Failure) in
      try cache.sources.read(.contacts, of: tag)?.asOfMS
    }.flatMap { $0 > 0 ? $0 : nil }
    let wanted = Folding.fold(query)
    var found: [JSON] = []
    var total: Int64 = 0
    for entry in try index(open, tag).entries where Folding.contains(entry.name, wanted) {
      total += 1
      if total <= limit { found.append(entry.json) }
    }
    return [
      "contacts": .array(found), "total": .int(total), "as_of_ms": JSON(asOf),
      "banners": .array(dataBanners(asOf: asOf)),
    ]
  }

  public func contactGet(_ request: JSON) throws(Failure) -> JSON {
    let fields = try Fields(request, known: ["id", "live"])
    let (open, org) = try requireOrganisation()
    let id = try fields.uuid("id")
    let live = try fields.bool(ifPresent: "live") ?? false
    let keys = try keys()
    let tag = keys.lookup.tag("contact", open.owner, id.bytes)
    let orgTag = cacheTag(org.orgID, open, keys)
    let (sealed, asOf) = try withCache { (cache) throws(Failure) in
      (
        try cache.contacts.find(row: tag),
        try cache.sources.read(.contacts, of: orgTag)?.asOfMS
      )
    }
    guard let sealed,
      let contact = try open.vault.openJSON(
        sealed, Engine.context("contact", tag, open.owner, "sealed"))
    else {
      throw Failure(.contactNotFound, "no such contact in the cache", field: "/id")
    }
    var number: Int64?
    if live, online {
      let next = LiveRequest(number: (liveRequests.last?.number ?? lastLive) + 1, contact: id)
      lastLive = next.number
      liveRequests.append(next)
      number = next.number
    }
    var banners = dataBanners(asOf: asOf)
    if !online { banners.append(banner(.encryptedOffline, asOf: nil)) }
    return [
      "contact": contact,
      "withheld": .array(configuration.backend.withheld.map { .string($0) }),
      "message": online
        ? .null : ["code": "withheld_offline", "text": words("withheld_offline")],
      "as_of_ms": JSON(asOf), "request": JSON(number), "banners": .array(banners),
    ]
  }

  func markSent(_ live: LiveRequest) {
    for index in liveRequests.indices where liveRequests[index].number == live.number {
      liveRequests[index].sent = true
    }
  }

  /// A contact with its withheld columns: to the screen that asked, and nowhere else.
  func fetched(_ live: LiveRequest, _ reply: Reply, _ now: Instant) throws(Failure) {
    liveRequests.removeAll { $0.number == live.number }
    let verdict = RestClassification.rest(reply.answer)
    var contact: JSON = .null
    if verdict == .answered, let row = reply.body?.elements.first {
      contact = row
      try succeed(.rest)
    } else if verdict == .needsToken {
      try refuseToken(reply, now)
    }
    try events.tell(
      [
        "type": "contact", "request": .int(live.number), "id": .string(live.contact.text),
        "contact": contact,
        "message": contact.isNull ? message(for: .serverUnreachable) : .null,
      ], meta)
  }

  public func summaryGet(_ request: JSON) throws(Failure) -> JSON {
    _ = try Fields(request, known: [])
    let (open, org) = try requireOrganisation()
    let tag = cacheTag(org.orgID, open, try keys())
    let entry = try withCache { (cache) throws(Failure) in
      try cache.sources.read(.summary, of: tag)
    }
    var summary: JSON = .null
    if let sealed = entry?.sealed,
      let json = try open.vault.openJSON(
        sealed, Engine.context("source", tag, open.owner, "summary"))
    {
      summary = json["summary"] ?? .null
    }
    let queued = try queuedActivities(of: org.orgID, open)
    var banners = dataBanners(asOf: entry?.asOfMS)
    if queued.count > 0 { banners.append(banner(.unsentItems, asOf: nil)) }
    return [
      "summary": summary, "as_of_ms": JSON(entry?.asOfMS),
      "queued": ["activities": .int(queued.count), "minutes": .int(queued.minutes)],
      "banners": .array(banners),
    ]
  }

  /// What is registered and not yet stored on the server.
  private func queuedActivities(
    of org: UUID, _ open: OpenSession
  ) throws(Failure) -> (count: Int64, minutes: Int64) {
    var result: (count: Int64, minutes: Int64) = (0, 0)
    var after: Int64 = 0
    while true {
      let rows = try queue.page(of: open.owner, state: nil, after: after, limit: 500)
      for row in rows where row.state != .parked {
        guard let item = try readItem(row, open.queueKey), item.org == org,
          let minutes = item.payload["minutes"]?.int
        else { continue }
        result.count += 1
        result.minutes = result.minutes &+ minutes
      }
      guard rows.count == 500, let last = rows.last else { return result }
      after = last.sequence
    }
  }
}
