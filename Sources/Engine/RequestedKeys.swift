import Base
import Vault

/// The keys of a host that is asked in `poll` and answers with `key_complete`, for platforms whose
/// keychain is asynchronous.
///
/// Every step of the engine that needs a key is tried again when the host has answered: a question whose
/// answer is not there throws `pending`, is put into the outbox, and the step's transaction is rolled
/// back. An answer to `load` serves the call that brings it, so that it is never used for another
/// session. A key that is being saved is kept until the step that made it is done: the next try saves
/// the same key and goes on. A refusal is believed for a while, because asking again at once would keep
/// the host busy.
///
/// One operation at a time is with the host for each name.
final class RequestedKeys: CheckedKeys {
  /// What the host said.
  enum Answer {
    case done
    case key(Key)
    case refused(KeyRefusal)
  }

  private enum Task {
    case load
    case save(Key)
    case erase
    /// Whether the key that was saved under this name is there, or whether `device` still is.
    case check(KeyName)
    case checkErased
  }

  private final class Operation {
    enum Stage { case queued, taken, handedOut }

    let id: Int64
    let task: Task
    let deadlineMS: Int64
    var stage = Stage.queued

    init(id: Int64, task: Task, deadlineMS: Int64) {
      self.id = id
      self.task = task
      self.deadlineMS = deadlineMS
    }
  }

  /// A key that is being saved.
  private struct Staged {
    enum Stage {
      case saving
      /// `device` is to be looked for once nothing else is asked about it.
      case beforeDevice
      case saved
      case refused(KeyRefusal)
    }

    let key: Key
    let device: Key?
    var stage = Stage.saving
  }

  private enum Erasure {
    case none, underWay, done
    case refused(KeyRefusal, sinceMS: Int64)
  }

  private struct Entry {
    var operation: Operation?
    var answer: (Answer, sinceMS: Int64)?
    var staged: Staged?
    var erasure = Erasure.none
  }

  /// How long the host may take. A prompt may wait for the user.
  static var timeoutMS: Int64 { 120_000 }
  /// How long a refusal is believed.
  static var pauseMS: Int64 { 2000 }

  private let clock: Clock
  private let revision: Revision
  private var lastID: Int64
  private var entries: [Entry] { didSet { revision.advance() } }
  /// The host has answered in this call, or was too late.
  private(set) var hasNews = false

  /// Each handle has random ids, so that no other handle takes its answers.
  init(_ clock: Clock, _ revision: Revision) {
    self.clock = clock
    self.revision = revision
    lastID = Int64(Random.word() >> 12)
    entries = KeyName.all.map { _ in Entry() }
  }

  private var nowMS: Int64 { clock.now().monotonicMS }

  // MARK: Asking

  func load(_ name: KeyName) throws(KeyRefusal) -> Key {
    let at = name.place
    switch entries[at].answer {
    case (.key(let key), _)?: return key
    case (.refused(let refusal), let sinceMS)? where nowMS - sinceMS < RequestedKeys.pauseMS:
      throw refusal
    default: break
    }
    if entries[at].operation == nil { start(.load, at) }
    throw .pending
  }

  func save(_ key: Key, _ name: KeyName, beside device: Key?) throws(KeyRefusal) {
    let at = name.place
    if let staged = entries[at].staged, staged.key === key {
      switch staged.stage {
      case .saved: return
      case .saving, .beforeDevice: throw .pending
      case .refused(let refusal):
        entries[at].staged = nil
        throw refusal
      }
    }
    dropLoad(at)
    if entries[at].operation == nil {
      entries[at].answer = nil
      entries[at].erasure = .none
      entries[at].staged = Staged(key: key, device: name == .device ? nil : device)
      start(.save(key), at)
    }
    throw .pending
  }

  func erase(_ name: KeyName) throws(KeyRefusal) {
    let at = name.place
    switch entries[at].erasure {
    case .done:
      entries[at].erasure = .none
      return
    case .refused(let refusal, let sinceMS) where nowMS - sinceMS < RequestedKeys.pauseMS:
      throw refusal
    case .underWay: throw .pending
    case .none, .refused: break
    }
    dropLoad(at)
    // A key that is being saved is erased afterwards, unless it is stored meanwhile.
    if entries[at].operation == nil, entries[at].staged == nil {
      entries[at].answer = nil
      entries[at].erasure = .underWay
      start(.erase, at)
    }
    throw .pending
  }

  func prepared(_ name: KeyName) -> Key? { entries[name.place].staged?.key }

  func distrust(_ name: KeyName) {
    dropLoad(name.place)
    entries[name.place].answer = nil
  }

  /// Ask for everything again at the next use, however lately the host has refused it.
  func askAgain() {
    for at in entries.indices {
      if case (.refused, _)? = entries[at].answer { entries[at].answer = nil }
      if case .refused = entries[at].erasure { entries[at].erasure = .none }
    }
  }

  /// The answer to a question that is no longer of interest is not waited for.
  private func dropLoad(_ at: Int) {
    if case .load? = entries[at].operation?.task { entries[at].operation = nil }
  }

  private func start(_ task: Task, _ at: Int) {
    lastID += 1
    entries[at].operation = Operation(
      id: lastID, task: task, deadlineMS: nowMS + RequestedKeys.timeoutMS)
  }

  // MARK: Answers

  /// Whether an operation with this id waits for the host.
  func finds(_ id: Int64) -> Bool { place(id) != nil }

  /// Whether the operation asks for a key.
  func loads(_ id: Int64) -> Bool {
    guard let at = place(id) else { return false }
    switch entries[at].operation?.task {
    case .load, .check, .checkErased: return true
    default: return false
    }
  }

  private func place(_ id: Int64) -> Int? {
    entries.firstIndex { $0.operation.map { $0.id == id && $0.stage != .queued } ?? false }
  }

  func take(_ answer: Answer, to id: Int64) {
    if let at = place(id) { finish(at, answer) }
  }

  /// Operations without an answer count as failed.
  func expire() {
    let now = nowMS
    for at in entries.indices {
      if let operation = entries[at].operation, operation.deadlineMS <= now {
        finish(at, .refused(.failed))
      }
    }
  }

  private func finish(_ at: Int, _ answer: Answer) {
    guard let operation = entries[at].operation else { return }
    entries[at].operation = nil
    hasNews = true
    switch operation.task {
    case .load: entries[at].answer = (answer, nowMS)
    case .save(let key):
      guard entries[at].staged?.key === key else { break }
      switch answer {
      case .refused(let refusal): entries[at].staged?.stage = .refused(refusal)
      default:
        if at == KeyName.biometric.place {
          checkDevice(at)
        } else {
          start(.check(KeyName.all[at]), at)
        }
      }
    case .check(let name): finishCheck(name, at, answer)
    case .erase:
      switch answer {
      case .refused(let refusal) where refusal != .notFound:
        entries[at].erasure = .refused(refusal, sinceMS: nowMS)
      default: start(.checkErased, at)
      }
    case .checkErased:
      switch answer {
      case .refused(.notFound), .refused(.invalidated): entries[at].erasure = .done
      case .refused(let refusal): entries[at].erasure = .refused(refusal, sinceMS: nowMS)
      default: entries[at].erasure = .refused(.failed, sinceMS: nowMS)
      }
    }
    goOnWithDevice()
  }

  /// A key was read back: the saved one, or `device` after another one was saved.
  private func finishCheck(_ name: KeyName, _ at: Int, _ answer: Answer) {
    guard let staged = entries[name.place].staged else { return }
    let isOwn = at == name.place
    var found = Staged.Stage.refused(.failed)
    switch answer {
    case .key(let key):
      if let expected = isOwn ? staged.key : staged.device, key.isEqual(to: expected) {
        if isOwn { return checkDevice(at) }
        found = .saved
      }
    case .refused(let refusal) where !refusal.isGone: found = .refused(refusal)
    default: break
    }
    entries[name.place].staged?.stage = found
    // A store that does not tell names apart has just lost `device`: give it back.
    if !isOwn, case .refused(.failed) = found, let device = staged.device,
      entries[at].operation == nil, entries[at].staged == nil
    {
      start(.save(device), at)
    }
  }

  private func checkDevice(_ at: Int) {
    let isNeeded = entries[at].staged?.device != nil
    entries[at].staged?.stage = isNeeded ? .beforeDevice : .saved
  }

  private func goOnWithDevice() {
    let device = KeyName.device.place
    for at in entries.indices {
      guard case .beforeDevice? = entries[at].staged?.stage, entries[device].operation == nil else {
        continue
      }
      entries[at].staged?.stage = .saving
      start(.check(KeyName.all[at]), device)
    }
  }

  // MARK: Calls

  /// A new call begins. What was loaded served the last one; `biometric` serves until the unlock is
  /// done. A key that was saved and not used by then belongs to a step that was given up.
  func begin() {
    hasNews = false
    let isSaving = entries.contains {
      switch $0.staged?.stage {
      case .saving, .beforeDevice: true
      default: false
      }
    }
    for at in entries.indices {
      if entries[at].operation?.stage == .taken { entries[at].operation?.stage = .handedOut }
      if at != KeyName.biometric.place, case (.key, _)? = entries[at].answer {
        entries[at].answer = nil
      }
      if case .done = entries[at].erasure { entries[at].erasure = .none }
      if !isSaving, entries[at].staged != nil { entries[at].staged = nil }
    }
  }

  /// Whether a key is being changed, or a new one waits for the step that made it.
  var isChanging: Bool {
    entries.contains {
      if $0.staged != nil { return true }
      switch $0.operation?.task {
      case .save, .erase, .checkErased: return true
      default: return false
      }
    }
  }

  /// Whether the host has something to do, or something to be told.
  func hasWork(_ now: Instant) -> Bool {
    entries.contains {
      $0.operation.map { $0.stage == .queued || $0.deadlineMS <= now.monotonicMS } ?? false
    }
  }

  /// When the first operation counts as failed, by the monotonic clock.
  var deadlineMS: Int64? {
    entries.compactMap { $0.operation?.deadlineMS }.min()
  }

  // MARK: Handing out

  /// The operations that the host was not asked for yet. `prompt`: the text for the user.
  func takeOutbox(prompt: JSON) throws(Failure) -> JSON {
    var operations: [(Int, Operation)] = []
    for (at, entry) in entries.enumerated() {
      if let operation = entry.operation, operation.stage == .queued {
        operations.append((at, operation))
      }
    }
    operations.sort { $0.1.id < $1.1.id }
    let result = JSON.array([])
    for (at, operation) in operations {
      var (kind, value, shown): (StaticCString, JSON, JSON) = ("load", .null, .null)
      switch operation.task {
      case .load: if at == KeyName.biometric.place { shown = prompt }
      case .check, .checkErased: break
      case .save(let key): (kind, value) = ("save", try key.base64)
      case .erase: kind = "erase"
      }
      result.append([
        "id": .int(operation.id), "operation": JSON(kind),
        "name": .string(KeyName.all[at].rawValue),
        "protection": at == KeyName.biometric.place ? "biometric" : "device", "value": value,
        "prompt": shown, "timeout_ms": .int(RequestedKeys.timeoutMS),
      ])
    }
    for (_, operation) in operations { operation.stage = .taken }
    return result
  }

  /// The reply of this call was lost: keep its operations for the next poll.
  func restoreOutbox() {
    for at in entries.indices where entries[at].operation?.stage == .taken {
      entries[at].operation?.stage = .queued
    }
  }
}

extension KeyName {
  fileprivate static var all: [KeyName] { [.device, .session, .biometric] }

  fileprivate var place: Int {
    switch self {
    case .device: 0
    case .session: 1
    case .biometric: 2
    }
  }
}
