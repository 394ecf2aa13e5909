import Base
import Store
import Vault

/// Erasures of the session's keys that the key store has not confirmed. Every call asks it again.
///
/// The file says which, for every process.
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
  /// What the key store has refused and the file has not taken, as the bits of `MetaTable.Name.needsErase`.
  private var unwritten: Int64 = 0
  /// The file was not asked yet, or another process may have written it.
  private var mustLook = true

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
        if error.code == .keyStorePending { return try note(name, isOwed: true) }
      }
    }
    // Every call asks again.
    do throws(KeyRefusal) { try store.erase(name) } catch {
      try note(name, isOwed: true)
      if error != .pending { isRefused = true }
      return
    }
    try note(name, isOwed: false)
  }

  /// The key is to be erased once the transaction is committed. If that fails, nothing is owed.
  func owe(_ name: KeyName) throws(Failure) {
    core.keyRing.requested?.abandon(name)
    isOwing = true
    let stored = try stored()
    try write(stored | OwedErasures.bit(name), over: stored)
  }

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
      for name in [KeyName.session, .biometric] where bits & OwedErasures.bit(name) != 0 {
        try ask(name)
      }
    }
  }

  private func owed() throws(Failure) -> Int64 { try stored() | unwritten }

  private func stored() throws(Failure) -> Int64 { try core.meta.int(.needsErase) ?? 0 }

  private func write(_ bits: Int64, over stored: Int64) throws(Failure) {
    if bits != stored { try core.meta.set(.needsErase, .int(bits)) }
  }

  private static func bit(_ name: KeyName) -> Int64 { name == .biometric ? 1 : 2 }

  func note(_ name: KeyName, isOwed: Bool) throws(Failure) {
    let bit = OwedErasures.bit(name)
    if isOwed { unwritten |= bit } else { unwritten &= ~bit }
    let stored = try stored()
    let noted = isOwed ? stored | bit : stored & ~bit
    isOwing = noted | unwritten != 0
    try write(noted, over: stored)
  }

  /// A call is over: what the file has taken is known to every process, and another one may erase it.
  func noteWritten() {
    guard unwritten != 0, let stored = try? stored() else { return }
    unwritten &= ~stored
  }
}

extension SessionKeys {
  var isOwing: Bool { erasures.isOwing }

  func erase(_ name: KeyName) throws(Failure) { try erasures.erase(name) }
  func owe(_ name: KeyName) throws(Failure) { try erasures.owe(name) }
  func lookForOwed() { erasures.lookForOwed() }
  func noteWritten() { erasures.noteWritten() }
  func eraseOwed() throws(Failure) { try erasures.eraseOwed() }
}
