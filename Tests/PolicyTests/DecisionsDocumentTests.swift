import Foundation
import Policy
import Testing

/// `docs/decisions.md` agrees with the code.
@Suite struct DecisionsDocumentTests {
  private let document = DecisionsDocument()

  private var file: URL {
    URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
      .deletingLastPathComponent().appending(path: "docs/decisions.md")
  }

  @Test("The document is the one that the code generates")
  func documentIsCurrent() throws {
    let made = document.markdown
    if ProcessInfo.processInfo.environment["HOLDFAST_WRITE_DOCS"] != nil {
      try made.write(to: file, atomically: true, encoding: .utf8)
    }
    let stored = try String(contentsOf: file, encoding: .utf8)
    #expect(stored == made, "out of date: run make docs")
  }

  @Test("The document is short enough to read")
  func documentIsShort() {
    let tables = [
      document.session, document.lock, document.prompt, document.place, document.banners,
    ]
    #expect(tables.reduce(0) { $0 + $1.rows.count } <= 150)
  }

  @Test("The diagram names only screens and reasons that exist")
  func diagramIsTrue() {
    let known = Set(Screen.allCases.map(\.rawValue) + Reason.allCases.map(\.rawValue))
    let words = DecisionsDocument.diagram.split { !$0.isLetter && $0 != "_" }
    for word in words where word.contains("_") { #expect(known.contains(String(word))) }
  }

  @Test("The five tables, read in order, agree with the code in every cell")
  func tablesSayWhatTheCodeDoes() {
    let reader = Reader(document)
    let codes = Product.shared.codes
    var number = 0
    var differences: [String] = []
    Product.forEachBlock { situation, _ in
      let expected = reader.codes(situation)
      if !codes[number..<(number + Product.places)].elementsEqual(expected),
        differences.count < 5
      {
        differences.append("\(situation)")
      }
      number += Product.places
    }
    #expect(differences.isEmpty, "\(differences.joined(separator: "\n"))")
  }
}

/// Reads the tables as a person would, with a cache.
private final class Reader {
  private let document: DecisionsDocument
  private var known: [[String]: [UInt16]] = [:]
  private var gates: [[String]: [String]] = [:]

  init(_ document: DecisionsDocument) { self.document = document }

  /// The packed decisions of a block of the product.
  func codes(_ s: Situation) -> [UInt16] {
    let gate = gate(s)
    if gate[0] != "→ 4" { return places(gate, gate, s) }
    let arrival = gate[1] == "unlocked" ? "unlocked" : "\(s.occasion)"
    return places(gate + [arrival, "\(s.token)"], gate, s, arrival)
  }

  /// Tables 1 to 3: a decision, or `→ 4` and the reason of the arrival.
  private func gate(_ s: Situation) -> [String] {
    let session = read(
      document.session, ["\(s.keys)", "\(s.record)", "\(s.window)"])
    guard session[0] == "→ 2" else { return session }
    let lock = read(
      document.lock,
      [
        s.lockedByUser ? "yes" : "no", "\(s.absence)", "\(s.presence)", "\(s.clock)",
        "\(s.window)", "\(s.record)", "\(s.token)", "\(s.occasion)",
      ])
    guard lock[0] == "→ 3" else { return ["→ 4", "active"] }
    let prompt = read(
      document.prompt,
      [
        "\(s.occasion)", "\(s.outcome)", "\(s.presence)", "\(s.record)",
        s.lockedByUser ? "yes" : "no",
      ])
    if prompt[0] == "→ 4" { return ["→ 4", "unlocked"] }
    return [prompt[0], prompt[1] == "of 2" ? lock[1] : prompt[1], prompt[2]]
  }

  private func places(
    _ key: [String], _ gate: [String], _ s: Situation, _ arrival: String? = nil
  ) -> [UInt16] {
    if let codes = known[key] { return codes }
    var codes: [UInt16] = []
    for membership in Situation.Membership.allCases {
      for freshness in Situation.Freshness.allCases {
        for network in Situation.Network.allCases {
          guard let arrival else {
            codes.append(decision(gate, []).code)
            continue
          }
          let place = read(
            document.place,
            ["\(membership)", arrival, "\(s.token)", "\(network)", "\(freshness)"])
          let banners = read(
            document.banners, ["\(network)", "\(freshness)", "\(membership)"])
          codes.append(decision(place, banners).code)
        }
      }
    }
    known[key] = codes
    return codes
  }

  private func read(_ table: DecisionTable, _ values: [String]) -> [String] {
    let key = [table.title] + values
    if let outcome = gates[key] { return outcome }
    let outcome = table.outcome(values) ?? ["", "", ""]
    gates[key] = outcome
    return outcome
  }

  private func decision(_ row: [String], _ banners: [String]) -> Decision {
    let words = (row.suffix(1) + banners).flatMap { $0.components(of: ",") }
    guard let screen = Screen(rawValue: row[0]), let reason = Reason(rawValue: row[1]) else {
      return Decision(.wait, .active)
    }
    return Decision(
      screen, reason, lock: words.contains("lock"), forget: words.contains("forget"),
      quarantine: words.contains("quarantine"), chooseOnly: words.contains("choose"),
      canUnlock: words.contains("again"),
      stale: words.contains("stale"), offline: words.contains("offline"))
  }
}
