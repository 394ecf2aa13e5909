import Base
import Policy
import Store
import Supabase
import TestSupport
import Testing
import Vault

import Glibc

import class Foundation.FileManager
import func Foundation.NSTemporaryDirectory
import class Foundation.ProcessInfo

@testable import Engine

/// A data folder for one test, removed after it.
final class TemporaryFolder {
  let path: String

  init() throws {
    path =
      NSTemporaryDirectory() + "holdfast-engine-" + ProcessInfo.processInfo.globallyUniqueString
    try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
  }

  deinit { try? FileManager.default.removeItem(atPath: path) }

  var names: [String] {
    ((try? FileManager.default.contentsOfDirectory(atPath: path)) ?? []).sorted()
  }

  func bytes(_ name: String) -> [UInt8]? {
    FileManager.default.contents(atPath: path + "/" + name).map { Array($0) }
  }

  /// Overwrite the beginning of a file, so that SQLite takes it for damaged.
  func damage(_ name: String) throws {
    var bytes = try #require(self.bytes(name))
    for index in 0..<min(100, bytes.count) { bytes[index] = 0x5A }
    let file = try #require(fopen(path + "/" + name, "w"))
    fwrite(bytes, 1, bytes.count, file)
    fclose(file)
  }
}

/// A key store in memory that can refuse.
final class MemoryKeyStore: KeyStore {
  var keys: [KeyName: Key] = [:]
  /// The error of every call.
  var refusal: KeyRefusal?
  /// What happens while the store looks for a key.
  var onLoad: ((KeyName) -> Void)?
  private(set) var loads = 0

  func load(_ name: KeyName) throws(KeyRefusal) -> Key {
    loads += 1
    onLoad?(name)
    if let refusal { throw refusal }
    guard let key = keys[name] else { throw .notFound }
    return key
  }

  func save(_ key: Key, _ name: KeyName) throws(KeyRefusal) {
    if let refusal { throw refusal }
    keys[name] = key
  }

  func erase(_ name: KeyName) throws(KeyRefusal) {
    if let refusal { throw refusal }
    keys[name] = nil
  }
}

/// All parts of an engine over real files, with a manual clock.
@dynamicMemberLookup final class Rig {
  let folder: TemporaryFolder
  let keyStore: MemoryKeyStore
  let clock: Clock
  let parts: Parts
  let loop: HostLoop
  var core: Core { parts.core }
  var news: News { parts.news }
  var signInFlow: SignIn { parts.signIn }

  /// `policy` and `backend`: further members of these objects of the config; `config`: of the config
  /// itself. Another process on the same device shares `folder` and `keyStore`.
  init(
    policy: String = "", backend: String = "", config: String = "",
    folder shared: TemporaryFolder? = nil,
    keyStore sharedKeys: MemoryKeyStore? = nil, at start: Instant = Rig.start
  ) throws {
    try Vault.start()
    folder = try shared ?? TemporaryFolder()
    keyStore = sharedKeys ?? MemoryKeyStore()
    let configuration = try Configuration(
      try json(
        #"{"data_dir":"\#(folder.path)","clock":"manual","locale":"en","template":"volunteers","policy":{\#(policy)},"#
          + #""redirect_url":"app.example:/signed-in","#
          + #""backend":{"url":"https://x.supabase.co","api_key":"key"\#(backend)}\#(config)}"#))
    clock = Clock(.manual)
    clock.set(start)
    let opened = try DataFolder.openMain(in: folder.path, at: start)
    // These tests cut no power, so they need not wait for the disk.
    try opened.database.execute("PRAGMA synchronous=OFF")
    let core = Core(
      configuration, clock,
      KeyRing(keyStore, deadlineMS: configuration.limits.guardTimeoutMS, clock), opened.database)
    parts = Parts(core, hasRecovered: opened.replaced)
    loop = HostLoop(parts)
    try parts.recovery.findUnfinished()
  }

  subscript<Value>(dynamicMember path: KeyPath<Parts, Value>) -> Value { parts[keyPath: path] }

  // MARK: Time

  static var start: Instant {
    Instant(wallMS: 1_795_000_000_000, monotonicMS: 1_000_000, bootID: "boot")
  }

  var now: Instant { clock.now() }

  /// Move both clocks; `wallMS` moves the device's clock by another amount.
  func advance(_ milliseconds: Int64, wallMS: Int64? = nil) {
    clock.set(
      Instant(
        wallMS: now.wallMS + (wallMS ?? milliseconds),
        monotonicMS: now.monotonicMS + milliseconds, bootID: now.bootID))
  }

  // MARK: The session

  /// A rig whose user works in organisation `orgA`, confirmed by the server, with all events taken.
  static func atHome(
    policy: String = "", backend: String = "", folder: TemporaryFolder? = nil,
    keyStore: MemoryKeyStore? = nil
  ) throws -> Rig {
    let rig = try Rig(policy: policy, backend: backend, folder: folder, keyStore: keyStore)
    try rig.signIn()
    try rig.list(member(orgA), member(orgB))
    try expect(rig.sessions.choose(orgA, rig.session))
    _ = try rig.takeEvents()
    return rig
  }

  func signIn(_ user: UUID = alice, expiresInS: Int64 = 3600) throws {
    _ = try core.keyRing.state(for: core.database)
    let generation = try parts.sessions.row().generation
    let reply = try TokenReply.read(try json(tokenReply(user, expiresInS: expiresInS)))
    try expect(parts.sessionStart.adopt(reply, ifGeneration: generation))
    _ = try parts.sessions.reload(try parts.sessions.row())
  }

  /// The server proves the end of the session.
  func end(_ reason: EndReason) throws {
    try parts.sessions.end(.proved(reason, generation: try parts.sessions.row().generation))
  }

  /// The server lists these memberships.
  func list(_ rows: String...) throws {
    let answer = try response(200, "[" + rows.joined(separator: ",") + "]", total: rows.count)
    try parts.memberships.finish(MembershipRead(), answer, now)
  }

  var session: OpenSession { get throws { try #require(parts.sessions.session) } }

  // MARK: The queue

  @discardableResult
  func add(
    _ id: UUID, minutes: Int64 = 30, kind: StaticCString = "activity", org: UUID? = nil,
    dependsOn: [UUID] = []
  ) throws -> String? {
    let request: JSON = ["kind": JSON(kind), "id": .uuid(id)]
    request.set(
      "payload",
      kind.string == "activity"
        ? ["type": "visit", "minutes": .int(minutes)] : ["name": "Kari"])
    if let org { request.set("org_id", .uuid(org)) }
    if !dependsOn.isEmpty { request.set("depends_on", .array(dependsOn.map { .uuid($0) })) }
    return try parts.intake.add(request).string("state")
  }

  /// Send the next batch, and return it.
  func upload() throws -> UploadBatch {
    try parts.uploader.send(try session, now)
    let request = try #require(parts.inFlight.requests.last)
    guard case .upload(let batch) = request.content else {
      throw Failure.defect("no upload was sent")
    }
    parts.inFlight.finish(request.id)
    return batch
  }

  /// An upload with the batch key of the items that wait to be sent.
  func sample() throws -> UploadBatch {
    let batch = try upload()
    try parts.settlement.release(batch)
    return batch
  }

  /// Queue a change of the user's stored row; nil: its deletion. `version`: the one that the user saw.
  func correct(
    _ number: Int, _ change: JSON?, of base: JSON, version: String? = "v1"
  ) throws {
    let (session, keys) = (try session, try core.keys())
    let item = QueueItem(
      id: id(number), kind: "activity", org: orgA, payload: change ?? [:], dependsOn: [],
      occurredAtMS: nil, hasUser: true)
    item.stored = StoredBase(row: base, version: version, isDeleted: change == nil)
    let row = QueueRow()
    row.item = keys.itemTag(item.id, session.owner)
    row.owner = session.owner
    row.org = keys.orgTag(orgA)
    row.createdMS = now.wallMS
    try row.put(item, core.configuration.backend.kind("activity"), session.queueKey, keys)
    row.sequence = try core.queue.insert(row)
  }

  /// The queued item; nil: it is not queued.
  func item(_ id: UUID) throws -> QueueItem? { try row(id)?.read(try session.queueKey) }

  /// Another version of the app, with this backend, on the same files.
  func next(backend: String) throws -> Rig {
    let next = try Rig(backend: backend, folder: folder, keyStore: keyStore)
    _ = try next.decider.assess(.navigate)
    return next
  }

  /// The seal of the item's row does not open.
  func damage(_ id: UUID) throws {
    let row = try #require(try row(id))
    row.body = [1, 2, 3]
    try core.queue.write(row)
  }

  /// The item has failed alone so often.
  func fail(_ id: UUID, alone count: Int64) throws {
    let row = try #require(try row(id))
    try core.queue.transition(row.sequence, .pending, history: .alone(failures: count))
  }

  func row(_ id: UUID, of user: UUID = alice) throws -> QueueRow? {
    let keys = try core.keys()
    return try core.queue.find(keys.itemTag(id, keys.userTag(user)))
  }

  /// An item in words: its state, what it was charged with, and its retry group.
  func state(_ id: UUID, of user: UUID = alice) throws -> String {
    guard let row = try row(id, of: user) else { return "erased" }
    var words: [String]
    switch row.state {
    case .pending: words = ["pending"]
    case .sending: words = ["sending"]
    case .waiting(.dependency): words = ["waits for parent"]
    case .waiting(.time): words = ["waits for time"]
    case .waiting(.server): words = ["waits for the server's time"]
    case .waiting(.organisation): words = ["waits for organisation"]
    case .waiting(.kind): words = ["waits for kind"]
    case .waiting(.blocked): words = ["waits, blocked"]
    case .parked:
      let key = try core.keys().queues.derived(for: row.owner)
      words = ["parked", try ParkReason.read(row, key)?.string("code") ?? "without a reason"]
    }
    if row.attempts > 0 { words.append("attempts \(row.attempts)") }
    if row.history.isRefused { words.append("refused") }
    if row.history.isAlone { words.append("alone \(row.history.failures)") }
    if row.retryGroup > .noGroup { words.append("group \(row.retryGroup.number)") }
    return words.joined(separator: ", ")
  }

  // MARK: Events

  /// All that `next` would give, each with a type. A notice has its own; the state of sync after a run's end
  /// is `sync_completed`.
  func takeEvents() throws -> [JSON] {
    var taken: [JSON] = []
    if let screen = news.takeScreen() { taken.append(["type": "screen", "screen": screen]) }
    while let answer = news.takeAnswer() {
      answer.set("type", answer["to"] ?? .null)
      taken.append(answer)
    }
    while let notice = try parts.notices.take() { taken.append(notice) }
    if news.hasSync {
      let state = try parts.sync.describe(news.run)
      news.dropSync()
      state.set("type", state["message"]?.isNull == false ? "sync_completed" : "sync")
      taken.append(state)
    }
    return taken
  }

  /// The types of all events that were not taken yet.
  func takeEventTypes() throws -> [String] {
    try takeEvents().map { $0.string("type") ?? "" }
  }

  // MARK: What is on the disk and in memory

  /// Everything that a function that only reads must leave alone. (The WAL index is left out: SQLite
  /// notes its readers there.)
  struct Snapshot: Equatable {
    var memory: String
    var version: FileVersion?
    var files: [String: [UInt8]]
    var keyLoads: Int
  }

  func snapshot() -> Snapshot {
    var files: [String: [UInt8]] = [:]
    for name in folder.names where !name.hasSuffix("-shm") { files[name] = folder.bytes(name) }
    return Snapshot(
      memory: memory, version: core.database.version, files: files, keyLoads: keyStore.loads)
  }

  /// The parts that a decision or a job depends on, as text.
  private var memory: String {
    var text = ""
    dump(parts.reachability, to: &text)
    dump(parts.hostView, to: &text)
    dump(parts.news, to: &text)
    dump(parts.inFlight, to: &text)
    dump(parts.pendingSignIn, to: &text)
    dump(parts.uploads, to: &text)
    dump(parts.pulls, to: &text)
    dump(parts.live, to: &text)
    dump(parts.recoveryState, to: &text)
    let (tokens, check) = (parts.tokens, parts.check)
    dump([tokens.needsValidation, tokens.isRefused, check.isNeeded, check.hasFailed], to: &text)
    dump([check.sinceMS, parts.sessions.judgedGeneration], to: &text)
    return text
  }
}

extension News {
  func takeScreen() -> JSON? {
    defer { dropScreen() }
    return screen
  }

  func takeAnswer() -> JSON? {
    guard let answer else { return nil }
    dropAnswer()
    return answer
  }
}

extension Notices {
  func take() throws -> JSON? {
    guard let (number, notice) = try next() else { return nil }
    give(number)
    return notice
  }
}

extension InFlight {
  func take(_ now: Instant) -> JSON? {
    guard let request = next(now) else { return nil }
    defer { give(request) }
    return request.outgoing
  }

  /// Take all requests that were made; returns the last one.
  func last(_ now: Instant) -> JSON? {
    var last: JSON?
    while let request = take(now) { last = request }
    return last
  }
}

extension JSON: Equatable {}

/// The member `queue` of the backend: activities that are kept, changed and taken back, with further members.
func corrected(
  _ members: String = #","own":{},"change":{},"delete":"deleted_at""#
) -> String {
  #","queue":{"activity":{"table":"activities","columns":["user_id","type","minutes"]\#(members)}}"#
}

let byFunction = corrected(#","own":{},"change":{"function":"change_items"},"delete":"deleted_at""#)

// MARK: Values

let alice = UUID(high: 0xA11C_E000_0000_4000, low: 0x8000_0000_0000_0001)
let bob = UUID(high: 0xB0B0_0000_0000_4000, low: 0x8000_0000_0000_0002)
let orgA = UUID(high: 0xAAAA_0000_0000_4000, low: 0x8000_0000_0000_0001)
let orgB = UUID(high: 0xBBBB_0000_0000_4000, low: 0x8000_0000_0000_0002)

/// An id for a number, in the order of the numbers.
func id(_ number: Int) -> UUID {
  UUID(high: 0x1D00_0000_0000_4000, low: 0x8000_0000_0000_0000 + UInt64(number))
}

func json(_ text: String) throws(Failure) -> JSON {
  var copy = text
  var result = Result<JSON, Failure>.failure(.defect("not read"))
  copy.withUTF8 { utf8 in
    do throws(Failure) {
      result = .success(try JSON.parse(UnsafeRawBufferPointer(utf8), .strict))
    } catch { result = .failure(error) }
  }
  return try result.get()
}

/// A response as the host passes it; status 0: none came.
func response(
  _ status: Int, _ body: String? = nil, retryAfter: String? = nil, total: Int? = nil
) throws(Failure) -> HTTPResponse {
  let fields: JSON = status == 0 ? ["error": "timeout"] : ["status": .int(status)]
  if let body, status != 0 { fields.set("body", .string(body)) }
  if let retryAfter { fields.set("headers", ["Retry-After": .string(retryAfter)]) }
  if let total { fields.set("headers", ["Content-Range": .string("*/\(total)")]) }
  return try HTTPResponse.read(
    try Fields(fields, known: ["status", "headers", "body", "error"]),
    nowMS: Rig.start.wallMS)
}

/// The body that names these ids.
func rows(_ ids: UUID...) -> String {
  "[" + ids.map { #"{"id":"\#($0.text)"}"# }.joined(separator: ",") + "]"
}

func member(
  _ org: UUID, role: String = "coordinator", status: String = "active",
  orgStatus: String = "active"
) -> String {
  #"{"org_id":"\#(org.text)","role":"\#(role)","status":"\#(status)","#
    + #""organizations":{"id":"\#(org.text)","name":"Org","status":"\#(orgStatus)"}}"#
}

func tokenReply(_ user: UUID, expiresInS: Int64 = 3600) -> String {
  let claims = #"{"sub":"\#(user.text)","exp":1999999999}"#
  let access = [#"{"alg":"HS256"}"#, claims].map { Digest.base64URL(Array($0.utf8)) }
    .joined(separator: ".")
  return #"{"access_token":"\#(access).c2ln","refresh_token":"refresh","#
    + #""expires_in":\#(expiresInS),"user":{"id":"\#(user.text)"}}"#
}

func contact(
  _ number: Int, name: String = "Kari", org: UUID = orgA, updatedAt: String, deleted: Bool = false
) -> String {
  #"{"id":"\#(id(number).text)","org_id":"\#(org.text)","name":"\#(name)","#
    + #""municipality":"Oslo","updated_at":"\#(updatedAt)","#
    + #""deleted_at":\#(deleted ? "\"\(updatedAt)\"" : "null")}"#
}

/// `2026-11-18T10:00:SS.000000+00:00`, near the rig's time.
func second(_ number: Int) -> String {
  "2026-11-18T10:00:\(number < 10 ? "0" : "")\(number).000000+00:00"
}

/// The code of the failure that `body` throws; nil when it succeeds.
func refusal<Value>(_ body: () throws -> Value) throws -> ErrorCode? {
  do {
    _ = try body()
    return nil
  } catch let failure as Failure { return failure.code }
}

/// The contacts of an organisation, as the template has them.
func contacts(_ org: UUID?) -> RowSource {
  // The configuration of every rig has these.
  guard let backend = try? Rig.backend() else { preconditionFailure("the template has contacts") }
  return .contacts(backend, org: org)
}

extension Rig {
  static func backend() throws -> Backend {
    try Configuration(
      try json(
        #"{"data_dir":"/tmp","template":"volunteers","redirect_url":"app.example:/signed-in","#
          + #""backend":{"url":"https://x.supabase.co","api_key":"key"}}"#)
    ).backend
  }
}

/// The pull of contacts, which most rigs have alone.
extension PullState {
  private var contacts: Rows? { rows.first { $0.kind == nil } }
  var needsContacts: Bool { contacts?.isNeeded ?? false }
  var current: RowPull? { contacts?.pull }

  func finishContacts(_ monotonicMS: Int64) {
    finish(RowPull(TestContacts.any, after: nil), monotonicMS)
  }
}

private enum TestContacts {
  static var any: RowSource { EngineTests.contacts(nil) }
}
