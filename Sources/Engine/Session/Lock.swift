import Base
import Policy
import Store
import Vault

/// Locks and unlocks the session. `SessionKeys` describes the keys and the order of the steps.
///
/// **How a lock erases.** One commit takes the wrap by `session` out of the row and owes the erasure of that key; then
/// the key store erases it, and memory has dropped the vault before. If the disk does not take the row, the key is
/// erased all the same: without it the wrap opens nothing. With `at_once` a move to the background erases the key first
/// and leaves the wrap (`SessionKeys.withdraw`): whoever comes back in this process still holds the vault. The policy
/// asks for no lock where no biometric key could open the session again, because that would end the session
/// (`LockPolicy.locked`); the user may. A lost biometric key takes its own wrap and key along. While another process holds
/// the file, only the user's lock erases.
struct Lock: Rules {
  let parts: Parts
  private var keys: SessionKeys { parts.sessionKeys }
  private var hostView: HostView { parts.hostView }

  enum Cause {
    /// Its user asks. It applies to every generation: another process may just have refreshed.
    case user
    /// The same, of the session with this wrap (`SessionRow.lastingWrap`): the file did not take it at first.
    case owed(wrap: [UInt8])
    /// The policy has judged the session of this generation.
    case policy(generation: Int64)
    /// `biometric` is lost, and nothing opens the session of this generation. The sign-in is shown. The
    /// queue has its own key.
    case lostKey(generation: Int64)

    fileprivate var isUser: Bool { if case .user = self { true } else { false } }
  }

  /// Lock the stored session.
  func lock(_ cause: Cause) throws(Failure) {
    sessions.reset(.session)
    do throws(Failure) {
      try core.database.transaction { () throws(Failure) in
        let row = try sessions.row()
        switch cause {
        case .user, .owed(row.lastingWrap), .policy(row.generation), .lostKey(row.generation):
          break
        default: return
        }
        try keys.erasures.owe(.session)
        // An older copy of the file, without a session, may have been put back.
        guard row.owner != nil else { return }
        _ = try sessions.update(ifGeneration: row.generation) { (row) throws(Failure) in
          row.wrapSession = nil
          switch cause {
          case .user, .owed: row.locked = true
          case .policy: break
          case .lostKey:
            try keys.erasures.owe(.biometric)
            row.wrapBiometric = nil
            // From now on it is the lost key that closes the session, and not the user.
            row.locked = false
          }
        }
        guard try core.sessionTable.readAnew().wrapSession == nil else {
          throw core.database.damage("the file does not take that the session is locked")
        }
      }
      hostView.owedLock = nil
      try keys.erasures.eraseOwed()
    } catch {
      // What another process has just committed may be an unlock: the call runs again on that.
      if core.reads.mustRunAgain { throw error }
      // The disk does not take the row. Without the key its wrap opens nothing. A file that is busy may get
      // another session, which only its user may lock. What is owed is erased already.
      if case .owed = cause { throw error }
      if error.code == .storageBusy, !cause.isUser { throw error }
      holdWithoutFile(owes: cause.isUser)
      throw error
    }
  }

  /// A lock when the file does not take it: without its key, the session's wrap in the file opens nothing. `owes`: the
  /// next call tries again, so that the other handles learn of it.
  func holdWithoutFile(owes: Bool) {
    sessions.reset(.session)
    do throws(Failure) { try keys.erasures.erase(.session) } catch {}
    guard owes, hostView.owedLock == nil else { return }
    do throws(Failure) { hostView.owedLock = try sessions.row().lastingWrap } catch {}
  }

  /// Make up for the user's lock that the file has not taken, unless somebody has signed in or unlocked since.
  func makeUp() throws(Failure) {
    if let wrap = hostView.owedLock { try lock(.owed(wrap: wrap)) }
  }

  /// Load the biometric key from the key store, and open the session under new keys with it.
  func unlock(_ row: SessionRow) throws(Failure) -> Situation.Outcome {
    guard let owner = row.owner, let wrap = row.wrapBiometric else { return .invalidated }
    let biometric: Key
    do throws(KeyRefusal) { biometric = try core.keyRing.store.load(.biometric) } catch {
      return outcome(of: error)
    }
    // Another key is no proof that the right one is lost. The host can offer the sign-in beside the prompt.
    guard let vault = try biometric.unwrap(wrap, SessionKeys.context("wrap_biometric", owner))
    else { return .withheld }
    let now = core.clock.now()
    let isStored = try core.database.transaction { () throws(Failure) in
      guard try sessions.row().generation == row.generation else { return false }
      let fresh = try keys.renew(owner)
      return try sessions.update(ifGeneration: row.generation) { (row) throws(Failure) in
        try keys.reseal(row, from: vault, to: fresh.vault)
        row.wrapSession = fresh.wrapSession
        row.wrapBiometric = try keys.wrap(fresh.vault, by: biometric, owner)
        row.locked = false
        row.noteAuthentication(now, isOnScreen: hostView.isOnScreen)
      }
    }
    return isStored ? .success : .withheld
  }

  private func outcome(of refusal: KeyRefusal) -> Situation.Outcome {
    if refusal.isGone { return .invalidated }
    switch refusal {
    case .cancelled: return .cancelled
    case .failed, .wrongLength: return .failed
    case .lockout: return .lockout
    case .lockoutPermanent: return .lockoutPermanent
    case .notEnrolled: return .notEnrolled
    case .unavailable: return .unavailable
    // The key store gives no key, and no reason that concerns the user: the session stays locked.
    default: return .withheld
    }
  }

  // MARK: The background

  /// The app has left the screen: a process that is killed there leaves a locked session. `isIn`: its user was in.
  func leave(isIn: Bool) throws(Failure) {
    guard core.configuration.limits.lockOnBackground == .atOnce else { return }
    if try !keys.withdraw(isIn: isIn) { sessions.reset(.mirror) }
  }

  /// The app is back, and no lock is due. The session is open in this process; a failure leaves it
  /// in memory only.
  func comeBack() {
    guard keys.isOnlyHeld else { return }
    do throws(Failure) { try sessions.wrapAgain() } catch {
      Log.warning("the session stays in memory only", error)
    }
  }
}
