import Base
import Supabase
import Testing

@testable import Engine

@Suite struct ContactPullTests {
  /// The rows of each page, and whether it was the last one: an empty page, or a smaller one than the
  /// page before.
  @Test(arguments: [
    ([0], [true]), ([500, 500, 499], [false, false, true]), ([500, 0], [false, true]),
    ([3, 3, 3, 0], [false, false, false, true]), ([3, 5, 4], [false, false, true]),
  ])
  func thePagesTellWhichIsTheLast(_ counts: [Int], _ isLast: [Bool]) {
    var pull = ContactPull(org: orgA, after: nil)
    var found: [Bool] = []
    for count in counts { found.append(pull.isLast(count)) }
    #expect(found == isLast)
  }

  @Test func aReconcileCountsItsPagesAnew() {
    var pull = ContactPull(org: orgA, after: nil)
    _ = pull.isLast(500)
    pull.reconcile(round: 3, after: id(1))
    let isLast = pull.isLast(2)
    #expect(!isLast)
    #expect(pull.round == 3)
    guard case .versions(id(1)) = pull.stage else {
      Issue.record("it reads versions after the last id")
      return
    }
  }

  @Test func aPullWithoutACursorIsWholeAndAtItsStart() {
    var whole = ContactPull(org: orgA, after: nil)
    #expect(whole.isWhole && whole.isAtStart)
    whole.stage = .changes(after: Cursor(updatedAt: second(1), id: id(1)))
    #expect(whole.isWhole && !whole.isAtStart)
    let later = ContactPull(org: orgA, after: Cursor(updatedAt: second(1), id: id(1)))
    #expect(!later.isWhole && !later.isAtStart)
  }

  @Test func eachStageAsksForItsPage() throws {
    let rig = try Rig.atHome()
    let bearer = try rig.session.accessToken
    func url(_ stage: ContactPull.Stage) -> String {
      var pull = ContactPull(org: orgA, after: nil)
      pull.stage = stage
      return pull.request(rig.core.configuration.backend, bearer).url
    }
    #expect(!url(.changes(after: nil)).contains("updated_at=gte"))
    #expect(
      url(.changes(after: Cursor(updatedAt: second(7), id: id(1)))).contains("updated_at=gte"))
    #expect(url(.versions(after: id(5))).contains("id=gt.\(id(5).text)"))
    let many = (1...101).map { id($0) }
    let missing = url(.missing(many, then: id(200)))
    #expect(missing.contains(id(100).text) && !missing.contains(id(101).text))
  }
}
