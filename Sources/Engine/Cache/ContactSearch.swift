import Base
import Policy
import Store
import Supabase
import Vault

/// Answers searches and single contacts from the cache.
struct ContactSearch: Rules {
  let parts: Parts

  // MARK: Searching

  func search(_ request: JSON) throws(Failure) -> JSON {
    let fields = try Fields(request, known: ["query", "limit"])
    try core.configuration.backend.require(.contacts)
    let (session, org) = try decider.requirePlace()
    guard let query = try fields.required("query").string else {
      throw fields.wrongType("query", "a string")
    }
    guard query.utf8.count <= 256 else { throw fields.invalid("query", "at most 256 bytes") }
    let limit = try fields.integer(ifPresent: "limit", in: 1...200) ?? 50
    let tag = CacheNames.org(org, session, try core.keys())
    return try cache.use { (tables) throws(Failure) in
      let blocks = ContactBlocks(core: core, session: session, org: tag, tables: tables)
      // Read at first use; what another process has changed is read again.
      var index = try blocks.index(cache.index)
      var found = try hits(query, Int(limit), index, blocks)
      if found.contacts.count < found.expected {
        // Rows were changed or removed without their blocks.
        index = try blocks.rebuilt()
        found = try hits(query, Int(limit), index, blocks)
      }
      cache.use(index)
      let asOfMS = try tables.datasets.read(.rows, of: tag)?.asOfMS
      let banners = try presenter.dataBanners(asOfMS: asOfMS, hasSome: !index.isEmpty)
      return [
        "contacts": found.contacts, "total": .int(found.total), "as_of_ms": JSON(asOfMS),
        "banners": presenter.banners(banners, asOfMS: asOfMS),
      ]
    }
  }

  /// The contacts that a search finds; fewer than `expected` when some cannot be read.
  private func hits(
    _ query: String, _ limit: Int, _ index: ContactIndex, _ blocks: ContactBlocks
  ) throws(Failure) -> (contacts: JSON, expected: Int, total: Int) {
    let found = index.search(query, limit: limit)
    let contacts = JSON.array([])
    for tag in found.tags {
      if let contact = try read(tag.bytes, of: blocks.org, blocks.session, blocks.tables) {
        contacts.append(contact)
      }
    }
    return (contacts, found.tags.count, found.total)
  }

  // MARK: One contact

  func get(_ request: JSON) throws(Failure) -> JSON {
    let fields = try Fields(request, known: ["id", "live"])
    try core.configuration.backend.require(.contacts)
    let (session, org) = try decider.requirePlace()
    let id = try fields.uuid("id")
    let isLive = try fields.bool(ifPresent: "live") ?? false
    let keys = try core.keys()
    let orgTag = CacheNames.org(org, session, keys)
    let (contact, asOfMS) = try cache.use { (tables) throws(Failure) in
      (
        try read(CacheNames.contact(id, of: orgTag, keys), of: orgTag, session, tables),
        try tables.datasets.read(.rows, of: orgTag)?.asOfMS
      )
    }
    guard let contact else {
      throw Failure(.contactNotFound, "no such contact in the cache", field: "/id")
    }
    let number =
      isLive && reachability.isOnline ? live.add(id, in: org, core.clock.now()) : nil
    let needsNetwork = core.configuration.backend.needsNetwork
    var banners = try presenter.dataBanners(asOfMS: asOfMS, hasSome: true)
    banners.needsNetwork = !needsNetwork.isEmpty
    let isNetworkNeeded = banners.banners.contains(.encryptedRequiresConnectivity)
    return [
      "contact": contact, "needs_network": .array(needsNetwork.map { .string($0) }),
      "message": isNetworkNeeded ? core.message(.encryptedRequiresConnectivity) : .null,
      "as_of_ms": JSON(asOfMS), "request": JSON(number),
      "banners": presenter.banners(banners, asOfMS: asOfMS),
    ]
  }

  /// A cached contact without the columns that may no longer be cached.
  private func read(
    _ row: [UInt8], of org: [UInt8], _ session: OpenSession, _ tables: CacheTables
  ) throws(Failure) -> JSON? {
    guard let sealed = try tables.contacts.find(row: row, in: org),
      let json = try session.cacheKey.openJSON(
        sealed, CacheNames.rowContext(row, of: org, session))
    else { return nil }
    for column in core.configuration.backend.needsNetwork { json.remove(column) }
    return json
  }
}
