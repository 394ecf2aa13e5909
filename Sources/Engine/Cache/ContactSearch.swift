import Base
import Policy
import Store
import Supabase
import Vault

/// Answers searches and single contacts from the cache.
final class ContactSearch {
  private let core: Core
  private let cache: CacheFile
  private let live: LiveContacts
  private let presenter: Presenter
  private let reachability: Reachability
  private let decider: Decider

  init(
    _ core: Core, cache: CacheFile, live: LiveContacts, presenter: Presenter,
    reachability: Reachability, decider: Decider
  ) {
    self.core = core
    self.cache = cache
    self.live = live
    self.presenter = presenter
    self.reachability = reachability
    self.decider = decider
  }

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
      let index = try index(session, tag, tables)
      let found = index.search(query, limit: Int(limit))
      let contacts = JSON.array([])
      for row in found.tags {
        if let contact = try read(row.bytes, of: tag, session, tables) { contacts.append(contact) }
      }
      let asOfMS = try tables.datasets.read(.contacts, of: tag)?.asOfMS
      let banners = presenter.dataBanners(asOfMS: asOfMS, hasSome: !index.isEmpty)
      return [
        "contacts": contacts, "total": .int(found.total), "as_of_ms": JSON(asOfMS),
        "banners": presenter.banners(banners, asOfMS: asOfMS),
      ]
    }
  }

  /// The index of an organisation. It is built at first use, and again if another process has
  /// written or most of its memory is unused.
  private func index(
    _ session: OpenSession, _ org: [UInt8], _ tables: CacheTables
  ) throws(Failure) -> ContactIndex {
    let version = try tables.database.foreignVersion()
    if let index = cache.index, index.org == org, index.version == version, !index.isWasteful {
      return index
    }
    let built = ContactIndex(org: org, version: version)
    try tables.contacts.each(of: org) { (row, sealed) throws(Failure) in
      guard let tag = UUID(bytes: row),
        let json = try session.cacheKey.openJSON(
          sealed, CacheNames.contactContext(row, of: org, session))
      else { return }
      let (name, municipality) = core.indexedTexts(json)
      built.append(tag, name: name, municipality: municipality)
    }
    built.sort()
    cache.use(built)
    return built
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
        try tables.datasets.read(.contacts, of: orgTag)?.asOfMS
      )
    }
    guard let contact else {
      throw Failure(.contactNotFound, "no such contact in the cache", field: "/id")
    }
    let number =
      isLive && reachability.isOnline ? live.add(id, in: org, core.clock.now()) : nil
    let withheld = core.configuration.backend.withheld
    var banners = presenter.dataBanners(asOfMS: asOfMS, hasSome: true)
    banners.withholds = !withheld.isEmpty
    let isWithheld = banners.banners.contains(.encryptedRequiresConnectivity)
    return [
      "contact": contact, "withheld": .array(withheld.map { .string($0) }),
      "message": isWithheld ? core.message(.encryptedRequiresConnectivity) : .null,
      "as_of_ms": JSON(asOfMS), "request": JSON(number),
      "banners": presenter.banners(banners, asOfMS: asOfMS),
    ]
  }

  /// A cached contact without the columns that may no longer be cached.
  private func read(
    _ row: [UInt8], of org: [UInt8], _ session: OpenSession, _ tables: CacheTables
  ) throws(Failure) -> JSON? {
    guard let sealed = try tables.contacts.find(row: row),
      let json = try session.cacheKey.openJSON(
        sealed, CacheNames.contactContext(row, of: org, session))
    else { return nil }
    for column in core.configuration.backend.withheld { json.remove(column) }
    return json
  }
}

extension Core {
  /// The texts by which a contact is found; empty for columns that may not be cached.
  func indexedTexts(_ contact: JSON) -> (name: String, municipality: String) {
    func text(_ column: String) -> String {
      configuration.backend.withheld.contains(column)
        ? "" : contact[member: column]?.string ?? ""
    }
    return (text("name"), text("municipality"))
  }
}
