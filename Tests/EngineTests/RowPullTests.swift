import Base
import Supabase
import TestSupport
import Testing

@testable import Engine

@Suite struct RowPullTests {
  @Test func pagesAreSmallerAfterFailuresAndGrowWhileTheyCome() throws {
    let rig = try Rig.atHome()
    let bearer = try rig.session.accessToken
    func size(_ pull: RowPull) throws -> Int {
      let url = pull.request(rig.core.configuration.backend, bearer).url
      return try #require(url.split(separator: "limit=").last.flatMap { Int($0) })
    }
    var pull = RowPull(contacts(orgA), after: nil)
    try expect(size(pull), equals: 500)
    pull.succeed()
    try expect(size(pull), equals: 500)
    for expected in [250, 125, 62, 31, 15, 7, 3, 1, 1] {
      pull.fail()
      try expect(size(pull), equals: expected)
    }
    for expected in [2, 3, 4, 5, 6, 7, 8, 10] {
      pull.succeed()
      try expect(size(pull), equals: expected)
    }
    // A process that begins after failures of others
    for (failures, expected) in [(1, 250), (8, 1), (70, 1)] as [(Int64, Int)] {
      pull = RowPull(contacts(orgA), after: nil, failures: failures)
      try expect(size(pull), equals: expected)
    }
  }

  /// The numbers of the ids to fetch, those that a response brings, and those that are asked for next.
  @Test(arguments: [
    (150, 1...100, Array(101...150)), (3, 1...3, []),
    // The server caps its pages.
    (150, 1...40, Array(41...150)), (3, 1...1, [2, 3]),
    // None is there any more.
    (150, 900...901, Array(101...150)), (3, 900...901, []),
  ])
  func whatAResponseLacksIsAskedForAgain(
    _ count: Int, _ received: ClosedRange<Int>, _ rest: [Int]
  ) {
    let pull = RowPull(contacts(orgA), after: nil)
    expect(
      pull.rest(of: (1...count).map { id($0) }, after: received.map { id($0) }),
      equals: rest.map { id($0) })
  }

  @Test func aReconcileBeginsAfterAnId() {
    var pull = RowPull(contacts(orgA), after: nil)
    pull.reconcile(round: 3, after: id(1), since: 7)
    expect(pull.round == 3 && pull.sinceMS == 7)
    guard case .versions(id(1)) = pull.stage else {
      Issue.record("it reads versions after the last id")
      return
    }
  }

  @Test func aPullWithoutACursorIsWholeAndAtItsStart() {
    var whole = RowPull(contacts(orgA), after: nil)
    expect(whole.isWhole && whole.isAtStart)
    whole.stage = .changes(after: Cursor(updatedAt: second(1), id: id(1)))
    expect(whole.isWhole && !whole.isAtStart)
    let later = RowPull(contacts(orgA), after: Cursor(updatedAt: second(1), id: id(1)))
    expect(!later.isWhole && !later.isAtStart)
  }

  @Test func eachStageAsksForItsPage() throws {
    let rig = try Rig.atHome()
    let bearer = try rig.session.accessToken
    func url(_ stage: RowPull.Stage) -> String {
      var pull = RowPull(contacts(orgA), after: nil)
      pull.stage = stage
      return pull.request(rig.core.configuration.backend, bearer).url
    }
    expect(!url(.changes(after: nil)).contains("updated_at=gte"))
    expect(
      url(.changes(after: Cursor(updatedAt: second(7), id: id(1)))).contains("updated_at=gte"))
    expect(url(.versions(after: id(5))).contains("id=gt.\(id(5).text)"))
    let many = (1...101).map { id($0) }
    let missing = url(.missing(many, then: id(200)))
    expect(missing.contains(id(100).text) && !missing.contains(id(101).text))
  }
}
