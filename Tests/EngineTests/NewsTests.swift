import Base
import Policy
import TestSupport
import Testing

@testable import Engine

@Suite struct NewsTests {
  private let now = Rig.start

  private func run(_ sent: Int64, parked: Int64 = 0, _ outcome: MessageCode? = nil) -> RunReport {
    RunReport(
      owner: [1], sent: sent, parked: parked, ids: (0..<sent).map { .uuid(id(Int($0))) },
      durationMS: 10, outcome: outcome)
  }

  /// Take the state of sync: the run that is given with it, and whether there is one.
  private func sync(_ news: News) -> (isTold: Bool, run: RunReport?) {
    defer { news.dropSync() }
    return (news.hasSync, news.run)
  }

  @Test func answersComeInTheirOrderAndAreDiscardedByTheirOperation() throws {
    let news = News()
    try news.answer("contact_get", ["request": 1])
    try news.answer("session_token", ["expires_ms": 5])
    try news.answer("contact_get", ["request": 2])
    news.discard("session_token")
    expect(news.holdsContact)
    expect(news.takeAnswer()?.int("request"), equals: 1)
    expect(news.takeAnswer()?.int("request"), equals: 2)
    expect(news.takeAnswer() == nil)
    expect(!news.holdsContact)
  }

  @Test func progressIsNotedAtMostEvery200MS() {
    let news = News()
    expect(news.wantsProgress(now))
    news.noteProgress(run(1), now)
    expect(!news.wantsProgress(now))
    let later = Instant(wallMS: 0, monotonicMS: now.monotonicMS + 200, bootID: "")
    expect(news.wantsProgress(later))
    // An end that was not given yet is not replaced by progress
    news.noteEnd(run(2, .syncCompleted))
    expect(!news.wantsProgress(later))
  }

  @Test func theEndOfARunIsTold() throws {
    let news = News()
    news.noteEnd(run(2, .syncCompleted))
    expect(sync(news).run?.sent, equals: 2)
    // Once: a pull that follows says nothing of it
    news.notePull()
    let after = sync(news)
    expect(after.isTold && after.run == nil)
    expect(!sync(news).isTold)
  }

  @Test func aRunThatEndsBeforeTheLastEndWasGivenAddsToIt() throws {
    let news = News()
    news.noteEnd(run(2, parked: 1, .syncCompletedParked))
    news.noteEnd(run(3, .syncCompleted))
    let told = try #require(sync(news).run)
    expect(
      [told.sent, told.parked, Int64(told.ids.count), told.durationMS], equals: [5, 1, 5, 20])
    expect(told.outcome, equals: .syncCompletedParked)
  }
}
