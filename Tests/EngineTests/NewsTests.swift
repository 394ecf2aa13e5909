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

  /// The run that is given with the state of sync, and whether there is one.
  private func sync(_ news: News) throws -> (isTold: Bool, run: RunReport?) {
    var given: RunReport?
    let state = try news.takeSync { (run) throws(Failure) in
      given = run
      return [:]
    }
    return (state != nil, given)
  }

  @Test func onlyTheNewestScreenIsGivenOnce() {
    let news = News(Revision())
    expect(news.isEmpty)
    news.show(["screen": "home"], now)
    news.show(["screen": "unlock"], now)
    expect(!news.isEmpty)
    expect(news.takeScreen()?.string("screen"), equals: "unlock")
    expect(news.takeScreen() == nil)
    expect(news.isEmpty)
  }

  @Test func answersComeInTheirOrderAndAreDiscardedByTheirOperation() throws {
    let news = News(Revision())
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
    let news = News(Revision())
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
    let news = News(Revision())
    news.noteEnd(run(2, .syncCompleted))
    try expect(sync(news).run?.sent, equals: 2)
    // Once: a pull that follows says nothing of it
    news.notePull()
    let after = try sync(news)
    expect(after.isTold && after.run == nil)
    try expect(!sync(news).isTold)
  }

  @Test func aRunThatEndsBeforeTheLastEndWasGivenAddsToIt() throws {
    let news = News(Revision())
    news.noteEnd(run(2, parked: 1, .syncCompletedParked))
    news.noteEnd(run(3, .syncCompleted))
    let told = try #require(try sync(news).run)
    expect(
      [told.sent, told.parked, Int64(told.ids.count), told.durationMS], equals: [5, 1, 5, 20])
    expect(told.outcome, equals: .syncCompletedParked)
  }

  @Test func aLostReplyGivesTheSameAgain() throws {
    // Given
    let news = News(Revision())
    news.show(["screen": "home"], now)
    try news.answer("session_token", [:])
    news.noteEnd(run(1, .syncCompleted))
    // When what a call gave did not reach the host
    _ = news.takeScreen()
    _ = news.takeAnswer()
    _ = try sync(news)
    news.restore()
    // Then
    expect(news.takeScreen() != nil && news.takeAnswer() != nil)
    try expect(sync(news).run?.sent, equals: 1)
    // And what has reached it is not repeated
    news.confirm()
    news.restore()
    expect(news.isEmpty)
  }
}
