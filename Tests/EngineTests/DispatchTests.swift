import Base
import Policy
import Store
import Supabase
import TestSupport
import Testing

@testable import Engine

/// Responses that come after the session has changed.
@Suite struct DispatchTests {
  /// Send what is due until a request has this purpose.
  private func ask(_ rig: Rig, _ purpose: Purpose) throws -> InFlightRequest {
    for _ in 0..<10 {
      if let found = rig.inFlight.requests.last(where: { $0.purpose == purpose }) { return found }
      try rig.loop.send(try #require(try rig.scheduler.next(rig.now)), rig.now)
    }
    throw Failure.defect("no such request")
  }

  /// Bob signs in over Alice's session and works in the same organisation.
  private func colleague(_ rig: Rig) throws {
    try rig.signIn(bob)
    try rig.list(member(orgA))
    try expect(rig.sessions.choose(orgA, rig.session))
  }

  private func ready() throws -> Rig {
    let rig = try Rig.atHome()
    rig.check.confirm()
    rig.tokens.confirm(rig.now)
    rig.pulls.requirePull()
    return rig
  }

  @Test func whatTheServerShowedToOneUserIsNotKeptForTheNext() throws {
    // Given two reads of Alice's, who may see more than Bob
    let rig = try ready()
    let contacts = try ask(rig, .pull)
    let summary = try ask(rig, .summary)
    try colleague(rig)
    // When they are answered
    try rig.loop.finish(
      contacts, try response(200, "[\(contact(1, updatedAt: second(1)))]"), rig.now)
    try rig.loop.finish(
      summary, try response(200, #"{"activities":10,"minutes":300}"#), rig.now)
    // Then
    try expect(rig.search.search(["query": ""]).int("total"), equals: 0)
    try expect(rig.summary.get([:])["summary"]?.isNull, equals: true)
    expect(rig.pulls.current == nil && rig.pulls.needsContacts && rig.pulls.needsSummary)
  }

  @Test func aContactThatOneUserAskedForIsNotShownToTheNext() throws {
    // Given
    let rig = try ready()
    _ = rig.live.add(id(1), in: orgA, rig.now)
    let request = try ask(rig, .live)
    try colleague(rig)
    // When
    try rig.loop.finish(
      request, try response(200, "[\(contact(1, updatedAt: second(1)))]"), rig.now)
    try rig.search.answerEnded(rig.now)
    // Then the request is answered, with no contact
    let events = try rig.takeEvents().filter { $0.string("type") == "contact_get" }
    expect(events.map { $0["contact"]?.isNull }, equals: [true])
    expect(events.map { $0["message"]?.string("code") }, equals: ["contact_withdrawn"])
  }

  @Test func aContactThatIsShownNeedsNoMessage() throws {
    let rig = try ready()
    _ = rig.live.add(id(1), in: orgA, rig.now)
    let request = try ask(rig, .live)
    try rig.loop.finish(
      request, try response(200, "[\(contact(1, name: "Anna", updatedAt: second(1)))]"), rig.now)
    let event = try #require(try rig.takeEvents().first { $0.string("type") == "contact_get" })
    expect(event["contact"]?.string("name"), equals: "Anna")
    expect(event["message"]?.isNull, equals: true)
    expect(event.int("request"), equals: 1)
  }

  @Test func aContactThatComesAfterARefreshIsAskedForAgain() throws {
    // Given
    let rig = try ready()
    _ = rig.live.add(id(1), in: orgA, rig.now)
    let request = try ask(rig, .live)
    rig.tokens.refuse()
    let refresh = try ask(rig, .refresh)
    try rig.loop.finish(refresh, try response(200, tokenReply(alice)), rig.now)
    // When
    try rig.loop.finish(
      request, try response(200, "[\(contact(1, updatedAt: second(1)))]"), rig.now)
    // Then
    try expect(!rig.takeEventTypes().contains("contact_get"))
    expect(rig.live.next?.number, equals: 1)
  }
}
