/// The single function that decides which screen is shown: at a cold start, a return, an unlock, a
/// link.
///
/// The order of the questions matters: Can the session be read? Has it ended? Is it locked? Only
/// then: where does the user go? `docs/decisions.md` is generated from this function.
public enum SessionPolicy {
  /// Decides what to show.
  public static func decide(_ s: Situation) -> Decision {
    if let decision = unreadable(s) ?? over(s) { return decision }
    guard let cause = LockPolicy.cause(s) else { return NavigationPolicy.place(s) }
    if LockPolicy.opens(s) { return NavigationPolicy.place(s, isUnlocked: true) }
    return LockPolicy.locked(s, because: cause)
  }

  /// The decision when the device key is not available; nil when it is. Nothing is cleared or set aside:
  /// the key store may answer later (RES-7), or have the key again (SES-11).
  private static func unreadable(_ s: Situation) -> Decision? {
    switch s.keys {
    case .ready: nil
    case .locked: Decision(.wait, .keystoreLocked)
    case .failed: Decision(.wait, .keystoreFailed)
    case .lost: Decision(.signIn, .keyLost)
    }
  }

  /// The decision when no session can go on (RES-5, KEEP-3, KEEP-7); nil when one can. Only a
  /// record that does not decrypt is cleared. Time is no proof: after the limit for being offline the user signs in,
  /// and the data is kept.
  private static func over(_ s: Situation) -> Decision? {
    switch s.record {
    case .missing: return Decision(.signIn, .sessionMissing)
    case .corrupt: return Decision(.signIn, .sessionCorrupt, forget: true)
    case .ended: return Decision(.signIn, .sessionEnded)
    case .sealed, .open: break
    }
    if s.window == .pastLimit { return Decision(.signIn, .offlineLimit) }
    return nil
  }
}
