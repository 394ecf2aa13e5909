import Policy

/// A table of rules made from the code: every combination of some axes' values, combinations with
/// the same outcome drawn together, values that make no difference left out.
struct DecisionTable {
  /// A column: an axis, or a part of its values.
  struct Column {
    let name: String
    let values: [String]

    init(_ name: String, _ values: [String]) {
      self.name = name
      self.values = values
    }

    /// All values of an axis, or those named.
    static func axis(_ name: String, _ values: [String]? = nil) -> Column {
      Column(name, values ?? Axis.all.first { $0.name == name }?.values ?? [])
    }
  }

  /// A row: the values that fit, by their numbers in each column, and the outcome.
  struct Row {
    let values: [[Int]]
    let outcome: [String]
  }

  let title: String
  let text: String
  let columns: [Column]
  let outcomes: [String]
  private(set) var rows: [Row] = []

  /// `outcome` says what follows from one value of each column; the columns come in the order in
  /// which they tell the outcomes apart best.
  init(
    _ title: String, _ text: String, columns: [Column], outcomes: [String],
    outcome: ([String]) -> [String]
  ) {
    self.title = title
    self.text = text
    self.columns = columns
    self.outcomes = outcomes
    rows = Tree(columns[...], [], outcome).paths.map { Row(values: $0, outcome: $1) }
  }

  /// The outcome of the only row that fits one value of each column.
  func outcome(_ values: [String]) -> [String]? {
    let numbers = zip(columns, values).map { $0.values.firstIndex(of: $1) ?? -1 }
    let fitting = rows.filter { row in zip(row.values, numbers).allSatisfy { $0.contains($1) } }
    return fitting.count == 1 ? fitting.first?.outcome : nil
  }

  /// The table in Markdown.
  var markdown: String {
    let head = columns.map(\.name) + outcomes
    var lines = ["## \(title)", "", text, "", line(head), line(head.map { _ in "---" })]
    for row in rows {
      let conditions = zip(columns, row.values).map { column, numbers in
        DecisionTable.condition(column.values, numbers)
      }
      lines.append(line(conditions + row.outcome))
    }
    return lines.joined(separator: "\n") + "\n"
  }

  private func line(_ cells: [String]) -> String { "| \(cells.joined(separator: " | ")) |" }

  private static func condition(_ values: [String], _ numbers: [Int]) -> String {
    if numbers.count == values.count { return "·" }
    let others = values.indices.filter { !numbers.contains($0) }
    if others.count == 1 && values.count > 3 { return "not \(values[others[0]])" }
    return numbers.map { values[$0] }.joined(separator: ", ")
  }

  /// A decision tree with equal branches drawn together.
  private enum Tree: Equatable {
    case leaf([String])
    case fork([Branch])

    struct Branch: Equatable {
      var values: [Int]
      let tree: Tree
    }

    init(_ columns: ArraySlice<Column>, _ chosen: [String], _ outcome: ([String]) -> [String]) {
      guard let column = columns.first else {
        self = .leaf(outcome(chosen))
        return
      }
      var branches: [Branch] = []
      for (number, value) in column.values.enumerated() {
        let tree = Tree(columns.dropFirst(), chosen + [value], outcome)
        if let same = branches.firstIndex(where: { $0.tree == tree }) {
          branches[same].values.append(number)
        } else {
          branches.append(Branch(values: [number], tree: tree))
        }
      }
      self = .fork(branches)
    }

    var paths: [([[Int]], [String])] {
      switch self {
      case .leaf(let outcome): [([], outcome)]
      case .fork(let branches):
        branches.flatMap { branch in branch.tree.paths.map { ([branch.values] + $0, $1) } }
      }
    }
  }
}
