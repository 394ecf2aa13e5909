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

  private func version(_ number: Int, _ updatedAt: String) -> String {
    #"{"id":"\#(id(number).text)","updated_at":"\#(updatedAt)"}"#
  }

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

  /// A rig whose cache holds Anna (1) and Berit (2), pulled and reconciled just now.
  private func pulled() throws -> Rig {
    let rig = try Rig.atHome()
    try page(
      rig,
      list(
        contact(1, name: "Anna", updatedAt: second(1)),
        contact(2, name: "Berit", updatedAt: second(2))))
    try page(rig, "[]")
    _ = try rig.takeEvents()
    return rig
  }

  // MARK: Changes

  @Test func aFirstPullReadsFromTheBeginningAndNeedsNoReconcile() throws {
    // Given
    let rig = try Rig.atHome()
    // When
    let first = try page(rig, list(contact(1, name: "Anna", updatedAt: second(1))))
    // Then it goes on
    expect(!first.contains("updated_at=gte"))
    expect(rig.pulls.current != nil)
    try expect(entry(rig)?.asOfMS, equals: nil)
    // When the last page has come
    let second = try page(rig, "[]")
    // Then
    expect(second.contains("updated_at=gte"))
    expect(rig.pulls.current == nil)
    expect(rig.pulls.contactsMS, equals: rig.now.monotonicMS)
    try expect(cached(rig), equals: ["Anna"])
    try expect(entry(rig)?.asOfMS, equals: rig.now.wallMS)
    try expect(entry(rig)?.reconciledMS, equals: rig.now.wallMS)
    let event = try #require(try rig.takeEvents().first)
    expect(event.string("type"), equals: "sync")
    try expect(entry(rig)?.problem, equals: nil)
  }

  @Test func aLaterPullBeginsTenSecondsBeforeItsCursor() throws {
    // Given a cursor at second 12
    let rig = try Rig.atHome()
    try page(rig, list(contact(1, updatedAt: second(12))))
    try page(rig, "[]")
    // When
    let url = try page(rig, "[]")
    // Then
    expect(url.contains("2026-11-18T10%3A00%3A02"))
  }

  @Test func rowsOfTheOverlapAreNotStoredAgain() throws {
    // Given
    let rig = try pulled()
    // When the next pull brings a known row and a changed one
    try page(
      rig,
      list(
        contact(1, name: "Anna", updatedAt: second(1)),
        contact(2, name: "Berta", updatedAt: second(9))))
    try page(rig, "[]")
    // Then
    try expect(cached(rig), equals: ["Anna", "Berta"])
  }

  @Test func aTombstoneRemovesItsRow() throws {
    let rig = try pulled()
    try page(rig, list(contact(1, updatedAt: second(9), deleted: true)))
    try page(rig, "[]")
    try expect(cached(rig), equals: ["Berit"])
  }

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

  @Test func otherColumnsReadEverythingAgain() throws {
    // Given a cache that was read with the standard columns
    let rig = try pulled()
    let other = try Rig(
      backend: #","contacts":{"table":"contacts","columns":["name","relation"]}"#,
      folder: rig.folder, keyStore: rig.keyStore)
    _ = try other.decider.assess(.navigate)
    // When
    let url = try page(other, list(contact(7, name: "Gro", updatedAt: second(7))))
    // Then no row of the earlier columns stays
    expect(!url.contains("updated_at=gte"))
    try expect(cached(other), equals: ["Gro"])
    try expect(entry(other)?.asOfMS, equals: nil)
  }

  @Test func unusableRowsAreCountedAndReported() throws {
    let rig = try Rig.atHome()
    try page(
      rig, list(contact(1, updatedAt: second(1)), contact(2, org: orgB, updatedAt: second(2))))
    try page(rig, "[]")
    try expect(entry(rig)?.skipped, equals: 1)
  }

  @Test func aTimeInTheFutureDoesNotMoveTheCursorBeyondThePresent() throws {
    let rig = try Rig.atHome()
    try page(rig, list(contact(1, updatedAt: "2099-01-01T00:00:00.000000+00:00")))
    rig.pulls.forgetProgress()
    let url = try page(rig, "[]")
    expect(url.contains("2026-11-18T"))
    expect(!url.contains("2099"))
  }

  // MARK: Reconcile

  @Test func aReconcileFetchesWhatIsMissingAndRemovesWhatWasNotMet() throws {
    // Given a day later: Anna is gone without a tombstone, Berit has changed, Cecilie is new
    let rig = try pulled()
    rig.advance(86_400_000)
    try page(rig, "[]")
    // When
    let versions = try page(rig, list(version(2, second(20)), version(3, second(21))))
    let missing = try page(
      rig,
      list(
        contact(2, name: "Berta", updatedAt: second(20)),
        contact(3, name: "Cecilie", updatedAt: second(21))))
    try expect(entry(rig)?.reconciled != nil)
    let last = try page(rig, "[]")
    // Then
    expect(versions.contains("select=id,updated_at"))
    expect(missing.contains("id=in.(\(id(2).text),\(id(3).text))"))
    expect(last.contains("id=gt.\(id(3).text)"))
    try expect(cached(rig), equals: ["Berta", "Cecilie"])
    expect(rig.pulls.current == nil)
    let stored = try #require(try entry(rig))
    expect(stored.reconciled, equals: nil)
    expect(stored.reconciledMS, equals: rig.now.wallMS)
  }

  @Test func nothingIsReconciledBeforeTheIntervalHasPassed() throws {
    let rig = try pulled()
    rig.advance(86_399_999)
    try page(rig, "[]")
    expect(rig.pulls.current == nil)
    // And a clock that is set back makes it due
    rig.advance(0, wallMS: -200_000_000)
    try page(rig, "[]")
    expect(rig.pulls.current != nil)
  }

  @Test func anInterruptedReconcileGoesOnAfterTheLastID() throws {
    // Given a reconcile of which the first page was read
    let rig = try pulled()
    rig.advance(86_400_000)
    try page(rig, "[]")
    try page(rig, list(version(1, second(1))))
    let round = try #require(try entry(rig)).round
    // When another process goes on
    let other = try Rig(folder: rig.folder, keyStore: rig.keyStore, at: rig.now)
    _ = try other.decider.assess(.navigate)
    try page(other, "[]")
    let url = try page(other, list(version(2, second(2))))
    // Then it is the same one
    expect(url.contains("id=gt.\(id(1).text)"))
    try expect(entry(other)?.round, equals: round)
    try page(other, "[]")
    try expect(cached(other), equals: ["Anna", "Berit"])
    try expect(entry(other)?.reconciledMS, equals: other.now.wallMS)
  }

  @Test func aReconcileThatAnotherOneReplacedChangesNothing() throws {
    // Given a reconcile under way, and another process that began one of its own
    let rig = try pulled()
    rig.advance(86_400_000)
    try page(rig, "[]")
    try rig.cache.open().datasets.expireReconciles(in: try tag(rig))
    // When it would remove everything
    try page(rig, "[]")
    // Then
    expect(rig.pulls.current == nil)
    try expect(cached(rig), equals: ["Anna", "Berit"])
    try expect(entry(rig)?.reconciledMS, equals: nil)
  }

  @Test func aRowWithoutAnIDProvesNoDeletion() throws {
    let rig = try pulled()
    rig.advance(86_400_000)
    try page(rig, "[]")
    try page(rig, #"[{"updated_at":"x"}]"#)
    try expect(cached(rig), equals: ["Anna", "Berit"])
    expect(rig.pulls.current == nil)
  }

  @Test func aReconcileThatIsSentTheSamePageAgainEnds() throws {
    let rig = try pulled()
    rig.advance(86_400_000)
    try page(rig, "[]")
    let same = list(version(1, second(1)))
    try page(rig, same)
    try page(rig, same)
    expect(rig.pulls.current == nil)
    try expect(entry(rig)?.problem, equals: "loop")
    try expect(cached(rig), equals: ["Anna", "Berit"])
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

  @Test func aFileThatAnotherProcessReplacedBeginsThePullAnew() throws {
    let rig = try Rig.atHome()
    try page(rig, list(contact(1, updatedAt: second(1))))
    _ = try DataFolder.setAside(
      DataFolder.cachePath(in: rig.folder.path), "damaged", at: rig.now.wallMS)
    try page(rig, list(contact(2, updatedAt: second(2))))
    try expect(cached(rig).isEmpty)
    expect(rig.pulls.needsContacts)
    try expect(rig.takeEventTypes().contains("storage_recovered"))
  }

  /// A response that gives no page, and whether the token is refreshed; if not, reads pause.
  @Test(arguments: [
    (503, "", false), (0, "", false), (200, "<html>", false), (200, #"{"a":1}"#, false),
    (401, #"{"code":"PGRST301"}"#, true),
  ])
  func aFailedPagePausesReadsAlone(_ status: Int, _ body: String, _ refreshes: Bool) throws {
    // Given
    let rig = try pulled()
    // When
    try page(rig, body, status: status)
    // Then
    try expect(rig.pauses.leftMS(.pull, rig.now) > 0, equals: !refreshes)
    for purpose in Purpose.allCases where purpose != .pull {
      try expect(rig.pauses.leftMS(purpose, rig.now) <= 0)
    }
    expect(rig.tokens.isRefused, equals: refreshes)
    expect(rig.reachability.isFailing, equals: !refreshes)
    try expect(cached(rig), equals: ["Anna", "Berit"])
    expect(rig.pulls.current != nil)
  }

  @Test func aTokenThatIsRefusedAgainAfterARefreshPausesReadsAlone() throws {
    // Given
    let rig = try pulled()
    try page(rig, #"{"code":"PGRST301"}"#, status: 401)
    try rig.signIn()
    // When
    try page(rig, #"{"code":"PGRST301"}"#, status: 401)
    // Then
    try expect(
      Purpose.allCases.filter { try rig.pauses.leftMS($0, rig.now) > 0 }, equals: [.pull])
    expect(!rig.tokens.isRefused)
    try expect(cached(rig), equals: ["Anna", "Berit"])
  }

  @Test func aPageOfAnotherOrganisationIsIgnored() throws {
    let rig = try pulled()
    rig.pulls.requirePull()
    try rig.rowPuller.finish(
      RowPull(contacts(orgB), after: nil), try response(200, "[]"), rig.now)
    expect(rig.pulls.needsContacts)
    expect(rig.pulls.current == nil)
  }

  @Test func aPullIsDueWhenItIsRequiredUnderWayOrOld() throws {
    let rig = try pulled()
    expect(!rig.rowPuller.isDue(orgA, rig.now))
    rig.pulls.requirePull()
    expect(rig.rowPuller.isDue(orgA, rig.now))
    rig.pulls.begin(RowPull(contacts(orgA), after: nil))
    expect(rig.rowPuller.isDue(orgA, rig.now))
    expect(!rig.rowPuller.isDue(orgB, rig.now))
    rig.pulls.forgetProgress()
    rig.advance(899_999)
    expect(!rig.rowPuller.isDue(orgA, rig.now))
    rig.advance(1)
    expect(rig.rowPuller.isDue(orgA, rig.now))
  }

  @Test func aCachedContactIsRead() throws {
    let rig = try pulled()
    let reply = try rig.search.get(["id": .uuid(id(2))])
    expect(reply["contact"]?.string("name"), equals: "Berit")
    expect(reply["contact"]?.string("municipality"), equals: "Oslo")
    try expect(refusal { try rig.search.get(["id": .uuid(id(9))]) }, equals: .contactNotFound)
  }

  // MARK: The index

  @Test func theIndexFollowsThePull() throws {
    // Given an index in use
    let rig = try pulled()
    func total(_ query: StaticCString) throws -> Int64? {
      try rig.search.search(["query": JSON(query)]).int("total")
    }
    try expect(total("anna"), equals: 1)
    let index = rig.cache.index
    // When
    try page(
      rig,
      list(
        contact(1, updatedAt: second(8), deleted: true),
        contact(3, name: "Cecilie", updatedAt: second(9))))
    // Then
    try expect(total("anna"), equals: 0)
    try expect(total("cecilie"), equals: 1)
    expect(rig.cache.index === index)
  }
}
