import Foundation
import Testing

@testable import HoldfastKit

/// The story that every binding tells: sign in, choose, lose the network, queue, die, unlock, drain,
/// log out, with the key store of this platform.
@Suite struct StoryTests {
  @Test func nothingIsLostAndNothingIsStoredTwice() async throws {
    let folder = try freshFolder()
    let keys = folder.appendingPathComponent("keys").path
    // Given a user who signs in, chooses an organisation, loses the network and queues three items
    let child = Process()
    child.executableURL = URL(
      fileURLWithPath: try #require(environment["HOLDFAST_PROGRAMS"]) + "/story")
    child.arguments = [folder.path]
    let output = Pipe()
    child.standardOutput = output
    try child.run()
    defer { if child.isRunning { kill(child.processIdentifier, SIGKILL) } }
    var line = Data()
    while !line.contains(0x0A) {
      let more = output.fileHandleForReading.availableData
      try #require(!more.isEmpty)
      line += more
    }
    let told = try JSONDecoder().decode(JSON.self, from: line)
    #expect(told["screens"] == ["sign_in", "select_org", "home"])
    #expect(told["orgs"] == 2)
    guard case .array(let items) = told["ids"] else {
      Issue.record("\(told)")
      return
    }
    let ids = items.compactMap { $0.string }
    // When the process is killed
    kill(child.processIdentifier, SIGKILL)
    child.waitUntilExit()
    #expect(child.terminationReason == .uncaughtSignal)
    for id in ids { #expect(try await stored(id) == 0) }
    // Then the key of the session is gone
    #expect(
      try FileManager.default.contentsOfDirectory(atPath: keys).sorted() == [
        "biometric.key", "device.key",
      ])

    // And the next start asks for the user's presence before it shows anything
    var config = try configuration(folder, biometric: .required)
    config.keystore = nil
    let store = FileKeyStore(folder: URL(fileURLWithPath: keys))
    let app = try Holdfast(config, keyStore: store)
    #expect(try await app.settled(try await app.sessionResume()).screen == .unlock)
    let error = await #expect(throws: HoldfastError.self) { try await app.queueList() }
    #expect(error?.code == .sessionLocked)
    let home = try await app.settled(try await app.sessionUnlock(outcome: .success))
    #expect(home.screen == .home)
    // With a network, every item is stored once
    try await drain(app)
    for id in ids { #expect(try await stored(id) == 1) }

    // And a logout leaves no key of the session
    let out = try await app.sessionLogout()
    #expect(out.unsent == 0)
    #expect(try await app.settled(out.decision).screen == .signIn)
    while try await !app.sessionStatus().owed.isEmpty {
      try await Task.sleep(nanoseconds: 20_000_000)
    }
    #expect(try FileManager.default.contentsOfDirectory(atPath: keys) == ["device.key"])
    await app.close()
  }
}
