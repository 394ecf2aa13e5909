public import Base
public import Vault

/// Requests to the data service. Source: PostgREST `docs/references/api`, measured on 12 to 14.
public enum RestRequests {
  private static var membershipTimeoutMS: Int64 { 10_000 }
  static var membershipsPerPage: Int { 500 }
  private static var uploadTimeoutMS: Int64 { 60_000 }
  private static var readTimeoutMS: Int64 { 30_000 }

  /// Reads a page of the memberships of the user with their organisations. `user` filters out the
  /// memberships of other users, which the server's policies may show, for example to coordinators.
  /// The server tells how many there are, so that one answer can prove that it is the whole list.
  public static func memberships(
    _ backend: Backend, user: UUID? = nil, after: UUID? = nil, bearer: SecretBytes
  ) -> Request {
    var url = backend.rest(backend.membershipsTable)
    url += "?select=org_id,role,status,updated_at,organizations(id,name,status)"
    if let user { url += "&user_id=eq." + user.text }
    if let after { url += "&org_id=gt." + after.text }
    let headers = backend.headers
    headers.set("Prefer", "count=exact")
    // An active membership is on the same page as the ended ones of its organisation, or before them.
    return Request(
      .membershipCheck, "GET", url + "&order=org_id.asc,status.asc" + most(membershipsPerPage),
      headers: headers, bearer: bearer, timeoutMS: membershipTimeoutMS)
  }

  /// Stores rows. A table returns the ids of the rows that were new, a function returns a result
  /// for each row (`UploadReply`).
  ///
  /// `columns` are all columns that any of the rows has. The caller sorts the rows by id: two
  /// uploads of the same rows in opposite order would deadlock on the server.
  public static func upload(
    _ backend: Backend, kind: QueueKind, columns: [String], rows: [JSON], bearer: SecretBytes
  ) -> Request {
    let headers = backend.headers
    var url: String
    let body: JSON
    switch kind.upload {
    case .table:
      url = backend.rest(kind.table) + "?columns=" + list(columns)
      url += "&on_conflict=" + kind.primaryKey.list + "&select=id"
      if kind.own != nil { url += ",updated_at" }
      body = .array(rows)
      headers.set(
        "Prefer", "resolution=ignore-duplicates,return=representation,missing=default")
    case .rpc:
      url = backend.rest("rpc/") + kind.function
      body = ["items": .array(rows)]
    }
    return Request(
      .upload, "POST", url, headers: headers, bearer: bearer, body: body,
      timeoutMS: uploadTimeoutMS)
  }

  /// Changes or deletes stored rows: one by its id and version, or many by a function (`UploadReply`).
  ///
  /// The version is in the filter, so a row that others have changed stays as it is. There is no `columns`,
  /// because columns that the body lacks would become null, and no `or` or `and`: the server applies these
  /// a second time, to the changed row (measured). nil: there is nothing to do.
  public static func correct(
    _ backend: Backend, kind: QueueKind, org: UUID?, _ corrections: [Correction],
    bearer: SecretBytes
  ) -> Request? {
    let headers = backend.headers
    let change = kind.own?.change
    if let change, kind.own?.correctsMany == true {
      return Request(
        .upload, "POST", backend.rest("rpc/") + change.function, headers: headers, bearer: bearer,
        body: ["items": .array(corrections.map { $0.item(org, change.id) })],
        timeoutMS: uploadTimeoutMS)
    }
    guard let one = corrections.first else { return nil }
    headers.set("Prefer", "return=representation")
    var filter = "?id=eq." + one.id.text
    if kind.primaryKey == .idAndOrgID { filter += self.filter(org) }
    filter += "&updated_at=eq." + Percent.encode(one.version) + "&select=id,updated_at"
    let isRemoved = one.columns == nil && kind.own?.deletion == .row
    return Request(
      .upload, isRemoved ? "DELETE" : "PATCH", backend.rest(kind.table) + filter, headers: headers,
      bearer: bearer,
      body: isRemoved ? JSON?.none : one.body(change?.id ?? ""), timeoutMS: uploadTimeoutMS)
  }

  /// Asks which of these rows are stored, and with which values in `columns`. At most 150 ids keep the
  /// URL below 8 kB.
  ///
  /// The organisation is a filter only where it is a part of the key. With `id` as the key, a row that
  /// the server has moved to another organisation is still the item's, and a user may be allowed to
  /// read ids without `org_id`.
  ///
  /// `user`: of a kind whose rows are kept, only this user's are the items'. A user may see those of others, and
  /// one of them would be taken for the item's own, and corrected.
  public static func readBack(
    _ backend: Backend, kind: QueueKind, org: UUID?, user: UUID? = nil, ids: [UUID],
    columns: [String] = ["id"], bearer: SecretBytes
  ) -> Request {
    var url = backend.rest(kind.table) + "?id=in.(\(list(ids)))"
    if kind.primaryKey == .idAndOrgID { url += filter(org) }
    if let user, kind.own != nil { url += "&user_id=eq." + user.text }
    return read(backend, .upload, url + "&select=" + list(columns), bearer)
  }

  /// Reads the page of a set of rows after a cursor, in the order of change, with tombstones.
  public static func page(
    _ backend: Backend, _ source: RowSource, after: Cursor?, limit: Int, bearer: SecretBytes
  ) -> Request {
    var url = cached(backend, source, source.requested)
    if let after {
      let moment = Percent.encode("\"" + after.updatedAt + "\"")
      // The first condition is redundant, but it turns two index scans into one.
      url += "&updated_at=gte." + Percent.encode(after.updatedAt) + "&or=(updated_at.gt." + moment
      url += ",and(updated_at.eq." + moment + ",id.gt." + after.id.text + "))"
    }
    return read(backend, .pull, url + "&order=updated_at.asc,id.asc" + most(limit), bearer)
  }

  /// Reads rows of a set by their ids. At most 100 keep the URL below 8 kB.
  public static func rows(
    _ backend: Backend, _ source: RowSource, ids: [UUID], bearer: SecretBytes
  ) -> Request {
    let url = cached(backend, source, source.requested) + "&id=in.(\(list(ids)))"
    return read(backend, .pull, url, bearer)
  }

  /// Reads the ids and versions of all rows of a set, to find those that were deleted without a
  /// tombstone and changes that were committed too late for the delta read.
  public static func versions(
    _ backend: Backend, _ source: RowSource, after: UUID?, limit: Int, bearer: SecretBytes
  ) -> Request {
    var url = cached(backend, source, versionColumns)
    if source.hasMarks { url += "&deleted_at=is.null" }
    if let after { url += "&id=gt." + after.text }
    return read(backend, .pull, url + "&order=id.asc" + most(limit), bearer)
  }

  private static var versionColumns: [String] { ["id", "updated_at"] }

  /// The URL for the rows of a set.
  private static func cached(
    _ backend: Backend, _ source: RowSource, _ columns: [String]
  ) -> String {
    backend.rest(source.table) + "?select=" + list(columns) + filter(source.org) + source.filter
  }

  /// Only rows of this organisation; nil: the table has no organisations.
  private static func filter(_ org: UUID?) -> String { org.map { "&org_id=eq." + $0.text } ?? "" }

  /// Reads one contact with columns that are never cached.
  public static func contactLive(
    _ backend: Backend, id: UUID, columns: [String], bearer: SecretBytes
  ) -> Request {
    let url = backend.rest(backend.contactsTable) + "?select=" + list(columns)
    return read(backend, .live, url + "&id=eq." + id.text, bearer)
  }

  public static func summary(_ backend: Backend, org: UUID?, bearer: SecretBytes) -> Request {
    var body: JSON = [:]
    if let org { body = ["org": .uuid(org)] }
    return Request(
      .summary, "POST", backend.rest("rpc/") + backend.summaryFunction, headers: backend.headers,
      bearer: bearer, body: body, timeoutMS: readTimeoutMS)
  }

  private static func most(_ rows: Int) -> String { "&limit=\(rows)" }

  private static func read(
    _ backend: Backend, _ purpose: Purpose, _ url: String, _ bearer: SecretBytes
  ) -> Request {
    Request(
      purpose, "GET", url, headers: backend.headers, bearer: bearer, timeoutMS: readTimeoutMS)
  }

  private static func list(_ ids: [UUID]) -> String {
    ids.map { $0.text }.joined(separator: ",")
  }

  private static func list(_ names: [String]) -> String {
    names.map { Percent.encode($0) }.joined(separator: ",")
  }
}
