import Base
import Store
import Vault

/// Erasures of the session's keys that the key store has not confirmed. Every call asks it again.
///
/// The file says which, for later processes. Who puts older files in place takes that away, so this
/// process also remembers which `session` must go: it erases it as long as the store has that one, and
/// leaves the key of a later unlock alone.
///
/// The user is told when the store has refused, or has not answered for a while: a host that is asked in
/// `poll` erases a moment after the lock in the ordinary course.
final class OwedErasures {
  /// How long a host may take for an erasure before the user is told.
  private static var patienceMS: Int64 { 10_000 }

  private let core: Core
  /// The key store still has to erase a key, as far as this process knows.
  private(set) var isOwing = false {
    didSet {
      if isOwing == oldValue { return }
      core.revision.advance()
      owedSinceMS = isOwing ? core.clock.now().monotonicMS : nil
      if !isOwing { isRefused = false }
    }
  }
  private var owedSinceMS: Int64?
  /// The key store was asked since, and has refused.
  private var isRefused = false
  /// Owed erasures, as the bits of `MetaTable.Name.needsErase`, that the file could not be told.
  private var unwritten: Int64 = 0
  /// The file was not asked yet, or another process may have written it.
  private var mustLook = true

  /// Something that the `session` opens: so this one is told from another.
  struct Lock {
    let owner: [UInt8]
    let wrap: [UInt8]
  }

  /// What the `session` opens that must go.
  private var doomed: Lock?
  /// The host is asked for the `session`, and when it last answered that.
  private var isAsking = false
  private var lookedMS: Int64?
  /// The wrap of the vault that this process held last.
  var lastHeld: Lock?

  init(_ core: Core) { self.core = core }

  private var store: any CheckedKeys { core.keyRing.store }

  // MARK: Telling

  /// Whether the user is to know that a key is not erased.
  var isTrouble: Bool {
    isOwing && (isRefused || core.keyRing.requested == nil || patienceLeftMS <= 0)
  }

  /// How long until that has to be looked at again; nil: not by time alone.
  var dueInMS: Int64? { isOwing && patienceLeftMS > 0 ? patienceLeftMS : nil }

  private var patienceLeftMS: Int64 {
    guard let owedSinceMS else { return 0 }
    return owedSinceMS + OwedErasures.patienceMS - core.clock.now().monotonicMS
  }

  // MARK: Erasing

  /// Ask the key store to erase a key, and note whether it still owes that. What is being saved under
  /// the name is of no use any more.
  func erase(_ name: KeyName) throws(Failure) {
    core.keyRing.requested?.abandon(name)
    try ask(name)
  }

  private func ask(_ name: KeyName) throws(Failure) {
    if core.keyRing.requested != nil {
      do throws(Failure) { try core.requireKeyTurn() } catch {
        // Without the file, which does not take the lease either, the erasure is asked for all the same.
        if error.code == .keyStorePending { return try remain(name) }
      }
    }
    // Every call asks again.
    do throws(KeyRefusal) { try store.erase(name) } catch {
      try remain(name)
      if error != .pending { isRefused = true }
      return
    }
    try note(name, isOwed: false)
  }

  /// The key is not erased yet.
  private func remain(_ name: KeyName) throws(Failure) {
    if name == .session { try remember() }
    try note(name, isOwed: true)
  }

  /// The key is to be erased once the transaction is committed.
  func owe(_ name: KeyName) throws(Failure) {
    core.keyRing.requested?.abandon(name)
    try note(name, isOwed: true)
  }

  /// Look into the file at the next call: another process may owe an erasure.
  func lookForOwed() { mustLook = true }

  /// Carry out the erasures that the key store did not confirm.
  func eraseOwed() throws(Failure) {
    guard mustLook || isOwing else { return }
    isOwing = try owed() != 0 || doomed != nil
    mustLook = false
    guard isOwing else { return }
    try core.database.transaction { () throws(Failure) in
      // Another process may have had the key erased, or replaced it with a new one, meanwhile.
      var bits = try owed()
      if bits & OwedErasures.bit(.session) == 0, try isDoomedStored() {
        bits |= OwedErasures.bit(.session)
        // The row does not change: nothing else tells those whom the older files let in.
        core.notice.giveLostKeys()
      }
      isOwing = bits != 0 || doomed != nil
      for name in [KeyName.session, .biometric] where bits & OwedErasures.bit(name) != 0 {
        try ask(name)
      }
    }
  }

  /// Remember the `session` that the store has. A host that is asked need not answer for that.
  private func remember() throws(Failure) {
    guard core.keyRing.requested == nil else {
      doomed = doomed ?? lastHeld
      return
    }
    guard let key = try? store.load(.session) else {
      doomed = doomed ?? lastHeld
      return
    }
    let wrap = try key.wrap(try Key.random(), SessionKeys.context("wrap_session", []))
    doomed = Lock(owner: [], wrap: wrap)
  }

  /// Whether this `session` must go. Until it is gone, it opens nothing here.
  func isDoomed(_ session: Key) -> Bool {
    guard let doomed else { return false }
    let context = SessionKeys.context("wrap_session", doomed.owner)
    return (try? session.unwrap(doomed.wrap, context)) != nil
  }

  /// Whether the store has the key that must go. Another one, or none, ends the matter. A host that is
  /// asked is asked once, and after its answer not again at once.
  private func isDoomedStored() throws(Failure) -> Bool {
    guard doomed != nil else { return false }
    if core.keyRing.requested != nil {
      // Another handle changes keys now. The call goes on, and the next one asks again.
      do throws(Failure) { try core.requireKeyTurn() } catch {
        guard error.code == .keyStorePending else { throw error }
        return false
      }
      let now = core.clock.now().monotonicMS
      if !isAsking, let lookedMS, now - lookedMS < RequestedKeys.pauseMS { return false }
    }
    if !isAsking { store.distrust(.session) }
    isAsking = core.keyRing.requested != nil
    do throws(KeyRefusal) {
      let key = try store.load(.session)
      noteLook()
      if isDoomed(key) { return true }
      self.doomed = nil
      return false
    } catch {
      if error != .pending { noteLook() }
      if error.isGone { self.doomed = nil }
      return false
    }
  }

  private func noteLook() {
    isAsking = false
    lookedMS = core.clock.now().monotonicMS
  }

  private func owed() throws(Failure) -> Int64 {
    (try core.meta.int(.needsErase) ?? 0) | unwritten
  }

  private static func bit(_ name: KeyName) -> Int64 { name == .biometric ? 1 : 2 }

  func note(_ name: KeyName, isOwed: Bool) throws(Failure) {
    let bit = OwedErasures.bit(name)
    let stored = try core.meta.int(.needsErase) ?? 0
    if !isOwed {
      unwritten &= ~bit
      if name == .session { doomed = nil }
    }
    let noted = isOwed ? stored | bit : stored & ~bit
    isOwing = noted | unwritten != 0 || doomed != nil
    guard noted != stored else { return }
    do throws(Failure) { try core.meta.set(.needsErase, .int(noted)) } catch {
      if isOwed { unwritten |= bit }
      throw error
    }
  }
}

extension SessionKeys {
  var isOwing: Bool { erasures.isOwing }

  /// Take the session's key away from every handle.
  func revoke() throws(Failure) {
    core.notice.giveLostKeys()
    try erase(.session)
  }

  func erase(_ name: KeyName) throws(Failure) { try erasures.erase(name) }
  func owe(_ name: KeyName) throws(Failure) { try erasures.owe(name) }
  func lookForOwed() { erasures.lookForOwed() }
  func eraseOwed() throws(Failure) { try erasures.eraseOwed() }
}
