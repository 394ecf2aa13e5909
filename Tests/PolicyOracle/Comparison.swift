import Policy

/// A property of each pair of cells that differ only in one axis.
public struct Comparison: Sendable {
  public let name: String
  private let axis: Axis
  /// The numbers of the two values on the axis.
  private let pairs: [(from: Int, to: Int)]
  /// Whether a change from one decision to the other breaks the rule. The situation is the first cell's.
  private let isBroken: @Sendable (Situation, Decision, Decision) -> Bool

  /// Whether the property holds between a cell and those with an earlier value on the axis.
  func holds(_ cell: Product.Cell, _ decision: Decision) -> Bool {
    for pair in pairs where cell.mask & axis.bit(pair.to) != 0 {
      var situation = cell.situation
      axis.set(&situation, pair.from)
      let other = SessionPolicy.decide(situation)
      if other != decision, isBroken(situation, other, decision) { return false }
    }
    return true
  }

  private init(
    _ name: String, on axis: String, _ pairs: [(from: Int, to: Int)],
    isBroken: @escaping @Sendable (Situation, Decision, Decision) -> Bool
  ) {
    guard let axis = Axis.named(axis) else { preconditionFailure("no axis \(axis)") }
    self.name = name
    self.axis = axis
    self.pairs = pairs
    self.isBroken = isBroken
  }

  public static let all = [
    Comparison(
      "the outcome of a prompt matters only on the occasion `unlock`", on: "outcome",
      Situation.Outcome.allCases.indices.dropFirst().map { (0, $0) }
    ) { s, _, _ in s.occasion != .unlock },
    Comparison(
      "SES-7: a clock moved back asks for a prompt and never signs out", on: "clock", [(0, 1)]
    ) { s, steady, moved in
      let failed =
        s.occasion == .unlock && s.outcome != .none && s.outcome != .success
        && s.outcome != .withheld
      return !failed && moved.screen == .signIn && steady.screen != .signIn
    },
    Comparison(
      "losing the network never leaves the home screen and never locks", on: "network", [(0, 1)]
    ) { _, online, offline in
      online.screen != offline.screen && online.screen != .wait
        || online.lock != offline.lock
    },
    Comparison(
      "in a running process an expired token changes no screen, except the refresh of RES-3",
      on: "token", [(0, 1)]
    ) { s, valid, expired in
      guard s.occasion != .resume, s.record == .open else { return false }
      if s.occasion == .unlock && s.outcome == .success { return false }
      return valid.screen != expired.screen || valid.message != expired.message
        || valid.lock != expired.lock
    },
    opensNothing("locked", [(0, 1)]),
    opensNothing("absence", [(0, 1)]),
    opensNothing("window", [(0, 1), (1, 2)]),
  ]

  private static func opensNothing(_ axis: String, _ pairs: [(from: Int, to: Int)]) -> Comparison {
    @Sendable func isOpen(_ decision: Decision) -> Bool {
      decision.screen == .home || decision.screen == .selectOrg
        || decision.message == .guardPending || decision.message == .serverUnreachable
    }
    return Comparison("a further reason to lock opens no session: \(axis)", on: axis, pairs) {
      _, less, more in isOpen(more) && !isOpen(less)
    }
  }
}
