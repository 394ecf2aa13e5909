import Foundation
import Testing

@testable import HoldfastKit

/// The story that every binding tells: sign in, choose, lose the network, queue, leave, unlock, send, search, log out,
/// with the key store of this platform.
@Suite(.timeLimit(.minutes(5))) struct StoryTests {
  @Test func nothingIsLostAndNothingIsStoredTwice() async throws {
    let folder = try freshFolder()
    let keys = folder.appendingPathComponent("keys")
    let store = FileKeyStore(folder: keys)
    func saved() throws -> [String] {
      try FileManager.default.contentsOfDirectory(atPath: keys.path).sorted()
    }
    // Given a user who signs in, chooses an organisation, loses the network and queues three items
    var config = try configuration(folder, biometric: .required)
    config.policy?.lockOnBackground = .atOnce
    var app = try await signedIn(config, keyStore: store, email: "mentor@example.org")
    let orgs = try #require(app.screen?.orgs)
    #expect(orgs.count == 2)
    try await app.orgSelect(orgId: orgs[0].orgId)
    #expect(try await app.settled().screen == .home)
    try await app.networkReport(online: false)
    var ids: [String] = []
    for minutes in [10, 20, 30] { ids.append(try await app.visit(.int(minutes))) }
    // When the user turns to another app, and this one ends
    try await app.sessionBackground()
    await app.close()
    for id in ids { #expect(try await stored(id) == 0) }
    // Then the key of the session is gone
    #expect(try saved() == ["biometric.key", "device.key"])

    // And the next start asks for the user's presence before it shows anything
    app = try await Holdfast(config, keyStore: store)
    #expect(try await app.settled().screen == .unlock)
    let error = await #expect(throws: HoldfastError.self) { try await app.queueList() }
    #expect(error?.code == .sessionLocked)
    try await app.sessionUnlock()
    #expect(try await app.settled().screen == .home)
    // With a network, every item is stored once
    try await app.drain()
    for id in ids { #expect(try await stored(id) == 1) }
    // And a contact is found
    while try await app.contactSearch(query: "").asOf == nil { _ = try await app.next() }
    #expect(try await app.contactSearch(query: "").total > 0)

    // And a logout leaves no key of the session
    #expect(try await app.sessionLogout().unsent == 0)
    #expect(try await app.settled().screen == .signIn)
    while try await !app.sessionStatus().owed.isEmpty {
      try await Task.sleep(for: .milliseconds(20))
    }
    #expect(try saved() == ["device.key"])
    await app.close()
  }
}
