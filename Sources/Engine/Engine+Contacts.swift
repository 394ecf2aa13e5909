public import Base
import Policy
import Store
import Supabase
import Vault

/// A contact that a screen asked the server for.
struct LiveRequest {
  let number: Int64
  let contact: UUID
  let org: UUID
  var sent = false
}

extension Engine {
  /// What a reply with data that is this old says beside it.
  func notices(asOf: Int64?) -> Banners {
    Banners(asOfMS: asOf, nowMS: clock.now().wallMS, online: online, failing: stale)
  }

  // MARK: Searching

  public func contactSearch(_ request: JSON) throws(Failure) -> JSON {
    let fields = try Fields(request, known: ["query", "limit"])
    let (open, org) = try requireOrganisation()
    guard let query = try fields.required("query").string else {
      throw fields.wrongType("query", "a string")
    }
    guard query.utf8.count <= 256 else { throw fields.invalid("query", "at most 256 bytes") }
    let limit = try fields.integer(ifPresent: "limit", in: 1...200) ?? 50
    let tag = cacheTag(org.orgID, open, try keys())
    return try withCache { (cache) throws(Failure) in
      let found = try index(open, tag, cache).search(query, limit: Int(limit))
      let contacts = JSON.array([])
      for row in found.tags {
        if let contact = try read(row.bytes, open, cache) { contacts.append(contact) }
      }
      let asOf = try cache.datasets.read(.contacts, of: tag)?.asOfMS
      return [
        "contacts": contacts, "total": .int(found.total), "as_of_ms": JSON(asOf),
        "banners": banners(notices(asOf: asOf), asOf: asOf),
      ]
    }
  }

  /// A cached contact, as far as its columns may still be cached.
  private func read(
    _ row: [UInt8], _ open: OpenSession, _ cache: CacheFile
  ) throws(Failure) -> JSON? {
    guard let sealed = try cache.contacts.find(row: row),
      let json = try open.vault.openJSON(sealed, contactContext(row, open))
    else { return nil }
    for column in configuration.backend.withheld { json.remove(column) }
    return json
  }

  /// The index of an organisation, made when it is first needed, or when another process has written.
  private func index(
    _ open: OpenSession, _ org: [UInt8], _ cache: CacheFile
  ) throws(Failure) -> ContactIndex {
    let version = try cache.database.foreignVersion()
    if let contactIndex, contactIndex.org == org, contactIndex.version == version,
      !contactIndex.isWasteful
    {
      return contactIndex
    }
    let made = ContactIndex(org: org, version: version)
    try cache.contacts.each(of: org) { (row, sealed) throws(Failure) in
      guard let tag = UUID(bytes: row),
        let json = try open.vault.openJSON(sealed, contactContext(row, open))
      else { return }
      made.append(tag, name: text("name", json), municipality: text("municipality", json))
    }
    made.sort()
    contactIndex = made
    return made
  }

  /// Take what a pull has brought into the index.
  func reindex(
    _ rows: [ContactRow], _ org: [UInt8], _ index: ContactIndex, _ keys: KeyRing.Keys
  ) {
    guard index.org == org else { return }
    for row in rows {
      guard let tag = UUID(bytes: contactTag(row.id, of: org, keys)) else { continue }
      if let json = row.json {
        index.put(tag, name: text("name", json), municipality: text("municipality", json))
      } else {
        index.remove(tag)
      }
    }
  }

  private func text(_ column: String, _ contact: JSON) -> String {
    configuration.backend.withheld.contains(column) ? "" : contact[member: column]?.string ?? ""
  }

  // MARK: One contact

  public func contactGet(_ request: JSON) throws(Failure) -> JSON {
    let fields = try Fields(request, known: ["id", "live"])
    let (open, org) = try requireOrganisation()
    let id = try fields.uuid("id")
    let live = try fields.bool(ifPresent: "live") ?? false
    let keys = try keys()
    let orgTag = cacheTag(org.orgID, open, keys)
    let (contact, asOf) = try withCache { (cache) throws(Failure) in
      (
        try read(contactTag(id, of: orgTag, keys), open, cache),
        try cache.datasets.read(.contacts, of: orgTag)?.asOfMS
      )
    }
    guard let contact else {
      throw Failure(.contactNotFound, "no such contact in the cache", field: "/id")
    }
    var number: Int64?
    if live, online {
      lastLive += 1
      liveRequests.append(LiveRequest(number: lastLive, contact: id, org: org.orgID))
      number = lastLive
    }
    var notices = notices(asOf: asOf)
    notices.withholds = !configuration.backend.withheld.isEmpty
    let isWithheld = notices.banners.contains(.encryptedRequiresConnectivity)
    return [
      "contact": contact,
      "withheld": .array(configuration.backend.withheld.map { .string($0) }),
      "message": isWithheld ? message(.encryptedRequiresConnectivity) : .null,
      "as_of_ms": JSON(asOf), "request": JSON(number), "banners": banners(notices, asOf: asOf),
    ]
  }

  private func message(_ word: MessageCode) -> JSON {
    ["code": .string(word.rawValue), "text": words(word.rawValue)]
  }

  func markSent(_ live: LiveRequest) {
    for index in liveRequests.indices where liveRequests[index].number == live.number {
      liveRequests[index].sent = true
    }
  }

  /// A contact with its withheld columns: to the screen that asked, and nowhere else.
  func fetched(_ live: LiveRequest, _ reply: HTTPResponse, _ now: Instant) throws(Failure) {
    liveRequests.removeAll { $0.number == live.number }
    guard let open, open.choice == live.org else { return }
    let verdict = RestClassification.rest(reply.facts)
    var contact: JSON = .null
    var message = message(for: .serverUnreachable)
    if verdict == .answered, let body = reply.body, body.kind == .array {
      try succeed(.rest)
      if let row = body.elements.first, row.uuid("id") == live.contact,
        row.uuid("org_id") == live.org
      {
        contact = row
        message = .null
      } else {
        message = self.message(.contactGone)
        owesPull = true
      }
    } else if verdict == .needsToken {
      try refuseToken(reply, now)
    }
    try events.tell(
      [
        "type": "contact", "request": .int(live.number), "id": .uuid(live.contact),
        "contact": contact, "message": message,
      ], meta)
  }
}
