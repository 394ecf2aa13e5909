import Policy

/// Compares decisions of `SessionPolicy` with two other statements of its rules, and checks the
/// properties that every decision must have.
public struct Examination: Sendable {
  public struct Check: Sendable {
    public let name: String
    /// The first cells in which the check failed.
    public fileprivate(set) var failures: [String] = []
  }

  /// How many cells were examined.
  public private(set) var cells = 0
  public private(set) var checks: [Check]
  /// The different decisions of these cells.
  public private(set) var decisions: [Decision] = []

  private let reader = TablesReader(DecisionsDocument())
  private let properties = Property.allCases
  private let comparisons = Comparison.all
  private var known = Set<Int>()
  private var values: UInt64 = 0
  private var gateRows = [Bool](repeating: false, count: DecisionOracle.gate.rows.count)
  private var placeRows = [Bool](repeating: false, count: DecisionOracle.place.rows.count)

  /// Examines every `step`th cell of the product.
  public init(step: Int = 1) {
    let names =
      ["the oracle decides the same", "the document's tables, read in order, decide the same"]
      + properties.map(\.rawValue) + comparisons.map(\.name)
    checks = names.map { Check(name: $0) }
    Product.visit(step: step) { examine($0) }
    checks += [
      Check(name: "every value of every axis is met", failures: missingValues),
      Check(name: "every row of the oracle decides a cell", failures: unusedRows),
    ]
  }

  private mutating func examine(_ cell: Product.Cell) {
    let decision = SessionPolicy.decide(cell.situation)
    cells += 1
    values |= cell.mask
    if known.insert(decision.number).inserted { decisions.append(decision) }

    let answer = DecisionOracle.answer(cell.mask)
    if let answer {
      gateRows[answer.gateRow] = true
      if let row = answer.placeRow { placeRows[row] = true }
    }
    if answer?.decision != decision { fail(0, cell, decision, answer?.decision) }
    let told = reader.decision(cell.mask)
    if told != decision { fail(1, cell, decision, told) }

    var check = 2
    for property in properties {
      if !property.holds(cell.situation, decision) { fail(check, cell, decision) }
      check += 1
    }
    for comparison in comparisons {
      if !comparison.holds(cell, decision) { fail(check, cell, decision) }
      check += 1
    }
  }

  private mutating func fail(
    _ check: Int, _ cell: Product.Cell, _ decision: Decision, _ expected: Decision?? = nil
  ) {
    guard checks[check].failures.count < 5 else { return }
    var line = "cell \(cell.number), \(cell.situation): \(decision)"
    if let expected {
      line += "; expected \(expected.map { "\($0)" } ?? "no decision")"
    }
    checks[check].failures.append(line)
  }

  private var missingValues: [String] {
    Axis.all.flatMap { axis in
      axis.values.indices.filter { values & axis.bit($0) == 0 }
        .map { "\(axis.name)=\(axis.values[$0])" }
    }
  }

  private var unusedRows: [String] {
    let gate = gateRows.indices.filter { !gateRows[$0] }.map { "row \($0 + 1) of the first table" }
    let place = placeRows.indices.filter { !placeRows[$0] }
      .map { "row \($0 + 1) of the second table" }
    return gate + place
  }
}

extension Decision {
  /// Different decisions of `SessionPolicy` have different numbers.
  fileprivate var number: Int {
    let flags = [lock, forget, chooseOnly, canUnlock, stale, offline]
    let head =
      (Screen.allCases.firstIndex(of: screen) ?? 0) * (MessageCode.allCases.count + 1)
      + (MessageCode.allCases.firstIndex { $0 == message } ?? MessageCode.allCases.count)
    return flags.reduce(head) { $0 * 2 + ($1 ? 1 : 0) }
  }
}
