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
/// One request at a time is with the host for each name. A load that nobody needs any more is withdrawn:
/// the host is told, so that it can dismiss a prompt, and the next request follows its answer, which
/// means nothing. Otherwise two prompts would be on the screen.
final class RequestedKeys: CheckedKeys {
  /// What the host said.
  enum Answer {
    case done
    case key(Key)
    case refused(KeyRefusal)
  }

  /// A key that is being saved.
  struct Staged {
    enum Stage {
      case saving
      /// `device` is to be looked for once nothing else is asked about it.
      case beforeDevice
      case saved
      case refused(KeyTrouble)
    }

    let key: Key
    let device: NamedKey?
    var stage = Stage.saving
  }

  enum Erasure {
    case none, underWay, done
    case refused(KeyTrouble, sinceMS: Int64)
  }

  struct Entry {
    let name: KeyName
    var operation: KeyRequest?
    /// A load that the host carries out and that nobody needs any more.
    var withdrawn: KeyRequest?
    var answer: (Answer, sinceMS: Int64)?
    var staged: Staged?
    var refusedSave: (refusal: KeyRefusal, sinceMS: Int64)?
    var erasure = Erasure.none

    /// The operation that the host may be asked for now. Only an erasure does not wait for a withdrawn
    /// load: a lock must not depend on a prompt that stays on the screen.
    var queued: KeyRequest? {
      guard let operation, !operation.isWithHost else { return nil }
      return withdrawn == nil || operation.isErasure ? operation : nil
    }
  }

  /// How long the host may take. A prompt may wait for the user.
  static var timeoutMS: Int64 { 120_000 }
  /// How long a refusal is believed.
  static var pauseMS: Int64 { 2000 }

  private let clock: Clock
  let revision: Revision
  private var lastID: Int64
  private(set) var entries: [Entry] { didSet { revision.advance() } }
  /// The host has answered in this call, or was too late.
  private(set) var hasNews = false
  private var troubles = KeyTroubles()

  /// Each handle has random ids, so that no other handle takes its answers.
  init(_ clock: Clock, _ revision: Revision) {
    self.clock = clock
    self.revision = revision
    lastID = Int64(Random.word() >> 12)
    entries = [.device, .session, .biometric].map { Entry(name: $0) }
  }

  private func place(of name: KeyName) -> Int {
    if let at = entries.firstIndex(where: { $0.name == name }) { return at }
    entries.append(Entry(name: name))
    return entries.count - 1
  }

  var nowMS: Int64 { clock.now().monotonicMS }

  var trouble: KeyTrouble? { troubles.last }

  // MARK: Asking

  func load(_ name: KeyName) throws(KeyRefusal) -> Key {
    let at = place(of: name)
    switch entries[at].answer {
    case (.key(let key), _)?:
      troubles.succeeded(.load, name)
      return key
    case (.refused(let refusal), let sinceMS)? where nowMS - sinceMS < RequestedKeys.pauseMS:
      throw troubles.note(KeyTrouble(.load, name, refusal))
    default: break
    }
    if entries[at].operation == nil { start(.load, at) }
    throw .pending
  }

  func save(_ key: Key, _ name: KeyName, beside device: NamedKey?) throws(KeyRefusal) {
    let at = place(of: name)
    if let staged = entries[at].staged, staged.key === key {
      switch staged.stage {
      case .saved:
        troubles.succeeded(.save, name)
        return troubles.succeeded(.readBack, name)
      case .saving, .beforeDevice: throw .pending
      case .refused(let trouble):
        entries[at].staged = nil
        entries[at].refusedSave = (trouble.answer, nowMS)
        throw troubles.note(trouble)
      }
    }
    if let refusal = refusedSave(name) { throw refusal }
    withdrawLoad(at)
    if entries[at].operation == nil {
      entries[at].answer = nil
      entries[at].erasure = .none
      entries[at].staged = Staged(key: key, device: device)
      start(.save(key), at)
    }
    throw .pending
  }

  /// Why the host lately saved no key of this name. Each try makes another, so it needs a pause.
  func refusedSave(_ name: KeyName) -> KeyRefusal? {
    guard let (refusal, sinceMS) = entries[place(of: name)].refusedSave else { return nil }
    return nowMS - sinceMS < RequestedKeys.pauseMS ? refusal : nil
  }

  func erase(_ name: KeyName) throws(KeyRefusal) {
    let at = place(of: name)
    switch entries[at].erasure {
    case .done:
      entries[at].erasure = .none
      return troubles.succeeded(.erase, name)
    case .refused(let trouble, let sinceMS) where nowMS - sinceMS < RequestedKeys.pauseMS:
      throw troubles.note(trouble)
    case .underWay: throw .pending
    case .none, .refused: break
    }
    withdrawLoad(at)
    // A key that is being saved is erased afterwards, unless it is stored meanwhile.
    if entries[at].operation == nil, entries[at].staged == nil {
      entries[at].answer = nil
      entries[at].erasure = .underWay
      start(.erase, at)
    }
    throw .pending
  }

  func prepared(_ name: KeyName) -> Key? { entries[place(of: name)].staged?.key }

  func distrust(_ name: KeyName) {
    let at = place(of: name)
    withdrawLoad(at)
    entries[at].answer = nil
  }

  /// The key that is being saved is of no use any more. What the host has begun is followed by the
  /// erasure that the caller asks for, without a look at what was saved.
  func abandon(_ name: KeyName) {
    let at = place(of: name)
    entries[at].staged = nil
    if case .save? = entries[at].operation?.task, entries[at].operation?.isWithHost == false {
      entries[at].operation = nil
    }
    for place in entries.indices {
      if case .check(name)? = entries[place].operation?.task { withdraw(place) }
    }
  }

  /// Ask for everything again at the next use, however lately the host has refused it.
  func askAgain() {
    for at in entries.indices {
      if case (.refused, _)? = entries[at].answer { entries[at].answer = nil }
      if case .refused = entries[at].erasure { entries[at].erasure = .none }
      entries[at].refusedSave = nil
    }
  }

  /// Nobody needs the answer to this question any more.
  private func withdrawLoad(_ at: Int) {
    if case .load? = entries[at].operation?.task { withdraw(at) }
  }

  private func withdraw(_ at: Int) {
    guard let operation = entries[at].operation else { return }
    entries[at].operation = nil
    if operation.isWithHost {
      operation.notice = .queued
      entries[at].withdrawn = operation
    }
    goOnWithDevice()
  }

  private func start(_ task: KeyRequest.Task, _ at: Int) {
    lastID += 1
    entries[at].operation = KeyRequest(id: lastID, task: task)
  }

  // MARK: Answers

  /// Whether a request with this id is with the host.
  func finds(_ id: Int64) -> Bool { place(id) != nil || withdrawnPlace(id) != nil }

  /// Whether the request asks for a key.
  func loads(_ id: Int64) -> Bool {
    if let at = place(id) { return entries[at].operation?.loads ?? false }
    return withdrawnPlace(id) != nil
  }

  private func place(_ id: Int64) -> Int? {
    entries.firstIndex { $0.operation.map { $0.id == id && $0.isWithHost } ?? false }
  }

  private func withdrawnPlace(_ id: Int64) -> Int? {
    entries.firstIndex { $0.withdrawn?.id == id }
  }

  func take(_ answer: Answer, to id: Int64) {
    if let at = place(id) { return finish(at, answer) }
    if let at = withdrawnPlace(id) { entries[at].withdrawn = nil }
  }

  /// Requests without an answer count as failed.
  func expire() {
    let now = nowMS
    for at in entries.indices {
      if entries[at].withdrawn?.isLate(now) ?? false {
        entries[at].withdrawn = nil
        hasNews = true
      }
      if entries[at].operation?.isLate(now) ?? false { finish(at, .refused(.noAnswer)) }
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
      let name = entries[at].name
      switch answer {
      case .refused(let refusal):
        entries[at].staged?.stage = .refused(KeyTrouble(.save, name, refusal))
      default:
        if name.kind == .biometric {
          checkDevice(at)
        } else {
          start(.check(name), at)
        }
      }
    case .check(let name): finishCheck(name, at, answer)
    case .erase:
      switch answer {
      case .refused(let refusal) where refusal != .notFound:
        refuseErasure(at, refusal)
      default: start(.checkErased, at)
      }
    case .checkErased:
      switch answer {
      case .refused(.notFound), .refused(.invalidated): entries[at].erasure = .done
      case .refused(let refusal): refuseErasure(at, refusal)
      default: refuseErasure(at, .stillThere)
      }
    }
    goOnWithDevice()
  }

  private func refuseErasure(_ at: Int, _ refusal: KeyRefusal) {
    let trouble = KeyTrouble(.erase, entries[at].name, refusal)
    entries[at].erasure = .refused(trouble, sinceMS: nowMS)
  }

  /// A key was read back: the saved one, or `device` after another one was saved.
  private func finishCheck(_ name: KeyName, _ at: Int, _ answer: Answer) {
    let saved = place(of: name)
    guard let staged = entries[saved].staged else { return }
    let isOwn = at == saved
    var refusal = KeyRefusal.otherKey
    switch answer {
    case .key(let key):
      if let expected = isOwn ? staged.key : staged.device?.key, key.isEqual(to: expected) {
        if isOwn { return checkDevice(at) }
        entries[saved].staged?.stage = .saved
        return
      }
    case .refused(let answered): refusal = answered
    case .done: break
    }
    let trouble = KeyTrouble(.readBack, entries[at].name, refusal)
    entries[saved].staged?.stage = .refused(trouble)
    // A store that does not tell names apart has just lost `device`: give it back.
    if !isOwn, refusal.isGone || refusal == .otherKey, let device = staged.device,
      entries[at].operation == nil, entries[at].staged == nil
    {
      start(.save(device.key), at)
    }
  }

  private func checkDevice(_ at: Int) {
    let isNeeded = entries[at].staged?.device != nil
    entries[at].staged?.stage = isNeeded ? .beforeDevice : .saved
  }

  private func goOnWithDevice() {
    for at in entries.indices {
      guard case .beforeDevice? = entries[at].staged?.stage,
        let name = entries[at].staged?.device?.name
      else { continue }
      let device = place(of: name)
      guard entries[device].operation == nil else { continue }
      entries[at].staged?.stage = .saving
      start(.check(entries[at].name), device)
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
      entries[at].operation?.confirm()
      entries[at].withdrawn?.confirm()
      if entries[at].name.kind != .biometric, case (.key, _)? = entries[at].answer {
        entries[at].answer = nil
      }
      if case .done = entries[at].erasure { entries[at].erasure = .none }
      if !isSaving, entries[at].staged != nil { entries[at].staged = nil }
    }
  }

  /// Whether a key is being changed, or a new one waits for the step that made it.
  var isChanging: Bool {
    entries.contains {
      $0.staged != nil || $0.operation?.isChange ?? false
    }
  }

  /// Whether the host has something to do, or something to be told.
  func hasWork(_ now: Instant) -> Bool {
    entries.contains {
      $0.queued != nil || $0.withdrawn?.notice == .queued
        || $0.operation?.isLate(now.monotonicMS) ?? false
        || $0.withdrawn?.isLate(now.monotonicMS) ?? false
    }
  }

  /// When the first request counts as failed, by the monotonic clock.
  var deadlineMS: Int64? {
    var first: Int64?
    for entry in entries {
      for request in [entry.operation, entry.withdrawn] {
        if let deadlineMS = request?.deadlineMS { first = min(first ?? Int64.max, deadlineMS) }
      }
    }
    return first
  }
}
