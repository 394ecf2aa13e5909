import Base
import Policy
import Store
import Supabase
import Vault

/// Items that share a request, sorted by id: two batches with the same ids in opposite order deadlock
/// on the server (measured).
final class UploadBatch {
  final class Item {
    let sequence: Int64
    let tag: [UInt8]
    let id: UUID
    let attempts: Int64
    let denials: Int64
    /// The server may have an older payload.
    let isRevised: Bool
    /// It goes if the server does not have it.
    let isCancelled: Bool
    /// Nothing was sent before this request, so a row that was there is not this item's.
    var isFirstAttempt: Bool { attempts == 0 && !isRevised && !isCancelled }
    /// What the summary counts of it; nil for a kind that it does not count.
    let registered: Registered?

    init(_ row: QueueRow, _ item: QueueItem, _ registered: Registered?) {
      sequence = row.sequence
      tag = row.item
      id = item.id
      attempts = row.attempts
      denials = row.denials
      isRevised = item.isRevised
      isCancelled = item.isCancelled
      self.registered = registered
    }
  }

  let owner: [UInt8]
  let org: UUID
  let kind: QueueKind
  /// The columns that the items were accepted with.
  let columns: [String]
  let items: [Item]
  /// The refusal to record if the read-back finds nothing.
  let doubt: Rejection?
  /// A read-back asks for the rows' values, too, to compare them with the items.
  let comparesRows: Bool

  init(
    owner: [UInt8], org: UUID, kind: QueueKind, columns: [String], items: [Item],
    doubt: Rejection? = nil, comparesRows: Bool = false
  ) {
    self.owner = owner
    self.org = org
    self.kind = kind
    self.columns = columns
    self.items = items
    self.doubt = doubt
    self.comparesRows = comparesRows
  }

  var isEmpty: Bool { items.isEmpty }

  /// The highest number of failed attempts among the items.
  var attempts: Int64 { items.reduce(0) { max($0, $1.attempts) } }

  func with(_ items: [Item]) -> UploadBatch {
    copy(items, doubt: doubt, comparesRows: comparesRows)
  }

  func filter(_ isIncluded: (Item) -> Bool) -> UploadBatch { with(items.filter(isIncluded)) }

  func doubted(_ doubt: Rejection) -> UploadBatch {
    copy(items, doubt: doubt, comparesRows: comparesRows)
  }

  func comparing(_ comparesRows: Bool) -> UploadBatch {
    copy(items, doubt: doubt, comparesRows: comparesRows)
  }

  private func copy(_ items: [Item], doubt: Rejection?, comparesRows: Bool) -> UploadBatch {
    UploadBatch(
      owner: owner, org: org, kind: kind, columns: columns, items: items, doubt: doubt,
      comparesRows: comparesRows)
  }

  /// Whether the server lacks a column of the items that the configuration does not list any more. A
  /// column that it lists may still come: an app may know it before the server does.
  func lacksColumn(_ response: HTTPResponse) -> Bool {
    guard let column = ServerError.read(response.body).column else { return false }
    return columns.contains(column) && !kind.accepts(column)
  }
}
