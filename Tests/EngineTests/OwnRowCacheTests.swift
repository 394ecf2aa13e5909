import Base
import Policy
import Store
import Supabase
import TestSupport
import Testing

@testable import Engine

/// The user's own rows in the cache, and their pull.
@Suite struct OwnRowCacheTests {
  static let own =
    #","queue":{"activity":{"table":"activities","columns":["minutes","occurred_at","user_id"],"#
    + #""own":{"days":10},"delete":"deleted_at"},"note":{"table":"notes","#
    + #""columns":["text","user_id"],"own":{}}}"#

  private func rig() throws -> Rig { try Rig.atHome(backend: OwnRowCacheTests.own) }

  private func activity(_ rig: Rig) throws -> QueueKind {
    try #require(rig.core.configuration.backend.kind("activity"))
  }

  private func row(
    _ number: Int, _ minutes: Int = 30, version: String? = nil, at: String = "2026-11-17T00:00:00Z"
  ) -> OwnRow {
    OwnRow(
      id: id(number), values: ["minutes": .int(minutes), "occurred_at": .string(at)],
      version: version)
  }

  private func set(_ rig: Rig) throws -> [UInt8] {
    CacheNames.own("activity", orgA, try rig.session.owner, try rig.core.keys())
  }

  private func listed(_ rig: Rig) throws -> [Int64] {
    try rig.cache.open().contacts.listed(
      of: set(rig), before: ListPlace(ms: .max, row: []), fromMS: .min, limit: 99
    ).map { $0.place.ms }
  }

  // MARK: The rows of the library

  @Test func aRowIsFoundAsItWasPut() throws {
    let rig = try rig()
    let kind = try activity(rig)
    try rig.ownRows.put(
      [row(1, version: "2026-11-17T00:00:01Z")], kind, orgA, rig.session, areInserts: false, rig.now
    )
    let found = try #require(try rig.ownRows.find(id(1), kind, orgA, rig.session))
    expect(found.version, equals: "2026-11-17T00:00:01Z")
    expect(found.values == ["minutes": 30, "occurred_at": "2026-11-17T00:00:00Z"])
    try expect(rig.ownRows.find(id(1), kind, orgB, rig.session) == nil)
    try expect(rig.ownRows.find(id(2), kind, orgA, rig.session) == nil)
    // Columns that are not kept stay out.
    let more = OwnRow(id: id(1), values: ["minutes": 60, "note": "x"], version: nil)
    try rig.ownRows.put([more], kind, orgA, rig.session, areInserts: false, rig.now)
    let second = try #require(try rig.ownRows.find(id(1), kind, orgA, rig.session))
    expect(second.values == ["minutes": 60])
    expect(second.version, equals: nil)
    // Without a time of its own it is listed now.
    try expect(listed(rig), equals: [rig.now.wallMS])
    try rig.ownRows.remove([(id(1), ""), (id(2), "")], kind, orgA, rig.session)
    try expect(rig.ownRows.find(id(1), kind, orgA, rig.session) == nil)
  }

  @Test func aRowThatIsTooLargeHidesTheOneThatItReplaces() throws {
    let rig = try rig()
    let kind = try activity(rig)
    try rig.ownRows.put([row(1)], kind, orgA, rig.session, areInserts: false, rig.now)
    let large: JSON = ["occurred_at": .string(String(repeating: "x", count: OwnRows.maxBytes))]
    try rig.ownRows.put(
      [OwnRow(id: id(1), values: large, version: nil)], kind, orgA, rig.session,
      areInserts: false, rig.now)
    try expect(rig.ownRows.find(id(1), kind, orgA, rig.session) == nil)
  }

  @Test func aRowThatWasPutIsOfTheReconcileThatIsUnderWay() throws {
    let rig = try rig()
    let kind = try activity(rig)
    let entry = DatasetTable.Entry()
    entry.round = 4
    let set = try set(rig)
    try rig.cache.open().datasets.write(.rows, of: set, in: [1], entry)
    try rig.ownRows.put([row(1)], kind, orgA, rig.session, areInserts: false, rig.now)
    try expect(rig.cache.open().contacts.removeUnmet(of: set, round: 4) { _, _ in }, equals: 0)
    try expect(rig.cache.open().contacts.removeUnmet(of: set, round: 5) { _, _ in }, equals: 1)
  }

  // MARK: The pull

  /// Send the next page's request, and pass this response to it; returns the request's URL.
  private func page(_ rig: Rig, _ body: String, status: Int = 200) throws -> String {
    try rig.rowPuller.send(rig.session, orgA, rig.now)
    let request = try #require(rig.inFlight.requests.last)
    guard case .rows(let pull) = request.content else { throw Failure.defect("no pull") }
    rig.inFlight.finish(request.id)
    try rig.rowPuller.finish(pull, try response(status, body), rig.now)
    return pull.request(rig.core.configuration.backend, try rig.session.accessToken).url
  }

  private func text(_ number: Int, _ more: String = "") -> String {
    #"{"id":"\#(id(number).text)","org_id":"\#(orgA.text)","minutes":30,"#
      + #""updated_at":"\#(second(number))","occurred_at":"2026-11-17T00:00:00Z"\#(more)}"#
  }

  @Test func theSetsArePulledOneAfterAnother() throws {
    let rig = try rig()
    rig.pulls.requirePull()
    var tables: [String] = []
    while rig.rowPuller.isDue(orgA, rig.now) {
      let url = try page(rig, "[]")
      tables += [String(url.split(separator: "?")[0].split(separator: "/").last ?? "")]
    }
    expect(tables, equals: ["contacts", "activities", "notes"])
  }

  @Test func whatAPullHasBroughtStaysIfItIsNewer() throws {
    let rig = try rig()
    rig.pulls.requirePull()
    _ = try page(rig, "[]")
    _ = try page(rig, "[" + text(1) + "]")
    let kind = try activity(rig)
    func minutes(_ version: String?, areInserts: Bool) throws -> Int64? {
      try rig.ownRows.put(
        [row(1, 60, version: version)], kind, orgA, rig.session, areInserts: areInserts, rig.now)
      return try rig.ownRows.find(id(1), kind, orgA, rig.session)?.values.int("minutes")
    }
    try expect(minutes(nil, areInserts: true), equals: 30)
    try expect(minutes("2026-11-01T00:00:00Z", areInserts: false), equals: 30)
    try expect(minutes("2027-11-01T00:00:00Z", areInserts: false), equals: 60)
  }

  @Test func aPullOfASetThatWasErasedBeginsAnewThoughARowWasPutThereSince() throws {
    let rig = try rig()
    rig.pulls.requirePull()
    _ = try page(rig, "[]")
    let kind = try activity(rig)
    _ = try page(rig, "[" + text(1) + "]")
    let tables = try rig.cache.open()
    _ = try tables.contacts.removeAll(of: try set(rig))
    _ = try tables.datasets.removeAll(in: CacheNames.org(orgA, rig.session, try rig.core.keys()))
    try rig.ownRows.put([row(2)], kind, orgA, rig.session, areInserts: false, rig.now)
    let url = try page(rig, "[]")
    expect(url.contains("/activities?"))
    expect(rig.pulls.rows.allSatisfy { $0.isNeeded })
    try expect(tables.datasets.read(.rows, of: try set(rig))?.asOfMS == nil)
  }
}
