import Policy
import Testing

/// All cells of the product of all axes.
@Suite struct WholeProductTests {
  @Test("Every cell agrees with the oracle")
  func everyCellAgreesWithTheOracle() {
    let product = Product.shared
    let oracle = PlaceTable()
    var number = 0
    var differences: [String] = []
    Product.forEachBlock { situation, cell in
      guard let outcome = DecisionOracle.gate.outcome(cell) else {
        differences.append("no row for \(situation)")
        number += Product.places
        return
      }
      let expected = oracle.codes(cell, outcome)
      product.codes.withUnsafeBufferPointer { codes in
        for place in 0..<Product.places where codes[number + place] != expected[place] {
          guard differences.count < 10 else { continue }
          differences.append(
            """
            \(Product.situation(number + place))
              is    \(Decision(code: codes[number + place]))
              wants \(Decision(code: expected[place]))
            """)
        }
      }
      number += Product.places
    }
    print("Policy: \(number) cells tested, \(Set(product.codes).count) different decisions")
    #expect(number == Axis.all.reduce(1) { $0 * $1.values.count })
    #expect(number == product.codes.count)
    #expect(differences.isEmpty, "\(differences.joined(separator: "\n"))")
  }

  @Test("Every row of the oracle decides some cell")
  func everyRowIsNeeded() {
    var used = Set<Int>()
    Product.forEachBlock { _, cell in
      if let row = DecisionOracle.gate.row(cell) { used.insert(row) }
    }
    #expect(used.count == DecisionOracle.gate.rows.count)
  }

  @Test("A cell's number and its situation convert into each other")
  func numbering() {
    for number in stride(from: 0, to: Product.shared.codes.count, by: 104_729) {
      let situation = Product.situation(number)
      #expect(Product.number(of: situation) == number)
      #expect(SessionPolicy.decide(situation).code == Product.shared.codes[number])
      #expect(Decision(code: Product.shared.codes[number]) == SessionPolicy.decide(situation))
    }
  }
}

/// The oracle's decisions for the cells of a block, computed once for each kind of block.
private final class PlaceTable {
  private struct Key: Hashable {
    let context: UInt64
    let outcome: String
  }

  private var known: [Key: [UInt16]] = [:]
  private let context: UInt64
  private let places: [UInt64]

  init() {
    context = ["occasion", "token", "record", "presence"].reduce(0) { mask, name in
      mask | (Axis.all.first { $0.name == name }?.bits ?? 0)
    }
    places = Axis.fast.reduce([0]) { cells, axis in
      cells.flatMap { cell in axis.values.indices.map { cell | axis.bit($0) } }
    }
  }

  /// The codes of a block, in the order of the cells' numbers.
  func codes(_ cell: UInt64, _ outcome: String) -> [UInt16] {
    let key = Key(context: cell & context, outcome: outcome)
    if let codes = known[key] { return codes }
    let codes = places.map { decision(cell & context | $0, outcome).code }
    known[key] = codes
    return codes
  }

  private func decision(_ cell: UInt64, _ outcome: String) -> Decision {
    guard outcome.hasPrefix("place") else {
      return Decision(
        row: outcome, locks: cell & ~DecisionOracle.locks & context == 0,
        prompts: cell & ~DecisionOracle.prompts & context == 0)
    }
    let arrived =
      cell | (outcome == "place unlocked" ? DecisionOracle.unlocked : DecisionOracle.active)
    var decision = Decision(row: DecisionOracle.place.outcome(arrived) ?? "wait active")
    decision.offline = DecisionOracle.any(DecisionOracle.offline, cell)
    decision.stale = DecisionOracle.any(DecisionOracle.stale, cell)
    return decision
  }
}
