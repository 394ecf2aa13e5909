import CHoldfast
import Foundation
import Testing

@testable import HoldfastKit

@Suite(.timeLimit(.minutes(5))) struct HoldfastTests {
  @Test func anErrorNamesTheFieldAndTheCode() async throws {
    let app = try await signedIn(try configuration(freshFolder()))
    var error = await #expect(throws: HoldfastError.self) {
      try await app.queueAdd(kind: "nothing", payload: [:])
    }
    #expect(error?.code == .queueUnknownKind)
    #expect(error?.field == "/kind")
    #expect(error?.status == HOLDFAST_INVALID)
    error = await #expect(throws: HoldfastError.self) { try await app.visit(.number(.nan)) }
    #expect(error?.field == "/payload/minutes")
    await app.close()
    let wrong = try configuration(freshFolder(), url: "ftp://x")
    error = await #expect(throws: HoldfastError.self) { try await Holdfast(wrong) }
    #expect(error?.field == "/backend/url")
  }

  @Test func callsAfterCloseFailAndCloseIsHarmless() async throws {
    let app = try await signedIn(try configuration(freshFolder()))
    await app.close()
    await app.close()
    let error = await #expect(throws: HoldfastError.self) { try await app.sessionStatus() }
    #expect(error?.code == .handleClosed)
    #expect(try await app.next() == nil)
    for try await next in app.news { Issue.record("\(next)") }
  }

  @Test func theFilesAreClosedWhenCloseReturns() async throws {
    for _ in 0..<20 {
      let folder = try freshFolder()
      let app = try await Holdfast(try configuration(folder))
      let calls = (0..<20).map { _ in Task { _ = try? await app.sessionStatus() } }
      let reader = Task { for try await _ in app.news {} }
      await app.close()
      // SQLite removes its log with the last connection.
      #expect(!FileManager.default.fileExists(atPath: folder.path + "/data/holdfast.db-wal"))
      // Whoever waits is let go.
      try await reader.value
      for call in calls { await call.value }
    }
  }

  @Test func aReleasedHandleClosesItself() async throws {
    let folder = try freshFolder()
    var app: Holdfast? = try await signedIn(try configuration(folder))
    let news = try #require(app?.news)
    let reader = Task { for try await _ in news {} }
    weak let released = app
    app = nil
    #expect(released == nil)
    try await reader.value
    let again = try await Holdfast(try configuration(folder))
    #expect(try await again.settled().screen == .home)
    await again.close()
  }
}

@Suite(.timeLimit(.minutes(5))) struct NewsTests {
  @Test func theFirstThingIsTheFirstScreenAndTheNewestOneIsAProperty() async throws {
    let app = try await Holdfast(try configuration(freshFolder()))
    #expect(app.screen == app.opened.screen)
    #expect(try await app.next(timeoutMs: 0) == app.opened.screen.map(Next.screen))
    let nothing = try await app.next(timeoutMs: 20)
    if case .wakeInMs = nothing {} else { Issue.record("there was something else") }
    try await app.signInComplete(email: "solo@example.org", password: "wrong")
    let shown = try await app.settled()
    #expect(shown.screen == .signIn)
    #expect(shown.message?.cause == .wrongPassword)
    #expect(app.screen == shown)
    await app.close()
  }

  @Test func theNextScreenIsWaitedForAndTheRestIsKept() async throws {
    let app = try await signedIn(try configuration(freshFolder()))
    let locked = Task { try await app.settled() }
    let id = try await app.visit(-5)
    while try await app.syncStatus().counts.parked == 0 {
      try await Task.sleep(for: .milliseconds(20))
    }
    try await app.sessionLock()
    #expect(try await locked.value.screen == .signIn)
    for try await case .notice(let one) in app.news {
      #expect(one.id == id)
      break
    }
    await app.close()
    await #expect(throws: HoldfastError.self) { try await app.settled() }
  }

  @Test func theSecondReaderIsRefused() async throws {
    let app = try await Holdfast(try configuration(freshFolder(), url: "http://127.0.0.1:9"))
    _ = try await app.shown()
    let reader = Task {
      while true {
        do { guard try await app.next() != nil else { return } } catch { await Task.yield() }
      }
    }
    var refused: HoldfastError?
    while refused == nil {
      try await Task.sleep(for: .milliseconds(5))
      do throws(HoldfastError) { _ = try await app.next(timeoutMs: 0) } catch { refused = error }
    }
    #expect(refused?.code == .handleBusy)
    await app.close()
    await reader.value
  }

  @Test func aCancelledReaderEndsAndTakesNothing() async throws {
    let app = try await signedIn(try configuration(freshFolder()))
    let (begun, told) = AsyncStream<Void>.makeStream()
    let reader = Task {
      told.yield()
      for try await _ in app.news {}
    }
    for await _ in begun { break }
    reader.cancel()
    try await reader.value
    try await app.sessionLock()
    #expect(try await app.settled().screen == .signIn)
    await app.close()
  }

  @Test func aNoticeComesAgainUntilTheNextThingIsAskedFor() async throws {
    let folder = try freshFolder()
    var app = try await signedIn(try configuration(folder))
    let id = try await app.visit(-5)
    func parked() async throws -> String? {
      for try await next in app.news { if case .notice(let one) = next { return one.id } }
      return nil
    }
    #expect(try await parked() == id)
    await app.close()
    app = try await Holdfast(try configuration(folder))
    #expect(try await parked() == id)
    _ = try await app.next(timeoutMs: 0)
    await app.close()
    app = try await Holdfast(try configuration(folder))
    while case let next = try await app.next(timeoutMs: 0), let next {
      if case .notice(let one) = next { Issue.record("\(one)") }
      if case .wakeInMs = next { break }
    }
    await app.close()
  }
}

@Suite struct ValueTests {
  private func read<Value: Decodable>(_ text: String) throws -> Value {
    try JSONDecoder().decode(Value.self, from: Data(text.utf8))
  }

  @Test func anInstantIsADateToTheMillisecond() {
    let date = Date(timeIntervalSince1970: 1_795_000_000.1234)
    #expect(Instant(date).milliseconds == 1_795_000_000_123)
    #expect(Instant(Instant(date).date) == Instant(date))
    #expect(Instant(Date(timeIntervalSince1970: .infinity)).milliseconds == .max)
    #expect(Instant(Date(timeIntervalSince1970: .nan)).milliseconds == .min)
  }

  @Test func numbersAndColumnsKeepWhatTheyAre() throws {
    let numbers: JSON = try read("[1, -2, 2.5, 9223372036854775807, 9223372036854775808, true]")
    #expect(numbers == [1, -2, 2.5, .int(.max), .number(9_223_372_036_854_775_808), true])
    let contact: Contact = try read(#"{"x":{"id":1},"name":"Kari","id":"i","y":[null]}"#)
    #expect(contact.columns == ["x": ["id": 1], "y": [nil]])
    #expect([contact.id, contact.name] == ["i", "Kari"])
  }

  @Test func whatALaterVersionAddsIsRead() throws {
    let notice: Next = try read(#"{"notice":{"type":"brand_new","reason":"r","text":"t","x":[1]}}"#)
    guard case .notice(let one) = notice else { throw KeyFailure(.failed) }
    #expect(one.type == "brand_new")
    #expect(try read(#"{"brand_new":{}}"#) == Next.other)
    #expect(try read(#"{"wake_in_ms":null}"#) == Next.wakeInMs(nil))
  }

  @Test func nullAndLeftOutDiffer() throws {
    let null: JSON = try read(try Backend(url: "u", apiKey: "k", memberships: .null).json)
    #expect(null == ["url": "u", "api_key": "k", "memberships": nil])
    let absent: JSON = try read(try Backend(url: "u", apiKey: "k").json)
    #expect(absent == ["url": "u", "api_key": "k"])
    let (none, org): (String?, OrNull<String>?) = (nil, .null)
    let request: Request = ["a": none, "b": org, "c": Instant(milliseconds: 7), "d": [JSON.null]]
    #expect(try read(try request.json) == ["b": nil, "c": 7, "d": [nil]] as JSON)
  }

  @Test func aNumberThatJSONHasNotIsRefusedWithItsPlace() {
    let request: Request = ["payload": ["a/b~c": ["x", .number(.infinity)]] as Payload]
    let error = #expect(throws: HoldfastError.self) { try request.json }
    #expect(error?.field == "/payload/a~1b~0c/1")
  }
}

@Suite struct KeyStoreTests {
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
    let app = try await Holdfast(try configuration(freshFolder()), keyStore: Broken())
    #expect(try await app.shown().screen == .wait)
    await app.close()
  }

  /// As an app does that asks UIApplication whether the Keychain can be read.
  @MainActor @Test func theKeyStoreMayNeedTheMainActor() async throws {
    struct OnMain: KeyStore {
      let keys = MemoryKeyStore()
      func load(_ name: KeyName, prompt: String?) async throws -> Data? {
        await MainActor.run {}
        return await keys.load(name, prompt: prompt)
      }
      func save(_ name: KeyName, _ key: Data, protection: KeyProtection) async throws {
        await keys.save(name, key, protection: protection)
      }
      func erase(_ name: KeyName) async throws { await keys.erase(name) }
    }
    let config = try configuration(freshFolder(), biometric: .required)
    let app = try await signedIn(config, keyStore: OnMain())
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
