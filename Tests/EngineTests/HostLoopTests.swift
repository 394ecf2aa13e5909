import Base
import Policy
import TestSupport
import Testing

@testable import Engine

@Suite struct HostLoopTests {
  /// One of each thing that `next` gives.
  private static let things = ["screen", "answer", "notice", "sync", "request"]

  private func make(_ thing: String) throws -> Rig {
    let rig = try Rig.atHome()
    while let _ = try rig.loop.next(.all) { rig.loop.give() }
    switch thing {
    case "screen": rig.news.show(["screen": "unlock"], rig.now)
    case "answer": try rig.news.answer("contact_get", [:])
    case "notice": try rig.notices.add("item_parked", reason: "server_rule", owner: nil)
    case "sync": rig.news.notePull()
    default: rig.tokens.requireValidation()
    }
    if thing == "request" { rig.inFlight.removeAll() }
    return rig
  }

  @Test(arguments: things)
  func whatNoReplyWasMadeOfIsGivenAgain(_ thing: String) throws {
    // Given
    let rig = try make(thing)
    let given = try #require(try rig.loop.next(.all))
    let key = try #require(given.members.first?.key)
    expect(key, equals: thing)
    // When the reply of that call was lost
    rig.loop.begin()
    // Then
    let again = try #require(try rig.loop.next(.all))
    expect(again == given)
    // And what has reached the host is not repeated
    rig.loop.give()
    rig.loop.begin()
    while let next = try rig.loop.next(.all) {
      expect(next != given)
      rig.loop.give()
    }
  }
}
