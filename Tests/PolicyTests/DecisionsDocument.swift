import Policy

/// `docs/decisions.md`: the rules as tables, each made by asking the code.
///
/// One table of everything would have thousands of rows, so there are five, and what each leaves
/// out is held at a probe. That they say the same as the code, taken together, is tested cell by
/// cell.
struct DecisionsDocument {
  let session = DecisionTable(
    "1. Is there a session?",
    "Whatever else holds. `→ 2`: go on with the next table.",
    columns: [.axis("keys"), .axis("record"), .axis("denied"), .axis("window")],
    outcomes: ["screen", "reason", "also"]
  ) { values in
    let situation = Situation.named(["keys", "record", "denied", "window"], values)
    let decision = SessionPolicy.decide(situation)
    // The same situation under a lock: where that changes nothing, nothing else does.
    var locked = situation
    locked.lockedByUser = true
    locked.occasion = .unlock
    locked.outcome = .failed
    guard SessionPolicy.decide(locked) == decision else { return ["→ 2", "", ""] }
    return [decision.screen.rawValue, decision.reason.rawValue, decision.deeds]
  }

  let lock = DecisionTable(
    "2. Is a lock due?",
    """
    The reason is the one that `unlock` is shown with. `→ 3`: locked; `→ 4`: not locked, with the \
    reason `active`.
    """,
    columns: [
      .axis("locked"), .axis("absence"), .axis("presence"), .axis("clock"),
      .axis("window", ["inside", "outside"]), .axis("record", ["sealed", "open"]),
      .axis("token"), .axis("occasion"),
    ],
    outcomes: ["", "reason"]
  ) { values in
    let decision = SessionPolicy.decide(
      .named(
        ["locked", "absence", "presence", "clock", "window", "record", "token", "occasion"],
        values))
    if decision.screen == .home { return ["→ 4", ""] }
    return ["→ 3", decision.screen == .unlock ? decision.reason.rawValue : ""]
  }

  let prompt = DecisionTable(
    "3. What a locked session shows",
    """
    `of 2`: the reason that the table before gives. `lock`: the device wrap is erased, so that only \
    the biometric key opens the session. `→ 4`: not locked any more, with the reason `unlocked`.
    """,
    columns: [
      .axis("occasion"), .axis("outcome"), .axis("presence"), .axis("record", ["sealed", "open"]),
    ],
    outcomes: ["screen", "reason", "also"]
  ) { values in
    var situation = Situation.named(["occasion", "outcome", "presence", "record"], values)
    situation.lockedByUser = true
    let decision = SessionPolicy.decide(situation)
    if decision.screen == .home { return ["→ 4", "", ""] }
    situation.lockedByUser = false
    situation.absence = .long
    let isOfCause = SessionPolicy.decide(situation).reason != decision.reason
    return [
      decision.screen.rawValue, isOfCause ? "of 2" : decision.reason.rawValue, decision.deeds,
    ]
  }

  let place = DecisionTable(
    "4. Where an open session goes",
    "`unlocked` is an `unlock` that has just opened a locked session.",
    columns: [
      .axis("membership"), .arrivals, .axis("token"), .axis("network"), .axis("freshness"),
    ],
    outcomes: ["screen", "reason", "also"]
  ) { values in
    let decision = SessionPolicy.decide(
      .arrived(["membership", "arrival", "token", "network", "freshness"], values))
    return [decision.screen.rawValue, decision.reason.rawValue, decision.deeds]
  }

  let checks = DecisionTable(
    "5. Banners and server checks of an open session",
    """
    `stale`, `offline`: the banners `stale_data`, `offline`. `validation`: refresh or validate the \
    session, without a prompt. `membership check`: ask the server for the memberships.
    """,
    columns: [.axis("network"), .axis("freshness"), .axis("token"), .axis("membership")],
    outcomes: ["banners", "needs"]
  ) { values in
    SessionPolicy.decide(
      .named(["network", "freshness", "token", "membership"], values, occasion: .foreground)
    ).checks
  }

  /// The document.
  var markdown: String {
    let codes = Product.shared.codes
    let tables = [session, lock, prompt, place, checks]
    return """
      # Decisions

      Which screen is shown, why, and what is done about it. This page is made from the code \
      (`Sources/Policy/SessionPolicy.swift`) by `Tests/PolicyTests`, which also holds the code \
      against it in all \(DecisionsDocument.grouped(codes.count)) situations; they have \(Set(codes).count) different answers. \
      To write it anew: `make docs`.

      A dot means that the value makes no difference. The columns are the axes of `Situation`.

      \(DecisionsDocument.diagram)
      \(tables.map(\.markdown).joined(separator: "\n"))
      \(reasons)
      """
  }

  /// The reasons that a decision can give, by screen. Others are the engine's, for what it was
  /// asked to do (`signed_out`, `switched`, `route_forbidden`, the sign-in).
  private var reasons: String {
    let decisions = Set(Product.shared.codes).map { Decision(code: $0) }
    let lines = Screen.allCases.map { screen in
      let reasons = Reason.allCases.filter { reason in
        decisions.contains { $0.screen == screen && $0.reason == reason }
      }
      return "| \(screen.rawValue) | \(reasons.map(\.rawValue).joined(separator: ", ")) |"
    }
    let told = Set(decisions.map(\.reason))
    let others = Reason.allCases.filter { !told.contains($0) }.map { "`\($0.rawValue)`" }
    return """
      ## Reasons by screen

      | screen | reasons |
      | --- | --- |
      \(lines.joined(separator: "\n"))

      The engine adds what it was asked to do: \(others.joined(separator: ", ")).

      """
  }

  private static func grouped(_ number: Int) -> String {
    number < 1_000
      ? "\(number)"
      : "\(grouped(number / 1_000)),\("\(number % 1_000 + 1_000)".dropFirst())"
  }

  static let diagram = """
    ```mermaid
    stateDiagram-v2
      [*] --> home: session open, inside its window
      [*] --> unlock: locked, expired, away too long
      [*] --> sign_in: no session, ended, key lost
      [*] --> wait: keystore_locked, keystore_failed
      wait --> home: key store or server answered
      wait --> select_org: server answered
      wait --> sign_in: session ended
      unlock --> home: biometrics succeeded
      unlock --> wait: biometrics succeeded, refresh under way
      unlock --> unlock: biometric_withheld
      unlock --> sign_in: biometrics failed, key lost
      home --> unlock: lock, background_timeout
      home --> select_org: membership_revoked, org_disabled
      home --> sign_in: session_ended, signed_out
      select_org --> home: chosen, switched
      select_org --> unlock: lock, background_timeout
      sign_in --> wait: signing_in
    ```

    """
}

extension DecisionTable.Column {
  /// How a session was found open: on an occasion, or by an unlock.
  static let arrivals = DecisionTable.Column(
    "arrival", ["resume", "foreground", "unlock", "navigate", "unlocked"])
}

extension Situation {
  /// `plain`, online and confirmed, with the axes `names` at `values`.
  static func named(
    _ names: [String], _ values: [String], occasion: Occasion = .resume
  ) -> Situation {
    var situation = plain
    situation.freshness = .confirmed
    situation.occasion = occasion
    for (name, value) in zip(names, values) {
      guard let axis = Axis.all.first(where: { $0.name == name }),
        let number = axis.values.firstIndex(of: value)
      else { continue }
      axis.set(&situation, number)
    }
    return situation
  }

  /// An open session that arrived as one of `Column.arrivals` says.
  static func arrived(_ names: [String], _ values: [String]) -> Situation {
    var situation = named(names, values)
    let arrival = zip(names, values).first { $0.0 == "arrival" }?.1
    switch arrival {
    case "foreground": situation.occasion = .foreground
    case "unlock": situation.occasion = .unlock
    case "navigate": situation.occasion = .navigate
    case "unlocked":
      situation.occasion = .unlock
      situation.outcome = .success
      situation.lockedByUser = true
    default:
      situation.occasion = .resume
      // Expiry would lock; without biometrics it does not.
      situation.presence = .off
    }
    return situation
  }
}

extension Decision {
  /// What is done beside showing the screen.
  var deeds: String {
    [
      lock ? "lock" : "", forget ? "forget" : "", quarantine ? "quarantine" : "",
      chooseOnly ? "choose" : "",
    ].filter { !$0.isEmpty }.joined(separator: ", ")
  }

  /// The banners and the server checks.
  var checks: [String] {
    [
      [stale ? "stale" : "", offline ? "offline" : ""],
      [needsValidation ? "validation" : "", needsMembershipCheck ? "membership check" : ""],
    ].map { $0.filter { !$0.isEmpty }.joined(separator: ", ") }
  }
}
