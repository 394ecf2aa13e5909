import Base
import Policy
import TestSupport
import Testing

@testable import Engine

@Suite struct LiveContactsTests {
  @Test func theFirstReasonWhyThereIsNoContactStays() throws {
    // Given three requests, of which the first was sent
    let rig = try Rig()
    let live = rig.live
    for number in 1...3 { _ = live.add(id(number), in: orgA, rig.now) }
    live.markSent(try #require(live.next))
    // When the network goes, and then the session is locked
    live.end(.offline) { !$0.isSent }
    live.end(.contactWithdrawn)
    // Then
    var reasons: [Int64: MessageCode?] = [:]
    while let ended = live.firstEnded(rig.now) {
      reasons[ended.number] = ended.ending
      expect(!live.isOpen(ended))
      live.remove(ended)
    }
    expect(reasons, equals: [1: .contactWithdrawn, 2: .offline, 3: .offline])
    expect(live.next == nil)
  }
}
