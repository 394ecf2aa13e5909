import Policy

/// What holds in every cell, for its own sake and not because a rule says so.
enum Property: CaseIterable, Sendable {
  /// Data is shown only when it can be read: the key store, the record, the biometric key.
  case nothingIsShownUnread
  /// Nothing is cleared, set aside, locked or chosen without its cause.
  case nothingWithoutCause
  /// Nobody is told that the session ended without proof, or the absolute limit.
  case endsOnlyOnProof
  /// A wait has something to wait for, and offline nobody waits with data at hand.
  case everyWaitEnds
  /// Banners and errands belong to an open session; the guard is asked online alone.
  case errandsOfOpenSessions

  /// Whether the property holds.
  func holds(_ s: Situation, _ verdict: Decision) -> Bool {
    switch self {
    case .nothingIsShownUnread:
      guard verdict.screen == .home || verdict.screen == .selectOrg else { return true }
      let released = s.occasion == .unlock && s.outcome == .success && s.presence == .available
      return s.keys == .ready && (s.record == .open || s.record == .sealed && released)
    case .nothingWithoutCause:
      let isClosed = verdict.screen == .unlock || verdict.screen == .signIn
      return verdict.forget == (s.keys == .ready && s.record == .corrupt)
        && verdict.quarantine == (s.keys == .lost)
        && verdict.chooseOnly == (verdict.reason == .chosen)
        && (!verdict.lock || s.record == .open && s.presence == .available && isClosed)
    case .endsOnlyOnProof:
      return verdict.reason != .sessionEnded || s.record == .ended || s.window == .pastLimit
    case .everyWaitEnds:
      guard verdict.screen == .wait else { return true }
      switch verdict.reason {
      case .keystoreLocked, .keystoreFailed: return s.keys != .ready
      case .serverUnreachable: return s.membership == .unasked
      case .guardPending:
        return s.network == .online && (verdict.asksGuard || s.freshness == .pending)
      default: return false
      }
    case .errandsOfOpenSessions:
      switch verdict.screen {
      case .unlock, .signIn:
        return !verdict.stale && !verdict.offline && !verdict.owesValidation && !verdict.asksGuard
      case .home, .selectOrg, .wait:
        return (verdict.offline == (s.network == .offline) || s.keys != .ready)
          && !(verdict.asksGuard && s.network == .offline)
          && !(verdict.stale && s.freshness == .confirmed)
      }
    }
  }
}

/// The cells in which a property does not hold, ten at most of each; found in one sweep.
struct Complaints {
  static let shared = Complaints()

  private(set) var found: [Property: [String]] = [:]

  private init() {
    let codes = Product.shared.codes
    var verdicts = Array(repeating: Decision(.wait, .active), count: 1 << 16)
    for code in Set(codes) { verdicts[Int(code)] = Decision(code: code) }
    let properties = Property.allCases
    var number = 0
    Product.forEachBlock { situation, _ in
      for membership in Situation.Membership.allCases {
        situation.membership = membership
        for freshness in Situation.Freshness.allCases {
          situation.freshness = freshness
          for network in Situation.Network.allCases {
            situation.network = network
            let verdict = verdicts[Int(codes[number])]
            for property in properties where !property.holds(situation, verdict) {
              guard found[property, default: []].count < 10 else { continue }
              found[property, default: []].append("\(situation) -> \(verdict)")
            }
            number += 1
          }
        }
      }
    }
  }
}
