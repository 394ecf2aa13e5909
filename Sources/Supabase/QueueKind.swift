import Base

/// How the rows of a kind are uploaded.
public enum Upload: String, CaseIterable, Sendable {
  /// By an insert into the table; the server skips rows that exist already.
  case table
  /// By a call of a function, which returns a result for each row.
  case rpc
}

/// The columns that make a row of a table unique.
public enum PrimaryKey: String, CaseIterable, Sendable {
  case id
  /// A table that is partitioned or distributed by organisation has no unique `id` alone.
  case idAndOrgID = "id_and_org_id"

  /// The columns, as a URL lists them.
  var list: String { self == .id ? "id" : "id,org_id" }
}

/// A kind of queued item: where it is stored on the server, and which columns it has.
public final class QueueKind {
  public let name: String
  public let table: String
  /// The columns that the host may set. The engine adds `id`, `org_id` and, with `hasUser`,
  /// `user_id`.
  public let columns: [String]
  public let upload: Upload
  /// The upload function; empty when there is none and `upload` is `table`.
  public let function: String
  /// The columns that may hold ids of other queued items.
  public let references: [String]
  /// Whether the rows have a `user_id`.
  public let hasUser: Bool
  /// Whether the rows have an `org_id`: not in an app without organisations.
  public let hasOrg: Bool
  public let primaryKey: PrimaryKey
  /// What is kept of the user's stored rows; nil: nothing is.
  public let own: OwnRows?

  init(
    name: String, table: String, columns: [String], upload: Upload, function: String,
    references: [String], hasUser: Bool, hasOrg: Bool = true, primaryKey: PrimaryKey = .id,
    own: OwnRows? = nil
  ) {
    self.name = name
    self.table = table
    self.columns = columns
    self.upload = upload
    self.function = function
    self.references = references
    self.hasUser = hasUser
    self.hasOrg = hasOrg
    self.primaryKey = primaryKey
    self.own = own
  }

  /// Whether a row may have the column.
  public func accepts(_ column: String) -> Bool {
    columns.contains(column) || column == "id" || hasOrg && column == "org_id"
      || hasUser && column == "user_id"
  }

  /// The kinds of the template.
  private static func volunteers(hasOrg: Bool) -> [QueueKind] {
    [
      QueueKind(
        name: "activity", table: "activities",
        columns: ["type", "minutes", "occurred_at", "contact_id", "follows", "note"],
        upload: .table, function: "submit_activities", references: ["contact_id", "follows"],
        hasUser: true,
        hasOrg: hasOrg),
      QueueKind(
        name: "contact", table: "contacts",
        columns: ["name", "municipality", "relation"],
        upload: .table, function: "", references: [], hasUser: false,
        hasOrg: hasOrg),
      QueueKind(
        name: "contact_details", table: "contact_details",
        columns: ["contact_id", "phone", "address", "national_id"],
        upload: .table, function: "", references: ["contact_id"], hasUser: false,
        hasOrg: hasOrg),
    ]
  }

  /// Reads the member `queue`. When it is present, it replaces the template's kinds.
  static func readAll(
    _ backend: Fields, _ template: Template?, hasOrg: Bool
  ) throws(Failure) -> [QueueKind] {
    let standard = template == .volunteers ? volunteers(hasOrg: hasOrg) : []
    guard let queue = backend.optional("queue") else { return standard }
    guard queue.kind == .object else { throw backend.wrongType("queue", "an object of kinds") }
    var result: [QueueKind] = []
    for (name, value) in queue.members {
      let path = backend.pointer("queue") + "/" + JSONPointer.escape(name)
      guard Identifier.isValid(name.utf8) else { throw Identifier.refusal(path) }
      let fields = try Fields(
        value, at: path,
        known: [
          "table", "columns", "upload", "function", "primary_key", "own", "change", "delete",
        ])
      result.append(try read(name, fields, standard.first { $0.name == name }, hasOrg: hasOrg))
    }
    return result
  }

  /// Reads one kind. Members that are absent come from the template's kind with the same name, `known`.
  private static func read(
    _ name: String, _ fields: Fields, _ known: QueueKind?, hasOrg: Bool
  ) throws(Failure) -> QueueKind {
    _ = try fields.required("table")
    let table = try Identifier.read("table", in: fields, default: "")
    let listed = try Identifier.readAll("columns", in: fields)
    guard let all = listed ?? known?.columns else {
      throw Failure(
        .requestMissingField, "this field is required", field: fields.pointer("columns"))
    }
    let columns = all.filter { $0 != "id" && $0 != "user_id" && !(hasOrg && $0 == "org_id") }
    guard !columns.isEmpty else { throw fields.invalid("columns", "at least one is expected") }
    let upload = try fields.choice(ifPresent: "upload", Upload.self) ?? .table
    let function = try Identifier.read("function", in: fields, default: known?.function ?? "")
    guard upload == .table || !function.isEmpty else {
      throw Failure(
        .requestMissingField, "upload \"rpc\" requires a function",
        field: fields.pointer("function"))
    }
    let primaryKey = try fields.choice(ifPresent: "primary_key", PrimaryKey.self) ?? .id
    guard hasOrg || primaryKey == .id else {
      throw fields.invalid("primary_key", "rows have no org_id in an app without organisations")
    }
    let references = known?.references ?? columns.filter { endsWithID($0) }
    let hasUser = all.contains("user_id") || known?.hasUser ?? false
    return QueueKind(
      name: name, table: table, columns: columns, upload: upload, function: function,
      references: references.filter { columns.contains($0) },
      hasUser: hasUser, hasOrg: hasOrg, primaryKey: primaryKey,
      own: try OwnRows.read(fields, columns))
  }

  private static func endsWithID(_ column: String) -> Bool {
    Array(Array(column.utf8).suffix(3)) == Array("_id".utf8)
  }
}
