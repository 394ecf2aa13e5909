import Base
import Policy
import Store
import Vault

/// The outcome of the biometric prompt, as the host reports it. The raw values are the codes of the
/// C API.
enum PromptOutcome: String, CaseIterable {
  case success, failed, cancelled, lockout
  case lockoutPermanent = "lockout_permanent"
  case notEnrolled = "not_enrolled"
  case invalidated, unavailable

  var judged: Situation.Outcome {
    switch self {
    case .success: return .success
    case .failed: return .failed
    case .cancelled: return .cancelled
    case .lockout: return .lockout
    case .lockoutPermanent: return .lockoutPermanent
    case .notEnrolled: return .notEnrolled
    case .invalidated: return .invalidated
    case .unavailable: return .unavailable
    }
  }
}

/// The lock and the biometric key.
///
/// The vault key seals the session's values. The row holds it wrapped by the device key while the
/// session is unlocked, and wrapped by the biometric key for as long as the session lasts. Locking
/// erases the first wrap; only the key store, after a prompt, gives the key that opens the second.
/// Without a biometric wrap the lock is only a flag for the policy.
final class Lock {
  private let core: Core
  private let sessions: SessionStore

  init(_ core: Core, _ sessions: SessionStore) {
    self.core = core
    self.sessions = sessions
  }

  /// Lock the stored session, whatever its generation: a refresh by another process must not keep
  /// it open.
  func lock(byUser: Bool) throws(Failure) {
    try core.database.transaction { () throws(Failure) in
      let row = try sessions.row()
      guard row.owner != nil else { return }
      let isCryptographic =
        row.wrapBiometric != nil && core.configuration.limits.biometric != .off
      _ = try sessions.update(ifGeneration: row.generation) { (row) throws(Failure) in
        if isCryptographic { row.wrapDevice = nil }
        if byUser || !isCryptographic { row.locked = true }
      }
    }
    sessions.reset(.session)
  }

  /// Load the biometric key from the key store, and restore the device wrap with it.
  func unlock(_ row: SessionRow) throws(Failure) -> Situation.Outcome {
    guard let owner = row.owner, let wrap = row.wrapBiometric else { return .invalidated }
    let keys = try core.keys()
    let biometric: Key
    do throws(KeyRefusal) { biometric = try core.keyRing.store.load(.biometric) } catch {
      return Lock.outcome(of: error)
    }
    guard let vault = try biometric.unwrap(wrap, SessionStore.context("wrap_biometric", owner))
    else { return .withheld }
    let wrapped = try keys.device.wrap(vault, SessionStore.context("wrap_device", owner))
    let now = core.clock.now()
    let isStored = try sessions.update(ifGeneration: row.generation) { (row) throws(Failure) in
      row.wrapDevice = wrapped
      row.locked = false
      row.noteAuthentication(now)
      row.forgetBackground()
    }
    return isStored ? .success : .withheld
  }

  private static func outcome(of refusal: KeyRefusal) -> Situation.Outcome {
    switch refusal {
    case .notFound, .invalidated, .damaged: return .invalidated
    case .lockout: return .lockout
    case .lockoutPermanent: return .lockoutPermanent
    case .notEnrolled: return .notEnrolled
    case .unavailable: return .unavailable
    // The host reports success, but the key store gives no key: the session stays locked.
    case .locked, .cancelled, .failed: return .withheld
    }
  }

  /// Without the biometric key the session cannot be unlocked; remove both wraps. The next start
  /// shows the sign-in. The queue has its own key.
  func dropBiometricWrap(_ row: SessionRow) throws(Failure) {
    _ = try sessions.update(ifGeneration: row.generation) { (row) throws(Failure) in
      row.wrapDevice = nil
      row.wrapBiometric = nil
    }
    sessions.reset(.session)
  }

  // MARK: The biometric key

  /// Make and save a new key that needs the user's presence; nil if the device has no biometrics or
  /// the policy does not use them.
  func makeBiometricKey() throws(Failure) -> Key? {
    guard core.configuration.limits.biometric != .off else { return nil }
    let key = try Key.random()
    let refusal: KeyRefusal
    do throws(KeyRefusal) {
      try core.keyRing.store.save(key, .biometric)
      return key
    } catch {
      refusal = error
    }
    switch refusal {
    case .notEnrolled, .unavailable: return nil
    case .locked: throw Failure(.keyStoreLocked, "the device was not unlocked yet")
    default: throw Failure(.keyStoreFailed, "the key store did not save the biometric key")
    }
  }

  /// Ask the key store to erase the biometric key. The wraps are erased already, so a remaining key
  /// opens nothing; `poll` tries again.
  func eraseBiometricKey() throws(Failure) {
    var isErased = true
    do throws(KeyRefusal) { try core.keyRing.store.erase(.biometric) } catch { isErased = false }
    try core.meta.set(.needsErase, .int(isErased ? 0 : 1))
    if !isErased {
      Log.line(.warning, "the key store did not erase the biometric key; poll asks it again")
    }
  }

  /// Carry out an erasure that the key store did not confirm.
  func eraseBiometricKeyIfNeeded() throws(Failure) {
    if try core.meta.int(.needsErase) == 1 { try eraseBiometricKey() }
  }
}
