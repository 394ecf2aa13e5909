import Base
import Policy
import Store
import Supabase
import Vault

/// Why an item is parked. It is sealed in the item's row.
final class Rejection {
  /// A `MessageCode`.
  let code: String
  let sqlstate: String?
  let message: String?
  let field: String?

  init(code: String, sqlstate: String? = nil, message: String? = nil, field: String? = nil) {
    self.code = code
    self.sqlstate = sqlstate
    self.message = message
    self.field = field
  }

  convenience init(_ code: MessageCode) { self.init(code: code.rawValue) }

  /// A request that something on the way to the service refused.
  static func blocked(_ response: HTTPResponse) -> Rejection {
    Rejection(code: MessageCode.blocked.rawValue, message: "status \(response.status)")
  }

  /// A refused request.
  convenience init(code: String, _ response: HTTPResponse) {
    let error = ServerError.read(response.body)
    self.init(code: code, sqlstate: error.code, message: error.message, field: error.column)
  }

  /// A row that a function refused.
  convenience init(_ row: RowResult) {
    let code =
      row.status == .conflict
      ? MessageCode.conflict.rawValue : Rejection.code(ofSQLState: row.sqlstate)
    self.init(code: code, sqlstate: row.sqlstate, message: row.message, field: row.column)
  }

  private static func code(ofSQLState sqlstate: String?) -> String {
    switch RestOutcome(sqlstate: sqlstate) {
    case .itemFault(let fault): return fault.rawValue
    case .duplicateKey: return ItemFault.duplicate.rawValue
    case .missingParent: return MessageCode.missingParent.rawValue
    default: return ItemFault.rejected.rawValue
    }
  }

  var json: JSON {
    [
      "code": .string(code), "sqlstate": JSON(sqlstate), "message": JSON(message),
      "field": JSON(field),
    ]
  }

  // MARK: Sealing

  func sealed(for row: QueueRow, _ key: Key) throws(Failure) -> [UInt8] {
    try key.seal(json, Rejection.context(row))
  }

  /// The rejection of a parked item; nil when there is none or it does not open.
  static func read(_ row: QueueRow, _ key: Key) throws(Failure) -> JSON? {
    guard let sealed = row.rejection else { return nil }
    return try key.openJSON(sealed, context(row))
  }

  static func context(_ row: QueueRow) -> SealContext {
    QueueItem.context(row.item, row.owner, "verdict")
  }
}

extension RestOutcome {
  /// The outcome for one row that a function refused with this code.
  init(sqlstate: String?) {
    self = RestClassification.rest(
      ResponseFacts(status: 400, code: sqlstate, isServerJSON: true))
  }
}

extension RestOutcome {
  /// A read that asks for fewer columns may be answered.
  var mayConcernColumns: Bool {
    switch self {
    case .denied, .schemaNotReady, .serverBug, .tooLarge, .statementTimeout, .unknownRejection: true
    default: false
    }
  }

  /// The data service itself refused the request, and not because of a passing fault.
  func isOwnRefusal(_ response: HTTPResponse) -> Bool {
    self != .transient && RestClassification.isOwn(response.facts)
  }

  /// The data service has refused the rows for what they are, so it works.
  var isVerdictOnRows: Bool {
    switch self {
    case .itemFault, .duplicateKey, .missingParent, .denied: true
    default: false
    }
  }
}
