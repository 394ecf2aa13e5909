/// When an item is blamed for what the service refuses. This is the only place that says so:
///
/// - **At once, also if it is the only item**: only for what its user gave. That is a value, a check, a
///   rule that raises for the row, and a missing or unknown value of a column that the item carries.
/// - **If another item of its kind got through meanwhile**: for everything else. The item is searched, set
///   aside, and parked when it is refused again after another one was stored.
/// - **Otherwise never**: it is the schema's or the server's fault. The kind waits, `problems` names it, and
///   all is sent after the repair.
///
/// So a column that the item does not carry, or that the library sets, parks nothing by itself: no screen
/// has a field for it.
public enum BlamePolicy {
  /// What a refusal is about, as far as its code tells.
  public enum Ground: CaseIterable, Sendable {
    /// A value, a check, or a rule that raises for the row.
    case value
    /// A column's value: it is missing, or not one of the values that the column may have.
    case column
    /// Anything else: a policy, a constraint of no column.
    case other
  }

  /// What the refusal names.
  public enum Named: CaseIterable, Sendable {
    /// A column that the user fills in.
    case given
    /// A column that the item does not carry, or a value that the library sets.
    case own
    case nothing
  }

  /// Whether the item is blamed at once.
  public static func isForGiven(_ ground: Ground, naming named: Named) -> Bool {
    switch ground {
    case .value: named != .own
    case .column: named == .given
    case .other: false
    }
  }
}
