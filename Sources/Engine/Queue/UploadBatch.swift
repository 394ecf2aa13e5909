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
    private(set) var history: FailureHistory
    let retryGroup: RetryGroup
    let size: Int64
    let pause: Pause
    /// The row under its id may have another payload.
    let isRevised: Bool
    /// What earlier requests have sent, if anything, is not known.
    private let isOfUnknownRow: Bool
    /// It goes once the server is believed not to have it.
    let isCancelled: Bool
    /// The server had nothing of it before this request, so a row that was there is not this item's.
    var isFirstAttempt: Bool { attempts == 0 && !isCancelled && !isCorrection }
    /// It waits for itself because the server refused it.
    private let waitsRefused: Bool
    /// The server refused it before, for what no user gave, and nothing else failed since.
    var isRefused: Bool { waitsRefused || history.isRefused }
    /// That there is a row does not tell which of its payloads the server has.
    var isUnsure: Bool { !isFirstAttempt && isRevised || isCancelled }
    /// The row tells what becomes of it, and not only that there is one.
    var isCompared: Bool { isFirstAttempt || isCorrection || isOfUnknownRow && !isCancelled }
    /// Once the server has it, it can go on as a correction. An edit can only if it is known what was sent.
    func mayFollow(_ kind: QueueKind) -> Bool {
      isCancelled
        ? kind.own?.deletion != nil : kind.own?.change != nil && content?.sent?.count ?? 0 > 0
    }
    /// It changes or deletes a stored row.
    var isCorrection: Bool { content?.stored != nil }
    /// An item that is cancelled deletes what the server may have of it.
    var operation: UploadSituation.Operation {
      switch content?.operation {
      case .change: .change
      case .delete: .deletion
      case .insert, nil: isCancelled ? .deletion : .insert
      }
    }
    /// What the summary counts of it; nil for a kind that it does not count.
    let counted: Counted?
    /// The item as it is sent, of a kind whose stored rows are kept.
    let content: QueueItem?
    /// The row, as the server has shown it.
    private(set) var found: JSON?

    init(_ row: QueueRow, _ item: QueueItem, _ counted: Counted?, isKept: Bool) {
      content = isKept || item.stored != nil ? item : nil
      sequence = row.sequence
      tag = row.item
      id = item.id
      attempts = row.attempts
      history = row.history
      retryGroup = row.retryGroup
      size = row.size
      pause = row.pause
      waitsRefused = row.rejection != nil
      isRevised = item.isRevised
      isOfUnknownRow = item.isRevised && item.sent?.count ?? 0 == 0
      isCancelled = item.isCancelled
      self.counted = counted
    }

    /// The columns of its row once it is stored; nil: they are not known, or the row is gone.
    var values: JSON? {
      if let found { return found }
      guard let content, content.operation != .delete else { return nil }
      return content.stored?.row.laidOver(by: content.payload) ?? content.payload
    }

    /// Its row is not there any more: it has deleted it, or others have, which the row shows.
    var isGone: Bool {
      found?.showsDeletion ?? (content?.operation == .delete)
    }

    func noteFound(_ row: JSON) { found = row }

    /// The server has refused it beside others that it stored, which have the group `since` or an older one.
    func noteRefused(since group: RetryGroup) {
      if history.isClean { history = .refused(since: group) }
    }
  }

  /// Why the server is asked for items.
  struct Inquiry {
    let cause: UploadSituation.Cause
    /// Why the items are parked, if they are.
    let reason: ParkReason?
    /// The upload had one item.
    let isOfOne: Bool
    /// When it was answered, by the monotonic clock.
    let sinceMS: Int64
    /// A later answer does not tell what was refused when the items were.
    private static var maxAgeMS: Int64 { 60_000 }

    func cause(_ now: Instant) -> UploadSituation.Cause {
      let isOld = now.monotonicMS - sinceMS > Inquiry.maxAgeMS
      return isOld && cause.isAboutTheWay ? .longAgo : cause
    }
  }

  let owner: [UInt8]
  let key: [UInt8]
  let org: UUID?
  /// Whose session sends it.
  let user: UUID?
  let kind: QueueKind
  /// The columns that the items were accepted with.
  let columns: [String]
  let items: [Item]
  let request: UploadSituation.Request
  /// nil for an upload.
  let inquiry: Inquiry?

  init(
    owner: [UInt8], key: [UInt8], org: UUID?, user: UUID? = nil, kind: QueueKind, columns: [String],
    items: [Item], request: UploadSituation.Request = .upload, inquiry: Inquiry? = nil
  ) {
    self.owner = owner
    self.key = key
    self.org = org
    self.user = user
    self.kind = kind
    self.columns = columns
    self.items = items
    self.request = request
    self.inquiry = inquiry
  }

  var isEmpty: Bool { items.isEmpty }

  /// Whether the answer is to tell if the way to the service is open.
  var asksAboutTheWay: Bool { inquiry?.cause.isAboutTheWay ?? false }

  /// Whether the items change or delete stored rows: all do, or none, as their batch key says.
  var isCorrection: Bool { items.first?.isCorrection ?? false }

  /// Whether the request calls a function, which has a result for each row.
  var isByFunction: Bool { isCorrection ? kind.own?.correctsMany ?? false : kind.upload == .rpc }

  /// What the items do, as far as the first one tells: changes and deletions share requests.
  var operation: UploadSituation.Operation { items.first?.operation ?? .insert }

  /// The highest number of failed attempts among the items.
  var attempts: Int64 { items.reduce(0) { max($0, $1.attempts) } }

  var size: Int64 { items.reduce(0) { $0 + $1.size } }

  /// The single item that fails alone; nil: it is none.
  var alone: Item? { items.count == 1 && items[0].history.isAlone ? items[0] : nil }

  func with(_ items: [Item]) -> UploadBatch { copy(items, request, inquiry) }

  func filter(_ isIncluded: (Item) -> Bool) -> UploadBatch { with(items.filter(isIncluded)) }

  func asking(_ request: UploadSituation.Request, _ inquiry: Inquiry? = nil) -> UploadBatch {
    copy(items, request, inquiry ?? self.inquiry)
  }

  private func copy(
    _ items: [Item], _ request: UploadSituation.Request, _ inquiry: Inquiry?
  ) -> UploadBatch {
    UploadBatch(
      owner: owner, key: key, org: org, user: user, kind: kind, columns: columns, items: items,
      request: request, inquiry: inquiry)
  }

  /// Whether an item of the batch is blamed at once for a refused row (`BlamePolicy`).
  func isBlamed(for outcome: RestOutcome, _ error: ServerError) -> Bool {
    // That other rows refer to one concerns the row that is to be deleted, and no other. What the library sets
    // refers to none of them.
    if operation == .deletion, outcome == .missingParent,
      !setColumns.contains(where: { error.names($0, of: kind.table) })
    {
      return true
    }
    guard let ground = outcome.ground else { return true }
    return BlamePolicy.isForGiven(ground, naming: named(by: error))
  }

  /// The columns that say whose row it is.
  private var setColumns: [String] { org == nil ? ["user_id"] : ["user_id", "org_id"] }

  private func named(by error: ServerError) -> BlamePolicy.Named {
    let own = ["id"] + setColumns
    func names(_ column: String) -> Bool { error.names(column, of: kind.table) }
    // A missing value may be of a column that a payload leaves out.
    let given = error.code == "23502" ? kind.columns + columns : columns
    if given.contains(where: { !own.contains($0) && names($0) }) { return .given }
    // Another row has this item's id, and only this item has it.
    if error.code == "23505", error.names("pkey", of: kind.table) { return .given }
    let isOwn =
      error.column != nil || own.contains(where: names)
      || error.quotes(items.map { $0.id.text } + [org?.text, user?.text].compactMap { $0 })
    return isOwn ? .own : .nothing
  }

  /// Whether the server lacks a column of the items that the configuration does not list any more. A
  /// column that it lists may still come: an app may know it before the server does.
  func lacksColumn(_ response: HTTPResponse) -> Bool {
    guard let column = ServerError.read(response.body).column else { return false }
    return columns.contains(column) && !kind.accepts(column)
  }
}
