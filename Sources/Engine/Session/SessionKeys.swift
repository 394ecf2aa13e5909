import Base
import Policy
import Store
import Vault

/// The keys of the session, and the order in which they come and go.
///
/// `vault` is random and seals the session's values. The row holds it wrapped by `biometric` as long as
/// the session lasts, and by `session` while it is unlocked. `session` and `vault` are new with every
/// sign-in and unlock, and every lock erases `session` from the key store. So no copy of the files that
/// was ever made opens after a lock: the key of its wrap is gone.
///
/// Every change happens under the file's write lock, so that no process unlocks while another one locks.
/// What a crash between two steps leaves:
///
/// - Sign-in and unlock: save `session`, save `biometric` (sign-in), write the row. A crash leaves a
///   row whose wraps have no key: locked, or after a sign-in over another session saved `biometric`, to
///   be signed in again. After a failure the open session is wrapped anew (`keepUsable`).
/// - Lock: drop the vault from memory, erase `session`, write the row. A crash leaves a wrap without
///   its key: locked.
/// - End and logout: clear the row and owe the erasures, in one commit; erase `biometric` and `session`.
///   A crash leaves the session as it was, or none and erasures that the next call makes.
///
/// A key store that does not confirm an erasure owes it. The row is written all the same, and every later
/// call asks the store again.
final class SessionKeys {
  /// What a row's wrap by `session` leads to.
  enum Opening {
    case open(Key)
    /// There is no wrap, or no key for it.
    case locked
    /// The key store gave no answer.
    case refused(KeyRefusal)
  }

  /// A new vault and its wraps.
  struct Fresh {
    let owner: [UInt8]
    let vault: Key
    let wrapSession: [UInt8]
    let wrapBiometric: [UInt8]?
  }

  /// The open vault, and the wrap that it came from.
  private struct Held {
    let owner: [UInt8]
    var wrap: [UInt8]
    let vault: Key
  }

  private let core: Core
  private var held: Held?
  /// A sign-in that has not succeeded began to replace the keys in the key store. Holds the new
  /// `biometric`, if that was saved.
  private var replacement: (Key?)?
  /// The wrap whose key the store was asked for.
  private var loading: [UInt8]?
  /// Another handle has changed something since the key store was asked for the held vault's key.
  private var isDoubted = false
  /// The vault was dropped because the key store did not answer.
  private var isUnanswered = false
  /// A wrap for which the key store has no key.
  private var lockedWrap: [UInt8]?
  /// `session` is erased, and the vault is only in this process (`lock_on_background` `at_once`).
  private(set) var isOnlyHeld = false
  /// The key store still has to erase a key, as far as this process knows.
  private(set) var isOwing = false {
    didSet { if isOwing != oldValue { core.revision.advance() } }
  }
  /// Owed erasures, as the bits of `MetaTable.Name.needsErase`, that the file could not be told.
  private var unwritten: Int64 = 0
  /// The file was not asked yet, or another process may have written it.
  private var mustLook = true

  init(_ core: Core) { self.core = core }

  private var store: any CheckedKeys { core.keyRing.store }

  /// The context in which a value of the session row is sealed.
  static func context(_ column: StaticCString, _ owner: [UInt8]) -> SealContext {
    SealContext(table: "session", owner: owner, column: column)
  }

  // MARK: Opening

  /// The vault of a row. Loads `session` from the key store once for each wrap.
  func open(_ row: SessionRow) throws(Failure) -> Opening {
    guard let owner = row.owner, let wrap = row.wrapSession, wrap != lockedWrap else {
      forgetVault()
      isUnanswered = false
      return .locked
    }
    if let held, held.wrap == wrap { return .open(held.vault) }
    forgetVault()
    // The key of an earlier wrap does not prove that this one is locked.
    if loading != wrap { store.distrust(.session) }
    loading = wrap
    let opening = try unwrap(wrap, owner)
    switch opening {
    case .open(let vault): held = Held(owner: owner, wrap: wrap, vault: vault)
    case .locked: lockedWrap = wrap
    case .refused: return opening
    }
    isUnanswered = false
    return opening
  }

  /// Another handle has changed something: it may have locked, and older files may be back in place
  /// before this handle looks. So the key store is asked whether the key of the held vault is still there.
  func doubtVault() {
    isDoubted = true
    if held != nil { store.distrust(.session) }
  }

  /// Ask the key store, if there is a doubt, and drop the vault if its key is gone or there is no answer;
  /// returns whether it is still held, or was not. Whatever the row says, it opens nothing before this.
  func confirm() throws(Failure) -> Bool {
    // In the background, and after a sign-in that failed, the key store need not have the key.
    guard isDoubted, let held, !isOnlyHeld, !isInDoubt else { return true }
    let answer = try unwrap(held.wrap, held.owner)
    if case .open = answer {
      isDoubted = false
      return true
    }
    // Without an answer `open` asks again.
    if case .locked = answer { lockedWrap = held.wrap } else { isUnanswered = true }
    isDoubted = false
    forgetVault()
    return false
  }

  /// What the key store's `session` makes of a wrap.
  private func unwrap(_ wrap: [UInt8], _ owner: [UInt8]) throws(Failure) -> Opening {
    let session: Key
    do throws(KeyRefusal) { session = try store.load(.session) } catch {
      return error.isGone ? .locked : .refused(error)
    }
    let vault = try session.unwrap(wrap, SessionKeys.context("wrap_session", owner))
    return vault.map { .open($0) } ?? .locked
  }

  /// Whether a row is known not to open.
  func isLocked(_ row: SessionRow) -> Bool {
    row.wrapSession == nil || row.wrapSession == lockedWrap
  }

  /// Drop the vault from memory.
  func forgetVault() {
    held = nil
    isOnlyHeld = false
    replacement = nil
  }

  // MARK: Making

  /// A new vault under a new `session`. Within a transaction, whose row then gets the wraps.
  func renew(_ owner: [UInt8], biometric: Key?) throws(Failure) -> Fresh {
    let vault = try Key.random()
    return Fresh(
      owner: owner, vault: vault, wrapSession: try wrapByNewKey(vault, owner),
      wrapBiometric: try wrap(vault, by: biometric, owner))
  }

  /// The same for a sign-in, under a new `biometric`, too. `session` comes first: if it is not saved, the
  /// biometric key still opens the session that is to be replaced.
  func replace(_ owner: [UInt8]) throws(Failure) -> Fresh {
    let vault = try Key.random()
    replacement = .some(nil)
    let wrapSession = try wrapByNewKey(vault, owner)
    let biometric = try makeBiometric()
    replacement = .some(biometric)
    return Fresh(
      owner: owner, vault: vault, wrapSession: wrapSession,
      wrapBiometric: try wrap(vault, by: biometric, owner))
  }

  /// The row has the wraps of a new vault. A host that is asked has just given its key back once; the
  /// others are asked again.
  func stored(_ fresh: Fresh) {
    if core.keyRing.requested != nil {
      held = Held(owner: fresh.owner, wrap: fresh.wrapSession, vault: fresh.vault)
    }
  }

  /// The sign-in is stored.
  func replaced() { replacement = nil }

  private func wrap(
    _ vault: Key, by biometric: Key?, _ owner: [UInt8]
  ) throws(Failure) -> [UInt8]? {
    try biometric.map { (key) throws(Failure) in
      try key.wrap(vault, SessionKeys.context("wrap_biometric", owner))
    }
  }

  /// Whether a sign-in has failed and may have taken the keys of the open session with it.
  var isInDoubt: Bool { replacement != nil }

  /// Let the open session survive a sign-in that failed: wrap its vault by the keys that the key store
  /// has now. Within a transaction, whose row gets the wraps of `row`. Returns false when there is
  /// nothing to keep. `settled` follows the commit.
  func keepUsable(_ row: SessionRow) throws(Failure) -> Bool {
    guard let replacement, let held, let owner = row.owner, held.wrap == row.wrapSession else {
      return false
    }
    if let biometric = try newBiometric(replacement), row.wrapBiometric != nil {
      row.wrapBiometric = try wrap(held.vault, by: biometric, owner)
    }
    // In the background the vault stays in this process.
    if !isOnlyHeld, try !isSaved(held.wrap, owner) {
      row.wrapSession = try wrapByNewKey(held.vault, owner)
    }
    return true
  }

  /// The row has this wrap of the open session.
  func settled(_ wrap: [UInt8]?) {
    if let wrap { held?.wrap = wrap }
    replacement = nil
  }

  /// The new `biometric` that a sign-in saved, also one that was given up while the host saved it; nil:
  /// there is none.
  private func newBiometric(_ saved: Key?) throws(Failure) -> Key? {
    if let saved { return saved }
    guard let key = store.prepared(.biometric) else { return nil }
    do throws(KeyRefusal) { try save(key, .biometric) } catch {
      if error == .pending { throw Core.keyPending }
      return nil
    }
    return key
  }

  /// Whether the key store keeps the key of a wrap: it has it, and saves no other.
  private func isSaved(_ wrap: [UInt8], _ owner: [UInt8]) throws(Failure) -> Bool {
    if store.prepared(.session) != nil { return false }
    switch try unwrap(wrap, owner) {
    case .open: return true
    case .refused(.pending): throw Core.keyPending
    case .refused, .locked: return false
    }
  }

  private func wrapByNewKey(_ vault: Key, _ owner: [UInt8]) throws(Failure) -> [UInt8] {
    let session = try core.keyRing.newKey(.session)
    do throws(KeyRefusal) { try save(session, .session) } catch {
      switch error {
      case .pending: throw Core.keyPending
      case .locked: throw Failure(.keyStoreLocked, "the device was not unlocked yet")
      default: throw Failure(.keyStoreFailed, "the key store did not save the session key")
      }
    }
    try note(.session, isOwed: false)
    return try session.wrap(vault, SessionKeys.context("wrap_session", owner))
  }

  private func save(_ key: Key, _ name: KeyName) throws(KeyRefusal) {
    try store.save(key, name, beside: core.keyRing.keys?.device)
  }

  /// Seal the session's values with another vault. A value that does not open stays as it is, so that
  /// the session reads as corrupt. A row without a cache key gets one.
  func reseal(_ row: SessionRow, from old: Key, to new: Key) throws(Failure) {
    guard let owner = row.owner else { return }
    func moved(_ value: [UInt8]?, _ column: StaticCString) throws(Failure) -> [UInt8]? {
      let context = SessionKeys.context(column, owner)
      guard let value, let plain = try old.open(value, context) else { return value }
      defer { withExtendedLifetime(plain) {} }
      return try new.seal(plain.bytes, context)
    }
    row.tokens = try moved(row.tokens, "tokens")
    row.choice = try moved(row.choice, "choice")
    row.memberships = try moved(row.memberships, "memberships")
    row.cacheKey =
      row.cacheKey == nil
      ? try newCacheKey(under: new, owner) : try moved(row.cacheKey, "cache_key")
  }

  func newCacheKey(under vault: Key, _ owner: [UInt8]) throws(Failure) -> [UInt8] {
    try vault.wrap(try Key.random(), SessionKeys.context("cache_key", owner))
  }

  /// The vault of a row that version 0.1 wrote, where `device` wraps it.
  func legacyVault(of row: SessionRow) throws(Failure) -> Key? {
    guard row.cacheKey == nil, let owner = row.owner, let wrap = row.wrapSession,
      let keys = core.keyRing.keys
    else { return nil }
    return try keys.device.unwrap(wrap, SessionKeys.context("wrap_device", owner))
  }

  /// Make and save a new `biometric`; nil if the device has no biometrics or the policy uses none.
  private func makeBiometric() throws(Failure) -> Key? {
    guard core.configuration.limits.biometric != .off else { return nil }
    let key = try core.keyRing.newKey(.biometric)
    do throws(KeyRefusal) { try save(key, .biometric) } catch {
      switch error {
      case .pending: throw Core.keyPending
      case .notEnrolled, .unavailable: return nil
      case .locked: throw Failure(.keyStoreLocked, "the device was not unlocked yet")
      default:
        throw Failure(.keyStoreFailed, "the key store did not save the biometric key")
      }
    }
    try note(.biometric, isOwed: false)
    return key
  }

  // MARK: The background

  /// Erase `session` and keep the vault in this process only. The row's wrap stays: it names the vault.
  func withdraw() throws(Failure) {
    guard held != nil || isUnanswered else { return }
    isOnlyHeld = held != nil
    try core.database.transaction { () throws(Failure) in try erase(.session) }
  }

  /// The way back from `withdraw`: the wrap by a new `session`, for the row to store; nil when the row
  /// has another vault meanwhile.
  func wrapAgain(_ row: SessionRow) throws(Failure) -> [UInt8]? {
    guard isOnlyHeld, let held, let owner = row.owner, held.wrap == row.wrapSession else {
      return nil
    }
    return try wrapByNewKey(held.vault, owner)
  }

  /// The row has the wrap of `wrapAgain`.
  func returned(_ wrap: [UInt8]) {
    guard held != nil else { return }
    held?.wrap = wrap
    isOnlyHeld = false
  }

  // MARK: Erasing

  /// Ask the key store to erase a key, and note whether it still owes that.
  func erase(_ name: KeyName) throws(Failure) {
    if core.keyRing.requested != nil {
      do throws(Failure) { try core.requireKeyTurn() } catch {
        // Without the file, which does not take the lease either, the erasure is asked for all the same.
        if error.code == .keyStorePending { return try note(name, isOwed: true) }
      }
    }
    do throws(KeyRefusal) { try store.erase(name) } catch {
      if error != .pending {
        Log.line(.warning, "the key store did not erase a key; every call asks it again")
      }
      return try note(name, isOwed: true)
    }
    try note(name, isOwed: false)
  }

  /// The key is to be erased once the transaction is committed.
  func owe(_ name: KeyName) throws(Failure) { try note(name, isOwed: true) }

  /// Look into the file at the next call: another process may owe an erasure.
  func lookForOwed() { mustLook = true }

  /// Carry out the erasures that the key store did not confirm.
  func eraseOwed() throws(Failure) {
    guard mustLook || isOwing else { return }
    isOwing = try owed() != 0
    mustLook = false
    guard isOwing else { return }
    try core.database.transaction { () throws(Failure) in
      // Another process may have had the key erased, or replaced it with a new one, meanwhile.
      let bits = try owed()
      isOwing = bits != 0
      for name in [KeyName.session, .biometric] where bits & SessionKeys.bit(name) != 0 {
        try erase(name)
      }
    }
  }

  private func owed() throws(Failure) -> Int64 {
    (try core.meta.int(.needsErase) ?? 0) | unwritten
  }

  private static func bit(_ name: KeyName) -> Int64 { name == .biometric ? 1 : 2 }

  private func note(_ name: KeyName, isOwed: Bool) throws(Failure) {
    let bit = SessionKeys.bit(name)
    let stored = try core.meta.int(.needsErase) ?? 0
    if !isOwed { unwritten &= ~bit }
    let noted = isOwed ? stored | bit : stored & ~bit
    isOwing = noted | unwritten != 0
    guard noted != stored else { return }
    do throws(Failure) { try core.meta.set(.needsErase, .int(noted)) } catch {
      if isOwed { unwritten |= bit }
      throw error
    }
  }
}
