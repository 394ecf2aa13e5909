import Base
import Policy
import Store
import Vault

/// How a session ends. Only here does a session end. (A sign-in stores another one over it: `SessionStart`. The
/// loss of the device key sets its file aside, and ends what the fresh one has, which is nothing: `Recovery.beginAnew`.
/// The loss of the biometric key closes a session that is not ended: `Lock.Cause.lostKey`.) A refusal with an unknown
/// code ends none, and neither does time: more than `offline_limit_s` without the server leads to the sign-in, and
/// clears nothing (`SessionPolicy`).
enum SessionEnd {
  /// The server has ended the session of this generation. The list of codes that prove it is closed.
  case proved(EndReason, generation: Int64)
  /// Its user has logged out.
  case loggedOut
  /// The row of this generation does not open with its vault.
  case unreadable(generation: Int64)
}

extension SessionStore {
  /// End the session. One commit clears the row, with all that its keys open, and owes the erasure of both keys; the
  /// key store erases them after it, because a commit that fails must not leave a session without its keys. The
  /// queue stays. `first`: what else belongs into that commit; it comes before, so that it sees the row.
  func end(_ end: SessionEnd, _ first: () throws(Failure) -> Void = {}) throws(Failure) {
    let isEnded = try core.database.transaction { () throws(Failure) in
      try first()
      let present = try row().generation
      var reason: EndReason?
      switch end {
      case .proved(let proof, present):
        reason = proof
        try notices.add("session_ended", reason: proof.rawValue, owner: nil)
      case .loggedOut, .unreadable(present): break
      // A session that was stored meanwhile is not touched.
      default: return false
      }
      try keys.erasures.owe(.session)
      try keys.erasures.owe(.biometric)
      return try update(ifGeneration: present) { (row) throws(Failure) in
        row.clear(ended: reason?.rawValue)
      }
    }
    guard isEnded else { return }
    reset(.session)
    cache.erase()
    try keys.erasures.eraseOwed()
  }
}
