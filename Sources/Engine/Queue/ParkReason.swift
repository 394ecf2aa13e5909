import Base
import Policy
import Store
import Supabase
import Vault

/// Why an item is parked. It is sealed in the item's row.
final class ParkReason {
  let code: MessageCode
  let sqlstate: String?
  let message: String?
  let field: String?
  /// Whether an item is blamed at once (`BlamePolicy`).
  let isForGiven: Bool
  /// What others have changed, of a correction (`QueueItem.conflict`).
  let conflict: JSON?

  init(
    _ code: MessageCode, sqlstate: String? = nil, message: String? = nil, field: String? = nil,
    isForGiven: Bool = true, conflict: JSON? = nil
  ) {
    self.conflict = conflict
    self.code = code
    self.sqlstate = sqlstate
    self.message = message
    self.field = field
    self.isForGiven = isForGiven
  }

  /// A request that something on the way to the service refused.
  static func blocked(_ response: HTTPResponse) -> ParkReason {
    ParkReason(.blocked, message: "status \(response.status)")
  }

  /// A refused request.
  convenience init(_ code: MessageCode, _ response: HTTPResponse) {
    let error = ServerError.read(response.body)
    self.init(code, sqlstate: error.code, message: error.message, field: error.column)
  }

  /// A request of this batch that is refused for a row.
  convenience init(_ outcome: RestOutcome, _ batch: UploadBatch, _ response: HTTPResponse) {
    let error = ServerError.read(response.body)
    self.init(
      outcome.rejectionCode(batch), sqlstate: error.code, message: error.message,
      field: error.column, isForGiven: batch.isBlamed(for: outcome, error))
  }

  /// A row of this batch that a function refused. Without a code it is the function's own rule.
  /// `isBesideOthers`: it stored others meanwhile, so the item is at fault.
  convenience init(_ row: RowResult, _ batch: UploadBatch, isBesideOthers: Bool = false) {
    let outcome = row.outcome
    let error = ServerError(code: row.sqlstate, message: row.message, column: row.column)
    self.init(
      row.status == .conflict ? .conflict : outcome?.rejectionCode(batch) ?? .rejected,
      sqlstate: row.sqlstate, message: row.message, field: row.column,
      isForGiven: isBesideOthers || outcome.map { batch.isBlamed(for: $0, error) } ?? true)
  }

  var json: JSON {
    [
      "code": .string(code.rawValue), "sqlstate": JSON(sqlstate), "message": JSON(message),
      "field": JSON(field), "conflict": conflict ?? .null,
    ]
  }

  // MARK: Sealing

  func sealed(for row: QueueRow, _ key: Key) throws(Failure) -> [UInt8] {
    try key.seal(json, ParkReason.context(row))
  }

  /// The rejection of a parked item; nil when there is none or it does not open.
  static func read(_ row: QueueRow, _ key: Key) throws(Failure) -> JSON? {
    guard let sealed = row.rejection else { return nil }
    return try key.openJSON(sealed, context(row))
  }

  static func context(_ row: QueueRow) -> SealContext {
    QueueItem.context(row.item, row.owner, "rejection")
  }
}

extension RestOutcome {
  /// The outcome for one row that a function refused with this code.
  init(sqlstate: String?, _ message: String?) {
    self = RestClassification.rest(
      ResponseFacts(status: 400, code: sqlstate, description: message, isServerJSON: true))
  }
}

extension RestOutcome {
  /// The `MessageCode` of a refused row.
  fileprivate func rejectionCode(_ batch: UploadBatch) -> MessageCode {
    switch self {
    case .itemFault(let fault, _): fault
    case .duplicateKey: .duplicate
    // Other rows refer to it.
    case .missingParent where batch.operation == .deletion: .serverRule
    case .missingParent: .missingParent
    default: .rejected
    }
  }
}

extension RowResult {
  /// What the code of a refused row means; nil: the row was not refused by a code.
  var outcome: RestOutcome? {
    status == .rejected && sqlstate != nil ? RestOutcome(sqlstate: sqlstate, message) : nil
  }
}
