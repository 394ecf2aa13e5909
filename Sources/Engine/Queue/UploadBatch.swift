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
    /// What the summary counts of it; nil for a kind that is not counted.
    let registered: Registered?

    init(_ row: QueueRow, _ item: QueueItem, _ registered: Registered?) {
      sequence = row.sequence
      tag = row.item
      id = item.id
      attempts = row.attempts
      denials = row.denials
      isRevised = item.isRevised
      self.registered = registered
    }
  }

  let owner: [UInt8]
  let org: UUID
  let kind: QueueKind
  let items: [Item]
  /// The refusal to record if the read-back finds nothing.
  let doubt: Rejection?

  init(owner: [UInt8], org: UUID, kind: QueueKind, items: [Item], doubt: Rejection? = nil) {
    self.owner = owner
    self.org = org
    self.kind = kind
    self.items = items
    self.doubt = doubt
  }

  var isEmpty: Bool { items.isEmpty }

  /// The highest number of failed attempts among the items.
  var attempts: Int64 { items.reduce(0) { max($0, $1.attempts) } }

  func with(_ items: [Item]) -> UploadBatch {
    UploadBatch(owner: owner, org: org, kind: kind, items: items, doubt: doubt)
  }

  func filter(_ isIncluded: (Item) -> Bool) -> UploadBatch { with(items.filter(isIncluded)) }

  func doubted(_ doubt: Rejection) -> UploadBatch {
    UploadBatch(owner: owner, org: org, kind: kind, items: items, doubt: doubt)
  }
}
