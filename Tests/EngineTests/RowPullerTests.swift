import Base
import Store
import Supabase
import TestSupport
import Testing

@testable import Engine

@Suite struct RowPullerTests {
  // MARK: Support

  /// Send the next page's request, answer it, and return its URL. After the last page a new pull begins.
  @discardableResult
  private func page(_ rig: Rig, _ body: String, status: Int = 200) throws -> String {
    if !rig.rowPuller.isDue(orgA, rig.now) { rig.pulls.requirePull() }
    try rig.rowPuller.send(try rig.session, orgA, rig.now)
    let request = try #require(rig.inFlight.requests.last)
    let url = rig.inFlight.last(rig.now)?.string("url") ?? ""
    guard case .rows(let pull) = request.content else { throw Failure.defect("no pull") }
    rig.inFlight.finish(request.id)
    try rig.rowPuller.finish(pull, try response(status, body), rig.now)
    return url
  }

  private func list(_ rows: String...) -> String { "[" + rows.joined(separator: ",") + "]" }

  private func tag(_ rig: Rig) throws -> [UInt8] {
    CacheNames.org(orgA, try rig.session, try rig.core.keys())
  }

  private func entry(_ rig: Rig) throws -> DatasetTable.Entry? {
    try rig.cache.open().datasets.read(.rows, of: try tag(rig))
  }

  private func cached(_ rig: Rig) throws -> [String] {
    let session = try rig.session
    var names: [String] = []
    let org = try tag(rig)
    try rig.cache.open().contacts.each(of: org) { (_, row, sealed) throws(Failure) in
      let json = try session.cacheKey.openJSON(
        sealed, CacheNames.rowContext(row, of: org, session))
      names.append(json?.string("name") ?? "?")
    }
    return names.sorted()
  }

  // MARK: Changes

  @Test func aPageThatBringsNothingNewEndsThePull() throws {
    // Given a server that sends the same page again and again
    let rig = try Rig.atHome()
    let same = list(contact(1, updatedAt: second(1)))
    try page(rig, same)
    // When
    try page(rig, same)
    // Then
    expect(rig.pulls.current == nil)
    expect(rig.reachability.isFailing)
    try expect(entry(rig)?.problem, equals: "loop")
    // And a later pull, with the reconcile that is due, clears it
    for _ in 0..<2 { try page(rig, "[]") }
    try expect(entry(rig)?.problem, equals: nil)
    expect(!rig.reachability.isFailing)
  }

  // MARK: Failures

  @Test func aLostCacheBeginsThePullAnew() throws {
    // Given a pull between two pages, and a cache that another process erased meanwhile
    let rig = try Rig.atHome()
    try page(rig, list(contact(1, updatedAt: second(1))))
    let tables = try rig.cache.open()
    _ = try tables.contacts.removeAll(of: try tag(rig))
    _ = try tables.datasets.removeAll(in: try tag(rig))
    // When
    try page(rig, list(contact(2, updatedAt: second(2))))
    // Then nothing of the second page is stored as if the first were there
    try expect(cached(rig).isEmpty)
    try expect(entry(rig) == nil)
    expect(rig.pulls.current == nil)
    expect(rig.pulls.needsContacts)
    try expect(!page(rig, "[]").contains("updated_at=gte"))
  }
}
