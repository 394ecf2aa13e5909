import Base
import TestSupport
import Testing
import Vault

@testable import Engine

/// A host that is asked for its keys, and answers when the test says so.
private final class AskedHost {
  let clock = Clock(.manual)
  let revision = Revision()
  let keys: RequestedKeys

  init() throws {
    try Vault.start()
    keys = RequestedKeys(clock, revision)
  }

  func refusal(_ work: () throws(KeyRefusal) -> Void) -> KeyRefusal? {
    do throws(KeyRefusal) { try work() } catch { return error }
    return nil
  }

  func load(_ name: KeyName) -> KeyRefusal? {
    refusal { () throws(KeyRefusal) in _ = try keys.load(name) }
  }

  func save(_ key: Key, _ name: KeyName, beside device: Key? = nil) -> KeyRefusal? {
    refusal { () throws(KeyRefusal) in
      try keys.save(key, name, beside: device.map { NamedKey($0, .device) })
    }
  }

  func erase(_ name: KeyName) -> KeyRefusal? {
    refusal { () throws(KeyRefusal) in try keys.erase(name) }
  }

  /// What the host is asked for now, as "operation name".
  func asked() throws -> [String] { try taken().map { $0.what } }

  private func taken() throws -> [(what: String, id: Int64)] {
    try keys.takeOutbox(prompt: "Unlock").elements.map {
      (($0.string("operation") ?? "") + " " + ($0.string("name") ?? ""), try #require($0.int("id")))
    }
  }

  /// The host is asked for exactly this, and answers.
  func answer(_ what: String, _ answer: RequestedKeys.Answer) throws {
    let asked = try taken()
    expect(asked.map { $0.what }, equals: [what])
    keys.take(answer, to: try #require(asked.first).id)
  }

  func pass(_ milliseconds: Int64) {
    let now = clock.now()
    clock.set(
      Instant(
        wallMS: now.wallMS + milliseconds, monotonicMS: now.monotonicMS + milliseconds,
        bootID: now.bootID))
  }
}

@Suite struct RequestedKeysTests {
  private let host: AskedHost

  init() throws { host = try AskedHost() }

  // MARK: Loading

  @Test func aQuestionIsAskedOnceAndItsAnswerServesOneCall() throws {
    expect(host.load(.device), equals: .pending)
    expect(host.load(.device), equals: .pending)
    let key = try Key.random()
    try host.answer("load device", .key(key))
    expect(host.keys.hasNews)
    try expect(host.keys.load(.device) === key)
    // When the next call begins, then it is asked for again
    host.keys.begin()
    expect(host.load(.device), equals: .pending)
    try expect(host.asked(), equals: ["load device"])
  }

  @Test func theKeyBehindPresenceServesUntilItIsDistrusted() throws {
    expect(host.load(.biometric), equals: .pending)
    try host.answer("load biometric", .key(try Key.random()))
    host.keys.begin()
    expect(host.load(.biometric), equals: nil)
    host.keys.distrust(.biometric)
    expect(host.load(.biometric), equals: .pending)
  }

  @Test func aRefusalIsBelievedForAWhile() throws {
    expect(host.load(.session), equals: .pending)
    try host.answer("load session", .refused(.locked))
    host.keys.begin()
    host.pass(RequestedKeys.pauseMS - 1)
    expect(host.load(.session), equals: .locked)
    expect(host.keys.trouble?.text("told"), equals: "told, load, session, locked")
    try expect(host.asked(), equals: [])
    host.pass(1)
    expect(host.load(.session), equals: .pending)
    // or until the app asks for it itself
    try host.answer("load session", .refused(.failed))
    expect(host.load(.session), equals: .failed)
    host.keys.askAgain()
    expect(host.load(.session), equals: .pending)
  }

  // MARK: Withdrawing

  private func taken() throws -> Int64 {
    try #require(try host.keys.takeOutbox(prompt: .null).elements.first?.int("id"))
  }

  private var withdrawn: [Int64] { host.keys.takeWithdrawn().elements.compactMap { $0.int } }

  @Test func theAnswerToAWithdrawnQuestionMeansNothing() throws {
    expect(host.load(.session), equals: .pending)
    let id = try taken()
    host.keys.distrust(.session)
    expect(host.keys.hasWork(host.clock.now()))
    expect(withdrawn, equals: [id])
    expect(withdrawn, equals: [])
    // The next one waits for its answer
    expect(host.load(.session), equals: .pending)
    try expect(host.asked(), equals: [])
    expect(!host.keys.hasWork(host.clock.now()))
    expect(host.keys.finds(id) && host.keys.loads(id))
    host.keys.take(.key(try Key.random()), to: id)
    expect(!host.keys.finds(id))
    expect(host.load(.session), equals: .pending)
    try expect(host.asked(), equals: ["load session"])
  }

  @Test func aQuestionThatTheHostHasNotGotIsForgotten() throws {
    expect(host.load(.session), equals: .pending)
    host.keys.distrust(.session)
    expect(withdrawn, equals: [])
    try expect(host.asked(), equals: [])
  }

  @Test func anErasureDoesNotWaitForAWithdrawnQuestion() throws {
    expect(host.load(.biometric), equals: .pending)
    let prompt = try taken()
    expect(host.erase(.biometric), equals: .pending)
    try host.answer("erase biometric", .done)
    // but the look for the key does
    try expect(host.asked(), equals: [])
    host.keys.take(.refused(.cancelled), to: prompt)
    try host.answer("load biometric", .refused(.notFound))
    expect(host.erase(.biometric), equals: nil)
  }

  @Test func aWithdrawnQuestionWithoutAnAnswerEnds() throws {
    expect(host.load(.biometric), equals: .pending)
    let prompt = try taken()
    host.pass(RequestedKeys.timeoutMS - 1)
    host.keys.distrust(.biometric)
    expect(host.load(.biometric), equals: .pending)
    expect(host.keys.deadlineMS, equals: host.clock.now().monotonicMS + 1)
    host.pass(1)
    host.keys.expire()
    expect(!host.keys.finds(prompt))
    // The time of the next one begins when the host is asked
    try expect(host.asked(), equals: ["load biometric"])
    expect(host.keys.deadlineMS, equals: host.clock.now().monotonicMS + RequestedKeys.timeoutMS)
  }

  @Test func aLostReplyTellsAgainWhatIsWithdrawn() throws {
    expect(host.load(.session), equals: .pending)
    let id = try taken()
    host.keys.distrust(.session)
    expect(withdrawn, equals: [id])
    host.keys.restoreOutbox()
    expect(withdrawn, equals: [id])
    host.keys.begin()
    host.keys.restoreOutbox()
    expect(withdrawn, equals: [])
  }

  // MARK: Abandoning

  @Test func anAbandonedSaveIsErasedWithoutALook() throws {
    let (key, device) = (try Key.random(), try Key.random())
    expect(host.save(key, .session, beside: device), equals: .pending)
    let id = try taken()
    host.keys.abandon(.session)
    expect(host.keys.prepared(.session) == nil)
    expect(host.erase(.session), equals: .pending)
    try expect(host.asked(), equals: [])
    expect(host.keys.isChanging)
    host.keys.take(.done, to: id)
    expect(host.erase(.session), equals: .pending)
    try expect(host.asked(), equals: ["erase session"])
  }

  @Test func anAbandonedSaveThatTheHostHasNotGotIsForgotten() throws {
    expect(host.save(try Key.random(), .session), equals: .pending)
    host.keys.abandon(.session)
    try expect(host.asked(), equals: [])
    expect(!host.keys.isChanging)
  }

  @Test func theCheckOfAnAbandonedSaveMakesRoomForAnother() throws {
    let (session, biometric, device) = (try Key.random(), try Key.random(), try Key.random())
    expect(host.save(session, .session, beside: device), equals: .pending)
    try host.answer("save session", .done)
    try host.answer("load session", .key(session))
    let look = try taken()
    expect(host.save(biometric, .biometric, beside: device), equals: .pending)
    try host.answer("save biometric", .done)
    host.keys.abandon(.session)
    expect(withdrawn, equals: [look])
    host.keys.take(.key(device), to: look)
    try host.answer("load device", .key(device))
    expect(host.save(biometric, .biometric, beside: device), equals: nil)
  }

  // MARK: Time

  @Test func anOperationWithoutAnAnswerFails() throws {
    expect(host.load(.device), equals: .pending)
    try expect(host.asked(), equals: ["load device"])
    expect(host.keys.deadlineMS, equals: host.clock.now().monotonicMS + RequestedKeys.timeoutMS)
    host.pass(RequestedKeys.timeoutMS - 1)
    host.keys.expire()
    expect(host.load(.device), equals: .pending)
    host.pass(1)
    expect(host.keys.hasWork(host.clock.now()))
    host.keys.expire()
    expect(host.load(.device), equals: .noAnswer)
    expect(host.keys.deadlineMS, equals: nil)
  }

  // MARK: Saving

  @Test func aSavedKeyIsReadBackAndThenTheDeviceKey() throws {
    let (key, device) = (try Key.random(), try Key.random())
    expect(host.save(key, .session, beside: device), equals: .pending)
    expect(host.keys.prepared(.session) === key)
    expect(host.keys.isChanging)
    try host.answer("save session", .done)
    expect(host.save(key, .session, beside: device), equals: .pending)
    try host.answer("load session", .key(key))
    expect(host.save(key, .session, beside: device), equals: .pending)
    try host.answer("load device", .key(device))
    expect(host.save(key, .session, beside: device), equals: nil)
    // It serves the step that made it; then it is given up
    expect(host.keys.prepared(.session) === key)
    host.keys.begin()
    expect(host.keys.prepared(.session) == nil)
    expect(!host.keys.isChanging)
  }

  @Test func theKeyBehindPresenceIsNotReadBack() throws {
    let (key, device) = (try Key.random(), try Key.random())
    expect(host.save(key, .biometric, beside: device), equals: .pending)
    try host.answer("save biometric", .done)
    expect(host.save(key, .biometric, beside: device), equals: .pending)
    try host.answer("load device", .key(device))
    expect(host.save(key, .biometric, beside: device), equals: nil)
  }

  @Test func theDeviceKeyIsLookedForOnceAtATime() throws {
    let (session, biometric, device) = (try Key.random(), try Key.random(), try Key.random())
    for (key, name) in [(session, KeyName.session), (biometric, .biometric)] {
      expect(host.save(key, name, beside: device), equals: .pending)
    }
    let saves = try host.keys.takeOutbox(prompt: .null).elements
    for save in saves { host.keys.take(.done, to: try #require(save.int("id"))) }
    let checks = try host.keys.takeOutbox(prompt: .null).elements
    expect(checks.map { $0.string("name") }, equals: ["session", "device"])
    // Answered out of order
    host.keys.take(.key(device), to: try #require(checks.last?.int("id")))
    host.keys.take(.key(session), to: try #require(checks.first?.int("id")))
    expect(host.save(biometric, .biometric, beside: device), equals: nil)
    expect(host.save(session, .session, beside: device), equals: .pending)
    try host.answer("load device", .key(device))
    expect(host.save(session, .session, beside: device), equals: nil)
  }

  @Test(arguments: [KeyRefusal.failed, .locked, .cancelled, .unavailable])
  func aRefusedSaveIsBelievedForAWhile(refusal: KeyRefusal) throws {
    let key = try Key.random()
    expect(host.save(key, .session), equals: .pending)
    try host.answer("save session", .refused(refusal))
    expect(host.save(key, .session), equals: refusal)
    // Another key of that name is refused without a question, and one of another name is not
    expect(host.save(try Key.random(), .session), equals: refusal)
    expect(host.keys.refusedSave(.session), equals: refusal)
    expect(host.keys.refusedSave(.device), equals: nil)
    try expect(host.asked(), equals: [])
    // After the pause, and when somebody asks, the host is asked again
    host.pass(RequestedKeys.pauseMS)
    expect(host.save(key, .session), equals: .pending)
    try host.answer("save session", .refused(refusal))
    expect(host.save(key, .session), equals: refusal)
    host.keys.askAgain()
    expect(host.save(key, .session), equals: .pending)
    try expect(host.asked(), equals: ["save session"])
  }

  @Test func aKeyThatDoesNotComeBackIsNotSaved() throws {
    for (answer, refusal) in [
      (RequestedKeys.Answer.key(try Key.random()), KeyRefusal.otherKey),
      (.refused(.notFound), .notFound), (.refused(.locked), .locked),
    ] {
      let key = try Key.random()
      expect(host.save(key, .session), equals: .pending)
      try host.answer("save session", .done)
      try host.answer("load session", answer)
      expect(host.save(key, .session), equals: refusal)
      expect(host.keys.trouble?.text("").hasPrefix(", read_back, session, "), equals: true)
      host.keys.begin()
      host.keys.askAgain()
    }
  }

  @Test(
    "TST_8: a store that lost the device key gets it back with the next save",
    arguments: [
      (KeyRefusal.otherKey, "other_key"), (.notFound, "not_found"), (.invalidated, "invalidated"),
    ])
  func aStoreThatLostTheDeviceKeyGetsItBack(_ refusal: KeyRefusal, _ word: String) throws {
    let (key, device) = (try Key.random(), try Key.random())
    expect(host.save(key, .session, beside: device), equals: .pending)
    try host.answer("save session", .done)
    try host.answer("load session", .key(key))
    try host.answer("load device", refusal == .otherKey ? .key(key) : .refused(refusal))
    expect(host.save(key, .session, beside: device), equals: refusal)
    expect(host.keys.trouble?.text("told"), equals: "told, read_back, device, " + word)
    try expect(host.asked(), equals: ["save device"])
  }

  @Test func aStoreThatOnlyCannotSayKeepsItsDeviceKey() throws {
    let (key, device) = (try Key.random(), try Key.random())
    expect(host.save(key, .session, beside: device), equals: .pending)
    try host.answer("save session", .done)
    try host.answer("load session", .key(key))
    try host.answer("load device", .refused(.failed))
    expect(host.save(key, .session, beside: device), equals: .failed)
    try expect(host.asked(), equals: [])
  }

  // MARK: Erasing

  @Test func anErasedKeyIsLookedFor() throws {
    expect(host.erase(.session), equals: .pending)
    expect(host.keys.isChanging)
    try host.answer("erase session", .done)
    expect(host.erase(.session), equals: .pending)
    try host.answer("load session", .refused(.notFound))
    expect(host.erase(.session), equals: nil)
    expect(!host.keys.isChanging)
    // The answer is used up
    expect(host.erase(.session), equals: .pending)
  }

  @Test func aKeyThatIsStillThereIsNotErased() throws {
    expect(host.erase(.session), equals: .pending)
    try host.answer("erase session", .done)
    try host.answer("load session", .key(try Key.random()))
    expect(host.erase(.session), equals: .stillThere)
    expect(host.keys.trouble?.text("told"), equals: "told, erase, session, still_there")
    host.pass(RequestedKeys.pauseMS)
    expect(host.erase(.session), equals: .pending)
    try expect(host.asked(), equals: ["erase session"])
  }

  @Test func aKeyThatIsBeingSavedIsErasedAfterwards() throws {
    let key = try Key.random()
    expect(host.save(key, .session), equals: .pending)
    expect(host.erase(.session), equals: .pending)
    try expect(host.asked(), equals: ["save session"], "one operation at a time for each name")
  }

  // MARK: The outbox

  @Test func aLostReplyIsHandedOutAgain() throws {
    expect(host.load(.device), equals: .pending)
    try expect(host.asked(), equals: ["load device"])
    host.keys.restoreOutbox()
    try expect(host.asked(), equals: ["load device"])
    // What has reached the host is not
    host.keys.begin()
    host.keys.restoreOutbox()
    try expect(host.asked(), equals: [])
  }

  @Test func aRequestWhoseReplyWasLostHasNoDeadline() throws {
    expect(host.load(.session), equals: .pending)
    try expect(host.asked(), equals: ["load session"])
    host.keys.restoreOutbox()
    expect(host.keys.deadlineMS, equals: nil)
    // Given no poll for longer than the host may take
    host.pass(RequestedKeys.timeoutMS + 1)
    host.keys.expire()
    // Then the host, which never saw it, is asked for the first time
    expect(!host.keys.hasNews)
    try expect(host.asked(), equals: ["load session"])
    expect(host.keys.deadlineMS != nil)
  }

  @Test func onlyALoadBehindPresenceHasAPrompt() throws {
    for name in [KeyName.device, .session, .biometric] { _ = host.load(name) }
    let asked = try host.keys.takeOutbox(prompt: "Unlock").elements
    expect(asked.map { $0.string("prompt") }, equals: [nil, nil, "Unlock"])
    expect(asked.map { $0.string("protection") }, equals: ["device", "device", "biometric"])
  }

  @Test func twoHandlesUseOtherNumbers() throws {
    let other = try AskedHost()
    _ = host.load(.device)
    _ = other.load(.device)
    let id = try #require(try host.keys.takeOutbox(prompt: .null).elements.first?.int("id"))
    _ = try other.asked()
    expect(host.keys.finds(id))
    expect(!other.keys.finds(id))
  }
}
