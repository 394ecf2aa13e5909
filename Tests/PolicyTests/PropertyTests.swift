import Policy
import Testing

/// Properties of all cells of the product, independent of single rules.
@Suite struct PropertyTests {
  /// All pairs of cells that differ only in `axis`, `from` against `to`, and have different
  /// decisions.
  private func differences(
    _ axis: String, _ from: Int, _ to: Int, _ complaint: (Situation, Decision, Decision) -> Bool
  ) -> [Situation] {
    let codes = Product.shared.codes
    guard let index = Axis.all.firstIndex(where: { $0.name == axis }) else { return [.plain] }
    let stride = Axis.all.suffix(from: index + 1).reduce(1) { $0 * $1.values.count }
    let round = stride * Axis.all[index].values.count
    var found: [Situation] = []
    codes.withUnsafeBufferPointer { codes in
      var start = 0
      while start < codes.count {
        for rest in 0..<stride {
          let one = codes[start + from * stride + rest]
          let other = codes[start + to * stride + rest]
          guard one != other, found.count < 10 else { continue }
          let situation = Product.situation(start + from * stride + rest)
          if complaint(situation, Decision(code: one), Decision(code: other)) {
            found.append(situation)
          }
        }
        start += round
      }
    }
    return found
  }

  @Test(arguments: Property.allCases)
  func holdsInEveryCell(property: Property) {
    let found = Complaints.shared.found[property, default: []]
    #expect(found.isEmpty, "\(found.joined(separator: "\n"))")
  }

  @Test("The outcome of a prompt matters only on the occasion `unlock`")
  func outcomeMattersOnUnlockAlone() {
    for outcome in Situation.Outcome.allCases.indices.dropFirst() {
      let found = differences("outcome", 0, outcome) { s, _, _ in s.occasion != .unlock }
      #expect(found.isEmpty, "\(found)")
    }
  }

  @Test("SES-7: a clock moved back asks for a prompt and never signs out")
  func clockNeverSignsOut() {
    let found = differences("clock", 0, 1) { s, steady, moved in
      let failed =
        s.occasion == .unlock && s.outcome != .none && s.outcome != .success
        && s.outcome != .withheld
      return !failed && moved.screen == .signIn && steady.screen != .signIn
    }
    #expect(found.isEmpty, "\(found)")
  }

  @Test("Losing the network never leaves the home screen and never locks")
  func offlineKeepsTheScreen() {
    let found = differences("network", 0, 1) { _, online, offline in
      online.screen != offline.screen && online.screen != .wait
        || online.screen == .home && online.reason != offline.reason
        || online.lock != offline.lock
    }
    #expect(found.isEmpty, "\(found)")
  }

  @Test("In a running process an expired token changes no screen, except the refresh of RES-3")
  func expiryIsSilentInARunningProcess() {
    let found = differences("token", 0, 1) { s, valid, expired in
      guard s.occasion != .resume, s.record == .open else { return false }
      if s.occasion == .unlock && s.outcome == .success { return false }
      return valid.screen != expired.screen || valid.reason != expired.reason
        || valid.lock != expired.lock
    }
    #expect(found.isEmpty, "\(found)")
  }

  @Test(
    "An additional reason to lock never opens a session",
    arguments: [("locked", 0, 1), ("absence", 0, 1), ("window", 0, 1), ("window", 1, 2)])
  func lockingIsMonotonic(axis: String, from: Int, to: Int) {
    func isOpen(_ decision: Decision) -> Bool {
      decision.screen == .home || decision.screen == .selectOrg
        || decision.reason == .guardPending || decision.reason == .serverUnreachable
    }
    let found = differences(axis, from, to) { _, less, more in isOpen(more) && !isOpen(less) }
    #expect(found.isEmpty, "\(found)")
  }
}
