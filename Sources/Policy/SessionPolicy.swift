/// The one function from which every screen follows: a cold start, a return, an unlock, a link.
///
/// The order is the argument. What cannot be read comes first, then what is over, then what is
/// locked, and only then where the user goes. `docs/decisions.md` is generated from this function.
public enum SessionPolicy {
  /// Decide what to show.
  public static func decide(_ s: Situation) -> Decision {
    if let decision = unreadable(s) ?? over(s) { return decision }
    guard let cause = LockPolicy.cause(s) else { return NavigationPolicy.place(s, as: .active) }
    if LockPolicy.opens(s) { return NavigationPolicy.place(s, as: .unlocked) }
    return LockPolicy.locked(s, because: cause)
  }

  /// The device key is not at hand. Nothing is cleared: a key store that is silent today may answer
  /// tomorrow (RES-7), and files without their key may find it again on their own device (SES-11).
  private static func unreadable(_ s: Situation) -> Decision? {
    switch s.keys {
    case .ready: nil
    case .locked: Decision(.wait, .keystoreLocked)
    case .failed: Decision(.wait, .keystoreFailed)
    case .lost: Decision(.signIn, .keyLost, quarantine: true)
    }
  }

  /// There is no session to go on with (RES-5, KEEP-3, KEEP-7). Only a record that does not open is
  /// cleared; without proof from the server the data is kept.
  private static func over(_ s: Situation) -> Decision? {
    switch s.record {
    case .missing: return Decision(.signIn, .sessionMissing)
    case .corrupt: return Decision(.signIn, .sessionCorrupt, forget: true)
    case .ended: return Decision(.signIn, .sessionEnded)
    case .sealed, .open: break
    }
    if s.denied { return Decision(.signIn, .denied) }
    if s.window == .pastLimit { return Decision(.signIn, .sessionEnded) }
    return nil
  }
}
