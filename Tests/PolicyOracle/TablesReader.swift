import Policy

/// Reads the tables of the document in their order, as a person would.
struct TablesReader {
  private let session: [Line]
  private let lock: [Line]
  private let prompt: [Line]
  private let place: [Line]
  private let banners: [Line]

  init(_ document: DecisionsDocument) {
    session = TablesReader.lines(document.session)
    lock = TablesReader.lines(document.lock)
    prompt = TablesReader.lines(document.prompt)
    place = TablesReader.lines(document.place)
    banners = TablesReader.lines(document.banners)
  }

  /// The decision for a cell; nil if the tables do not name exactly one.
  func decision(_ cell: UInt64) -> Decision? {
    guard let session = only(session, cell) else { return nil }
    guard session.next == 2 else { return session.decision }
    guard let lock = only(lock, cell) else { return nil }
    let arrival: UInt64
    switch lock.next {
    case 3:
      guard let prompt = only(prompt, cell) else { return nil }
      guard prompt.next == 4 else {
        guard prompt.isMessageOf2 else { return prompt.decision }
        guard var decision = prompt.decision, let message = lock.message else { return nil }
        decision.message = message
        return decision
      }
      arrival = Column.unlocked
    case 4: arrival = Column.arrival(of: cell)
    default: return nil
    }
    guard var decision = only(place, cell | arrival)?.decision, let banners = only(banners, cell)
    else { return nil }
    decision.stale = banners.words.contains("stale")
    decision.offline = banners.words.contains("offline")
    return decision
  }

  private typealias Column = DecisionTable.Column

  private struct Line {
    /// The values that fit, one bit each.
    let cube: UInt64
    /// The table to go on with.
    let next: Int?
    let message: MessageCode?
    let isMessageOf2: Bool
    /// Without its message where that is the one of table 2.
    let decision: Decision?
    let words: [String]
  }

  /// The line that fits; nil unless exactly one does.
  private func only(_ lines: [Line], _ cell: UInt64) -> Line? {
    guard let first = lines.firstIndex(where: { cell & ~$0.cube == 0 }) else { return nil }
    let others = lines[(first + 1)...]
    return others.contains { cell & ~$0.cube == 0 } ? nil : lines[first]
  }

  private static func lines(_ table: DecisionTable) -> [Line] {
    table.rows.map { row in
      var cube = UInt64.max
      for (column, numbers) in zip(table.columns, row.values) {
        let fitting = numbers.reduce(0) { $0 | column.bit(column.values[$1]) }
        cube &= ~column.bits | fitting
      }
      let cells = row.outcome
      let words = cells.last?.components(of: ",") ?? []
      let isMessageOf2 = cells.count > 1 && cells[1] == "of 2"
      let message = cells.count > 1 ? MessageCode(rawValue: cells[1]) : nil
      let decision = Screen(rawValue: cells[0]).map { screen in
        Decision(
          screen, message, lock: words.contains("lock"), forget: words.contains("forget"),
          chooseOnly: words.contains("choose"), canUnlock: words.contains("again"))
      }
      return Line(
        cube: cube, next: cells[0].hasPrefix("→ ") ? Int(cells[0].dropFirst(2)) : nil,
        message: message, isMessageOf2: isMessageOf2, decision: decision, words: words)
    }
  }
}
