import Policy

/// A table of rules, generated from the code. It tries all combinations of the values of some axes,
/// merges combinations with the same outcome, and leaves out values that make no difference.
public struct DecisionTable: Sendable {
  /// A column: an axis with all or some of its values.
  struct Column: Sendable {
    let name: String
    let values: [String]

    init(_ name: String, _ values: [String]) {
      self.name = name
      self.values = values
    }

    /// The bit of a value in the mask of a cell. What is no axis has bits above those of all axes.
    func bit(_ value: String) -> UInt64 {
      if let axis = Axis.named(name), let number = axis.values.firstIndex(of: value) {
        return axis.bit(number)
      }
      guard let number = values.firstIndex(of: value) else { preconditionFailure("no \(value)") }
      return 1 << UInt64(Axis.all.reduce(number) { $0 + $1.values.count })
    }

    /// The bits of all values, also of those that this column leaves out.
    var bits: UInt64 { Axis.named(name)?.bits ?? values.reduce(0) { $0 | bit($1) } }

    /// An axis with all its values, or with `values`.
    static func axis(_ name: String, _ values: [String]? = nil) -> Column {
      Column(name, values ?? Axis.named(name)?.values ?? [])
    }
  }

  /// A row: for each column the indices of the values that fit, and the outcome.
  public struct Row: Sendable {
    let values: [[Int]]
    let outcome: [String]
  }

  let title: String
  let text: String
  let columns: [Column]
  let outcomes: [String]
  public private(set) var rows: [Row] = []

  /// `outcome` returns the outcome for one value of each column. The order of the columns
  /// determines how many rows can be merged.
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

  /// A decision tree in which equal branches are merged.
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
