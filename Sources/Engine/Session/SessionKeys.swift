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
/// - Sign-in and unlock: save `session`, write the row. A crash leaves a row whose wrap has no key: locked. After a
///   failure the open session is wrapped anew (`keepUsable`).
/// - A sign-in's `biometric`: only once the row is written, save it and write its wrap (`enrol`), so that a sign-in
///   that fails leaves the key of the session from before. After a crash or a refusal biometrics open nothing until
///   the next sign-in.
/// - Lock and end: change the row and owe the erasures, in one commit; erase `session`, and at an end
///   `biometric`. A crash leaves the session as it was, or a locked one, or none, and erasures that the next
///   call of any handle makes. Memory drops the vault before a lock, and after an end.
///
/// A key store that does not confirm an erasure owes it (`OwedKeyErasures`). The row is written all the same.
final class SessionKeys {
  /// What a row's wrap by `session` leads to.
  enum Opening {
    case open(Key)
    /// There is no wrap, or no key for it, and the biometric key opens the session if anything does.
    case locked
    /// There is a wrap, the key store has no key for it, and nothing else opens the session. No proof that it
    /// is lost (`KeyRing`).
    case missing
    /// The key store gave no answer.
    case refused(KeyRefusal)
  }

  /// A new vault of a user, wrapped by a new `session`.
  struct Fresh {
    let owner: [UInt8]
    let vault: Key
    let wrapSession: [UInt8]
  }

  /// The open vault.
  private struct Held {
    let owner: [UInt8]
    /// The wrap that it came from.
    var wrap: [UInt8]
    let vault: Key
    /// Another handle has changed something since the key store was asked for its key.
    var isUnconfirmed = false
    /// The user has left this process, and the session goes on in it alone (`lock_on_background` `at_once`).
    var isOnlyHeld = false
    /// A sign-in that has not succeeded began to replace `session` in the key store.
    var isInDoubt = false
  }

  let core: Core
  let erasures: OwedKeyErasures
  private var held: Held?
  /// The vault was dropped because the key store did not answer.
  private var isUnanswered = false
  /// A wrap for which the key store had no key when it was last asked.
  private var lockedWrap: [UInt8]?

  init(_ core: Core) {
    self.core = core
    erasures = OwedKeyErasures(core)
  }

  private var store: CheckedKeyStore { core.keyRing.store }

  /// The context in which a value of the session row is sealed.
  static func context(_ column: StaticCString, _ owner: [UInt8]) -> SealContext {
    SealContext(table: "session", owner: owner, column: column)
  }

  // MARK: Opening

  /// The vault of a row. If biometrics can open it, too, the key store is asked for `session` once for each wrap, and
  /// again when somebody comes to the app (`askAgain`); otherwise at each call, until it opens.
  func open(_ row: SessionRow) throws(Failure) -> Opening {
    guard let owner = row.owner, let wrap = row.wrapSession, wrap != lockedWrap else {
      forgetVault()
      isUnanswered = false
      core.keyRing.endMiss(.session)
      return .locked
    }
    if let held, held.wrap == wrap { return .open(held.vault) }
    forgetVault()
    let opening = try unwrap(wrap, owner)
    switch opening {
    case .open(let vault):
      held = Held(owner: owner, wrap: wrap, vault: vault)
    case .locked where core.configuration.limits.canOpenByBiometrics(row): lockedWrap = wrap
    case .locked, .missing: return .missing
    case .refused:
      core.keyRing.endMiss(.session)
      return opening
    }
    isUnanswered = false
    core.keyRing.endMiss(.session)
    return opening
  }

  /// Ask the key store again for a key that it did not have.
  func askAgain() { lockedWrap = nil }

  /// Another handle has changed something: it may have locked, and older files may be back in place
  /// before this handle looks. So the key store is asked whether the key of the held vault is still there.
  func doubtVault() { held?.isUnconfirmed = true }

  /// Ask the key store, if there is a doubt, and drop the vault if its key is gone or there is no answer;
  /// returns whether it is still held, or was not. Whatever the row says, it opens nothing before this.
  func confirm() throws(Failure) -> Bool {
    // In the background, and after a sign-in that failed, the key store need not have the key: then the row
    // alone tells of a lock.
    guard let held, held.isUnconfirmed, !held.isOnlyHeld, !isInDoubt else { return true }
    let answer = try unwrap(held.wrap, held.owner)
    if case .open = answer {
      self.held?.isUnconfirmed = false
      return true
    }
    // `open` asks again.
    if case .refused = answer { isUnanswered = true }
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

  /// Whether the vault is in memory.
  var isHolding: Bool { held != nil }

  /// Drop the vault from memory.
  func forgetVault() { held = nil }

  /// Whether the session goes on in this process only.
  var isOnlyHeld: Bool { held?.isOnlyHeld ?? false }

  // MARK: Making

  /// A new vault under a new `session`. Within a transaction, whose row then gets the wrap.
  func renew(_ owner: [UInt8]) throws(Failure) -> Fresh {
    let vault = try Key.random()
    return Fresh(owner: owner, vault: vault, wrapSession: try wrapByNewKey(vault, owner))
  }

  /// The same for a sign-in over the session of `row`, whose `biometric` ends with it.
  func replace(_ owner: [UInt8], over row: SessionRow) throws(Failure) -> Fresh {
    try requireAnswers(row)
    held?.isInDoubt = true
    let fresh = try renew(owner)
    if row.wrapBiometric != nil { try erasures.owe(.biometric) }
    return fresh
  }

  /// Refuse a sign-in over a session while the key store does not answer: what it saves over then, nobody
  /// could bring back. A store that has lost `device` gets it again first, and not after `session` is replaced.
  private func requireAnswers(_ row: SessionRow) throws(Failure) {
    guard row.wrapSession != nil || row.wrapBiometric != nil else { return }
    do throws(KeyRefusal) {
      if let device = core.keyRing.keys?.device { try store.keep(device) }
      do throws(KeyRefusal) { _ = try store.load(.session) } catch  where error.isGone {}
    } catch {
      throw core.keyFailure(error)
    }
  }

  /// The sign-in is stored.
  func hold(_ fresh: Fresh) {
    held = Held(owner: fresh.owner, wrap: fresh.wrapSession, vault: fresh.vault)
    isUnanswered = false
    core.keyRing.endMiss(.session)
  }

  func wrap(_ vault: Key, by biometric: Key, _ owner: [UInt8]) throws(Failure) -> [UInt8] {
    try biometric.wrap(vault, SessionKeys.context("wrap_biometric", owner))
  }

  /// Whether a sign-in has failed and may have taken the key of the open session with it. In the background the vault
  /// stays in this process.
  var isInDoubt: Bool { held.map { $0.isInDoubt && !$0.isOnlyHeld } ?? false }

  /// The wrap of the open session for its row, by a key that the key store has: after a sign-in that failed, and on the
  /// way back from `withdraw`. Within a transaction. nil: the row has another vault meanwhile. `settled` follows the
  /// commit.
  func wrapAgain(_ row: SessionRow) throws(Failure) -> [UInt8]? {
    guard let held, let owner = row.owner, held.wrap == row.wrapSession else { return nil }
    let isErased = held.isOnlyHeld && core.configuration.limits.canOpenByBiometrics(row)
    if !isErased, try isSaved(held.wrap, owner) { return held.wrap }
    return try wrapByNewKey(held.vault, owner)
  }

  /// The row has this wrap of the open session.
  func settled(_ wrap: [UInt8]?) {
    if let wrap { held?.wrap = wrap }
    held?.isInDoubt = false
    held?.isOnlyHeld = false
  }

  /// Whether the key store has the key of a wrap.
  private func isSaved(_ wrap: [UInt8], _ owner: [UInt8]) throws(Failure) -> Bool {
    if case .open = try unwrap(wrap, owner) { return true }
    return false
  }

  private func wrapByNewKey(_ vault: Key, _ owner: [UInt8]) throws(Failure) -> [UInt8] {
    let session = try Key.random()
    do throws(KeyRefusal) { try save(session, .session) } catch { throw core.keyFailure(error) }
    try erasures.note(.session, isOwed: false)
    return try session.wrap(vault, SessionKeys.context("wrap_session", owner))
  }

  private func save(_ key: Key, _ name: KeyName) throws(KeyRefusal) {
    try store.save(key, name, beside: core.keyRing.keys?.device)
  }

  /// Seal the session's values with another vault. A value that does not open stays as it is, so that
  /// the session reads as corrupt. A row without a cache key, which was salvaged, gets one.
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

  /// Make and save a new `biometric`; returns its wrap of the vault. Within a transaction, whose row gets it. nil: the
  /// key store saves no such key. The sign-in stands without it, and a lock leads to the next one.
  func enrol(_ fresh: Fresh) throws(Failure) -> [UInt8]? {
    let key = try Key.random()
    guard try saveBiometric(key) else { return nil }
    try erasures.note(.biometric, isOwed: false)
    return try wrap(fresh.vault, by: key, fresh.owner)
  }

  /// Asks twice: one failure is not to cost the user the prompt.
  private func saveBiometric(_ key: Key) throws(Failure) -> Bool {
    for _ in 0..<2 {
      do throws(KeyRefusal) {
        try save(key, .biometric)
        return true
      } catch {
        switch error {
        case .notEnrolled, .unavailable: return false
        // Some stores save over no key that they have invalidated.
        case .invalidated: try erasures.erase(.biometric)
        default: break
        }
      }
    }
    return false
  }

  // MARK: The background

  /// Erase `session` where `biometric` opens the session again: from now on the vault is in this process only, if
  /// its user `isIn`. The row's wrap stays: it names the vault. Where nothing else opens the session, the key stays,
  /// and only a sign-in lets anybody in elsewhere (`Assessment`). Returns false if nothing goes on here.
  func withdraw(isIn: Bool) throws(Failure) -> Bool {
    guard held != nil || isUnanswered else { return true }
    try core.database.transaction { () throws(Failure) in
      let erases = core.configuration.limits.canOpenByBiometrics(try core.sessionTable.read())
      // A host may say twice that the app has left; the second time the key store has no key.
      if erases, !isOnlyHeld, let held, case .locked = try unwrap(held.wrap, held.owner) {
        forgetVault()
      }
      if isIn { held?.isOnlyHeld = true }
      if erases { try erasures.erase(.session) }
    }
    return isOnlyHeld
  }
}
