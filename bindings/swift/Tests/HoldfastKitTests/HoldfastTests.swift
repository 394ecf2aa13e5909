import Foundation
import Testing

@testable import HoldfastKit

@Suite struct HoldfastTests {
  @Test func anItemIsQueuedOfflineAndStoredOnce() async throws {
    let app = try await signedIn(try configuration(freshFolder()))
    try await app.networkSet(online: false)
    let added = try await app.queueAdd(kind: "activity", payload: ["type": "visit", "minutes": 30])
    #expect(try await app.queueList().items.map { $0.id } == [added.id])
    #expect(try await stored(added.id) == 0)
    try await app.networkSet(online: true)
    try await drain(app)
    #expect(try await stored(added.id) == 1)
    await app.close()
  }

  @Test func anErrorNamesTheFieldAndTheCode() async throws {
    let app = try await signedIn(try configuration(freshFolder()))
    let error = await #expect(throws: HoldfastError.self) {
      try await app.queueAdd(kind: "nothing", payload: [:])
    }
    #expect(error?.code == .queueUnknownKind)
    #expect(error?.field == "/kind")
    await app.close()
  }

  @Test func aNumberThatJSONHasNotIsRefusedWithItsField() async throws {
    let app = try await signedIn(try configuration(freshFolder()))
    let error = await #expect(throws: HoldfastError.self) {
      try await app.queueAdd(kind: "activity", payload: ["minutes": .number(.nan)])
    }
    #expect(error?.field == "/payload/minutes")
    await app.close()
  }

  @Test func aConfigurationThatIsWrongDoesNotOpen() throws {
    var config = try configuration(freshFolder())
    config.backend.url = "ftp://x"
    let error = #expect(throws: HoldfastError.self) { try Holdfast(config) }
    #expect(error?.field == "/backend/url")
  }

  @Test func callsAfterCloseFailAndCloseIsHarmless() async throws {
    let app = try await signedIn(try configuration(freshFolder()))
    await app.close()
    await app.close()
    let error = await #expect(throws: HoldfastError.self) { try await app.sessionStatus() }
    #expect(error?.code == .handleClosed)
    // What had come before is still read; then the events end.
    for try await _ in app.events {}
  }

  @Test func theFilesAreClosedWhenCloseReturns() async throws {
    for _ in 0..<20 {
      let folder = try freshFolder()
      let app = try Holdfast(try configuration(folder))
      _ = try await app.settled(try await app.sessionResume())
      await app.close()
      // SQLite removes its log with the last connection.
      #expect(!FileManager.default.fileExists(atPath: folder.path + "/data/holdfast.db-wal"))
    }
  }

  @Test func closingWhileOthersWaitEndsThem() async throws {
    let app = try Holdfast(try configuration(freshFolder(), url: "http://127.0.0.1:9"))
    let reader = Task { for try await _ in app.events {} }
    let calls = (0..<20).map { _ in Task { _ = try? await app.sessionStatus() } }
    await app.close()
    try await reader.value
    for call in calls { await call.value }
  }

  @Test func aReleasedHandleClosesItself() async throws {
    let folder = try freshFolder()
    var app: Holdfast? = try await signedIn(try configuration(folder))
    weak let released = app
    app = nil
    #expect(released == nil)
    let again = try Holdfast(try configuration(folder))
    #expect(try await again.settled(try await again.sessionResume()).screen == .home)
    await again.close()
  }

  @Test func theSecondReaderIsRefused() async throws {
    let app = try await signedIn(try configuration(freshFolder()))
    let first = app.events.makeAsyncIterator()
    await #expect(throws: EventsHaveAReader.self) {
      _ = try await app.events.makeAsyncIterator().next()
    }
    withExtendedLifetime(first) {}
    await app.close()
  }

  @Test func aDurableEventComesAgainUntilTheNextIsAskedFor() async throws {
    let folder = try freshFolder()
    var app = try await signedIn(try configuration(folder))
    let added = try await app.queueAdd(kind: "activity", payload: ["type": "visit", "minutes": 5])
    func completed(_ app: Holdfast, goOn: Bool) async throws -> [String] {
      for try await event in app.events {
        guard case .syncCompleted(let one) = event else { continue }
        if !goOn { return one.ids }
        _ = try await app.syncNow()
        // The next event acknowledges this one.
        for try await _ in app.events { return one.ids }
      }
      return []
    }
    #expect(try await completed(app, goOn: false) == [added.id])
    await app.close()
    app = try Holdfast(try configuration(folder))
    _ = try await app.settled(try await app.sessionResume())
    #expect(try await completed(app, goOn: false) == [added.id])
    await app.close()
  }

  @Test func aCancelledReaderEnds() async throws {
    let app = try await signedIn(try configuration(freshFolder()))
    let (begun, told) = AsyncStream<Void>.makeStream()
    let reader = Task {
      var count = 0
      told.yield()
      for try await _ in app.events { count += 1 }
      return count
    }
    for await _ in begun { break }
    _ = try await app.syncStatus()
    reader.cancel()
    _ = try await reader.value
    await app.close()
  }
}

@Suite struct KeyStoreTests {
  @Test func aHostsKeyStoreLocksAndUnlocks() async throws {
    let keys = MemoryKeyStore()
    let folder = try freshFolder()
    var config = try configuration(folder, biometric: .required)
    config.keystore = nil
    let app = try await signedIn(config, keyStore: keys)
    let locked = try await app.settled(try await app.sessionLock())
    #expect(locked.screen == .unlock)
    let error = await #expect(throws: HoldfastError.self) { try await app.queueList() }
    #expect(error?.code == .sessionLocked)
    let open = try await app.settled(try await app.sessionUnlock(outcome: .success))
    #expect(open.screen == .home)
    await app.close()
    #expect(await Set(keys.keys.keys) == [.device, .session, .biometric])
  }

  @Test func aKeyStoreThatFailsIsWaitedFor() async throws {
    struct Broken: KeyStore {
      func load(_ name: KeyName, prompt: String?) async throws -> Data? {
        throw KeyFailure(.locked)
      }
      func save(_ name: KeyName, _ key: Data, protection: KeyProtection) async throws {
        throw CancellationError()
      }
      func erase(_ name: KeyName) async throws {}
    }
    var config = try configuration(freshFolder())
    config.keystore = nil
    let app = try Holdfast(config, keyStore: Broken())
    let shown = try await app.sessionResume()
    #expect(shown.screen == .wait)
    await app.close()
  }

  @Test func filesHoldTheKeysForThisUserAlone() async throws {
    let folder = try freshFolder().appendingPathComponent("keys")
    let store = FileKeyStore(folder: folder)
    #expect(try store.load(.device, prompt: nil) == nil)
    try store.save(.device, Data(repeating: 7, count: 32), protection: .device)
    try store.save(.device, Data(repeating: 8, count: 32), protection: .device)
    #expect(try store.load(.device, prompt: nil) == Data(repeating: 8, count: 32))
    let names = try FileManager.default.contentsOfDirectory(atPath: folder.path)
    #expect(names == ["device.key"])
    let path = folder.appendingPathComponent("device.key").path
    let mode = try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? Int
    #expect(mode == 0o600)
    try store.erase(.device)
    try store.erase(.device)
    #expect(try store.load(.device, prompt: nil) == nil)
  }
}
