import Base
import Store
import Vault

/// Erasures of the session's keys that the key store has not confirmed. Every call asks it again. The file
/// says which, for every process.
final class OwedKeyErasures {
  private let core: Core
  /// The key store still has to erase a key, as far as this process knows.
  private(set) var isOwing = false
  /// What the key store has refused, also if the file has not taken it, as the bits of
  /// `MetaTable.Name.owedKeyErasures`.
  private var refused: Int64 = 0
  /// The row's `lastingWrap` when the key store refused. If it is another one later, the keys were replaced, and this
  /// refusal is void.
  private var refusedWrap: [UInt8] = []
  /// The file was not asked yet, or another process may have written it.
  private var mustLook = true

  init(_ core: Core) { self.core = core }

  private var store: CheckedKeyStore { core.keyRing.store }

  /// Ask the key store to erase a key, and note whether it still owes that. Every call asks again.
  func erase(_ name: KeyName) throws(Failure) {
    do throws(KeyRefusal) { try store.erase(name) } catch {
      return try note(name, isOwed: true)
    }
    try note(name, isOwed: false)
  }

  /// The key is to be erased once the transaction is committed. If that fails, nothing is owed.
  func owe(_ name: KeyName) throws(Failure) {
    isOwing = true
    let stored = try stored()
    try write(stored | OwedKeyErasures.bit(name), over: stored)
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
      for name in [KeyName.session, .biometric] where bits & OwedKeyErasures.bit(name) != 0 {
        try erase(name)
      }
    }
  }

  private func owed() throws(Failure) -> Int64 {
    if refused != 0, try core.sessionTable.read().lastingWrap != refusedWrap { refused = 0 }
    return try stored() | refused
  }

  private func stored() throws(Failure) -> Int64 { (try core.meta.int(.owedKeyErasures) ?? 0) & 3 }

  private func write(_ bits: Int64, over stored: Int64) throws(Failure) {
    if bits != stored { try core.meta.set(.owedKeyErasures, .int(bits)) }
  }

  private static func bit(_ name: KeyName) -> Int64 { name == .biometric ? 1 : 2 }

  func note(_ name: KeyName, isOwed: Bool) throws(Failure) {
    let bit = OwedKeyErasures.bit(name)
    let stored = try stored()
    var noted = stored & ~bit
    refused &= ~bit
    if isOwed {
      noted |= bit
      refused |= bit
      refusedWrap = try core.sessionTable.read().lastingWrap
    }
    isOwing = noted | refused != 0
    try write(noted, over: stored)
  }
}
