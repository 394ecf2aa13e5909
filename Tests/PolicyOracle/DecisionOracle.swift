import Policy

/// A second statement of the rules, as an oracle: tables of conditions on the axes instead of code.
/// They are written from the opposite side: a table lists when a session is *not* locked, the code
/// when it is.
///
/// A row is `conditions -> outcome`. A condition is `axis=value|value` or `axis!=value|value`; all
/// conditions of a row must hold. The first row that fits decides.
public struct DecisionOracle: Sendable {
  struct Row: Sendable {
    /// The values that fit, one bit each (see `Axis`). A cell fits when all its bits are set here.
    let cube: UInt64
    let outcome: Outcome
  }

  enum Outcome: Sendable {
    /// What is shown. `locks`: the key `session` is erased where that is possible. `prompts`: another prompt is
    /// offered where that is possible.
    case decision(Decision, locks: Bool, prompts: Bool)
    /// The session is open; the second table decides. With the bit of `arrival`.
    case place(UInt64)
  }

  /// A decision, and the numbers of the rows that made it.
  public struct Answer {
    public let decision: Decision
    let gateRow: Int
    let placeRow: Int?
  }

  let rows: [Row]

  private init(_ text: String) {
    rows = text.split(separator: "\n").filter { !$0.isEmpty && !$0.hasPrefix("#") }.map { line in
      let parts = line.components(of: "->")
      precondition(parts.count == 2, "not a row: \(line)")
      return Row(cube: DecisionOracle.cube(parts[0]), outcome: Outcome(parts[1]))
    }
  }

  /// What the tables say about a cell; nil if no row fits.
  public static func answer(_ cell: UInt64) -> Answer? {
    guard let row = gate.row(cell) else { return nil }
    switch gate.rows[row].outcome {
    case .decision(var decision, let locks, let prompts):
      decision.lock = locks && fits(Self.locks, cell)
      decision.canUnlock = prompts && fits(Self.prompts, cell)
      return Answer(decision: decision, gateRow: row, placeRow: nil)
    case .place(let arrival):
      guard let placeRow = place.row(cell | arrival),
        case .decision(var decision, _, _) = place.rows[placeRow].outcome
      else { return nil }
      decision.offline = offline.contains { fits($0, cell) }
      decision.stale = stale.contains { fits($0, cell) }
      return Answer(decision: decision, gateRow: row, placeRow: placeRow)
    }
  }

  /// The number of the first row that fits `cell`.
  private func row(_ cell: UInt64) -> Int? {
    rows.firstIndex { DecisionOracle.fits($0.cube, cell) }
  }

  private static func fits(_ cube: UInt64, _ cell: UInt64) -> Bool { cell & ~cube == 0 }

  /// The values that fit `conditions`.
  private static func cube(_ conditions: String) -> UInt64 {
    var cube = UInt64.max
    for condition in conditions.split(separator: " ") {
      let negated = condition.contains("!=")
      let sides = condition.components(of: negated ? "!=" : "=")
      guard let axis = Axis.named(sides[0]) else {
        // `arrival` is not an axis of the situation: it says how the session was opened.
        precondition(sides[0] == "arrival", "no axis \(sides[0])")
        cube &= sides[1] == "unlocked" ? ~DecisionOracle.active : ~DecisionOracle.unlocked
        continue
      }
      var named: UInt64 = 0
      for value in sides[1].split(separator: "|") {
        guard let index = axis.values.firstIndex(of: String(value)) else {
          preconditionFailure("no value \(value) of \(axis.name)")
        }
        named |= axis.bit(index)
      }
      cube &= ~(negated ? named : axis.bits & ~named)
    }
    return cube
  }

  /// The two values of `arrival`, as bits above those of all axes.
  fileprivate static let active: UInt64 = 1 << 62
  fileprivate static let unlocked: UInt64 = 1 << 63

  private static let calm = "record=open locked=no absence=brief window=inside"

  /// The first table: a decision, or `place active` or `place unlocked` for an open session.
  static let gate = DecisionOracle(
    """
    # The key store.
    keys=locked -> wait keystore_locked
    keys=failed -> wait keystore_failed
    keys=lost -> sign_in key_lost
    # The session.
    record=missing -> sign_in session_missing
    record=corrupt -> sign_in session_corrupt forget
    record=ended -> sign_in session_ended
    window=pastLimit -> sign_in offline_limit
    # Not locked: readable, no request to lock, no long absence, inside the window, and neither the
    # clock nor the access token requires a prompt.
    \(calm) presence=available clock=steady token=valid -> place active
    \(calm) presence=available clock=steady occasion!=resume -> place active
    \(calm) presence=requiredButMissing token=valid -> place active
    \(calm) presence=requiredButMissing occasion!=resume -> place active
    \(calm) presence=unenrolled|off -> place active
    # Locked, and the key store gave the key.
    occasion=unlock outcome=success presence=available -> place unlocked
    # Locked, and the prompt failed.
    occasion=unlock outcome=failed -> sign_in biometric_failed locking again
    occasion=unlock outcome=cancelled -> sign_in biometric_cancelled locking again
    occasion=unlock outcome=lockout -> sign_in biometric_lockout locking again
    occasion=unlock outcome=lockoutPermanent -> sign_in biometric_lockout_permanent locking
    occasion=unlock outcome=notEnrolled -> sign_in biometric_not_enrolled locking
    occasion=unlock outcome=unavailable -> sign_in biometric_unavailable locking again
    occasion=unlock outcome=invalidated -> sign_in key_lost locking
    # Locked, and no prompt can open the session.
    presence!=available record=sealed locked=no -> sign_in key_lost
    presence=off -> sign_in biometric_off
    presence=unenrolled|requiredButMissing -> sign_in biometric_not_enrolled
    # Locked, and a prompt can open the session.
    occasion=unlock outcome=withheld -> unlock biometric_withheld locking
    locked=yes -> unlock user_locked locking
    absence=long -> unlock background_timeout locking
    clock=movedBack -> unlock clock_moved_back locking
    window=outside -> unlock session_window locking
    token=expired -> unlock token_expired locking
    record=sealed -> unlock user_locked locking
    """)

  /// An outcome `locking` erases the key `session` in these cells.
  private static let locks = cube("record=open presence=available")
  /// An outcome `again` offers another prompt in these cells.
  private static let prompts = cube("presence=available")

  /// The second table: the screen of an open session.
  static let place = DecisionOracle(
    """
    membership=unasked network=offline -> wait server_unreachable
    membership=unasked freshness=unreachable -> wait server_unreachable
    membership=unasked -> wait guard_pending
    membership=noneAtAll -> select_org no_membership
    membership=unchosen -> select_org first_choice
    membership=revoked -> select_org membership_revoked
    membership=disabled -> select_org org_disabled
    membership=unknownRole -> select_org role_unknown
    arrival=unlocked token=expired network=online freshness=cached|pending -> wait guard_pending
    occasion=navigate membership=active freshness=pending network=online -> wait guard_pending
    membership=single -> home - chooseOnly
    membership=active -> home -
    """)

  private static let offline = [cube("network=offline")]
  private static let stale = [
    cube("membership!=unasked freshness!=confirmed network=offline"),
    cube("membership!=unasked freshness=unreachable"),
  ]
}

extension DecisionOracle.Outcome {
  fileprivate init(_ text: String) {
    switch text {
    case "place active": self = .place(DecisionOracle.active)
    case "place unlocked": self = .place(DecisionOracle.unlocked)
    default:
      let words = text.split(separator: " ").map(String.init)
      let message = MessageCode(rawValue: words[1])
      guard let screen = Screen(rawValue: words[0]), message != nil || words[1] == "-" else {
        preconditionFailure("not a decision: \(text)")
      }
      self = .decision(
        Decision(
          screen, message, forget: words.contains("forget"),
          chooseOnly: words.contains("chooseOnly")),
        locks: words.contains("locking"), prompts: words.contains("again"))
    }
  }
}

extension StringProtocol {
  /// The parts between occurrences of `separator`, without spaces around them.
  func components(of separator: String) -> [String] {
    var parts: [String] = []
    var rest = self[...]
    while let range = rest.firstRange(of: separator) {
      parts.append(rest[..<range.lowerBound].trimmed)
      rest = rest[range.upperBound...]
    }
    return parts + [rest.trimmed]
  }

  private var trimmed: String {
    String(drop { $0 == " " }.reversed().drop { $0 == " " }.reversed())
  }
}
