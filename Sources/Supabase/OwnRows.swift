import Base

/// What the library keeps of the user's own stored rows of a kind, and how the user corrects them.
public final class OwnRows {
  /// How a stored row is taken back.
  public enum Deletion: String, CaseIterable, Sendable {
    /// The column gets the time of the deletion; the row stays.
    case deletedAt = "deleted_at"
    /// The row is deleted.
    case row
  }

  /// How stored rows are changed.
  public struct Change {
    /// The columns that the user may change.
    public let columns: [String]
    /// Changes many rows in one call; empty: each change is a request of its own.
    public let function: String
    /// The column for the id of a row's last change; empty: there is none. With it, a change whose answer is
    /// lost is known to be stored, or that it may have been, if another change has taken its place.
    public let id: String
  }

  /// The size of the largest row that is kept, as text. An item has half of it, and the server may write more than it
  /// was sent.
  public static var maxBytes: Int { 524_288 }

  /// The columns that are kept, with `id` and `updated_at`.
  public let columns: [String]
  /// Rows are kept whose time is at most so many days ago.
  public let days: Int64
  /// The column with the time of a row, by which rows are listed: one of `columns`, or `updated_at`.
  public let time: String
  /// nil: stored rows cannot be changed.
  public let change: Change?
  /// nil: stored rows cannot be taken back.
  public let deletion: Deletion?

  private init(
    columns: [String], days: Int64, time: String, change: Change?, deletion: Deletion?
  ) {
    (self.columns, self.days, self.time) = (columns, days, time)
    (self.change, self.deletion) = (change, deletion)
  }

  /// Whether one request takes many corrections.
  public var correctsMany: Bool { change.map { !$0.function.isEmpty } ?? false }

  /// The columns of a request for such rows.
  public var selected: [String] {
    var result = ["id", "updated_at"]
    if deletion == .deletedAt { result.append("deleted_at") }
    return result + columns.filter { !result.contains($0) }
  }

  /// Reads the members `own`, `change` and `delete` of a kind with these columns.
  static func read(
    _ kind: Fields, _ columns: [String]
  ) throws(Failure) -> OwnRows? {
    guard let fields = try kind.fields(ifPresent: "own", known: ["columns", "days", "time"]) else {
      for name in ["change", "delete"] as [StaticCString] where kind.optional(name) != nil {
        throw Failure(
          .requestMissingField, "rows are corrected that are kept: \"own\" is required",
          field: kind.pointer("own"))
      }
      return nil
    }
    let kept = try Identifier.readAll("columns", in: fields) ?? columns
    for (index, column) in kept.enumerated() where reserved.contains(column) {
      throw Failure(
        .requestInvalidValue, "the library adds \"\(column)\" itself",
        field: "\(fields.pointer("columns"))/\(index)")
    }
    let standard = kept.contains("occurred_at") ? "occurred_at" : "updated_at"
    let time = try Identifier.read("time", in: fields, default: standard)
    guard time == "updated_at" || kept.contains(time) else {
      throw fields.invalid("time", "one of the columns that are kept is expected, or updated_at")
    }
    return OwnRows(
      columns: kept, days: try fields.integer(ifPresent: "days", in: 1...36_500) ?? 400,
      time: time, change: try readChange(kind, columns, kept),
      deletion: try kind.choice(ifPresent: "delete", Deletion.self))
  }

  private static var reserved: [String] {
    ["id", "org_id", "user_id", "updated_at", "deleted_at"]
  }

  private static func readChange(
    _ kind: Fields, _ columns: [String], _ kept: [String]
  ) throws(Failure) -> Change? {
    guard
      let fields = try kind.fields(ifPresent: "change", known: ["columns", "function", "id"])
    else { return nil }
    let listed = try Identifier.readAll("columns", in: fields)
    for (index, column) in (listed ?? []).enumerated()
    where !columns.contains(column) || !kept.contains(column) {
      throw Failure(
        .requestInvalidValue, "a column of the kind is expected that is kept (\"own\")",
        field: "\(fields.pointer("columns"))/\(index)")
    }
    let all = listed ?? columns.filter { kept.contains($0) }
    guard !all.isEmpty else { throw fields.invalid("columns", "at least one is expected") }
    let id = try Identifier.read("id", in: fields, default: "")
    // The library sets it with each change.
    guard !reserved.contains(id), !columns.contains(id) else {
      throw fields.invalid("id", "a column of its own is expected")
    }
    return Change(
      columns: all, function: try Identifier.read("function", in: fields, default: ""), id: id)
  }
}
