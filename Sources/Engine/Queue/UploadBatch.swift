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
    let blocks: Int64
    /// Grows with each failure of the batch or of the item.
    let retryGroup: Int64
    let size: Int64
    let notBefore: SteadyTime
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
      blocks = row.blocks
      retryGroup = row.retryGroup
      size = row.size
      notBefore = row.notBefore
      isRevised = item.isRevised
      isCancelled = item.isCancelled
      self.registered = registered
    }
  }

  /// Something on the way to the service refused the upload.
  final class Block {
    /// By the monotonic clock.
    let sinceMS: Int64
    /// The upload had one item.
    let isOfOne: Bool
    /// An outage gives the same answer.
    let mayPass: Bool
    /// The refusal is the service's own (a token), so nothing of the upload is stored.
    let isOwn: Bool
    /// The parts of one upload are read back one by one, and it counts once.
    var isCounted = false

    init(_ batch: UploadBatch, mayPass: Bool, _ response: HTTPResponse, _ now: Instant) {
      self.mayPass = mayPass
      isOwn = response.isOwn(.upload)
      sinceMS = now.monotonicMS
      isOfOne = batch.items.count == 1
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
  /// The refusal to record if the read-back finds nothing.
  let doubt: Rejection?
  /// Why the read-back is made, if something on the way refused the upload.
  let block: Block?
  /// What a read-back asks.
  let question: Question

  enum Question {
    /// Which of the items the server has.
    case ids
    /// That, and the rows' values, to compare them with the items.
    case rows
    /// About an id that nobody has: whether anything is answered.
    case control
  }

  init(
    owner: [UInt8], key: [UInt8], org: UUID?, user: UUID? = nil, kind: QueueKind, columns: [String],
    items: [Item],
    doubt: Rejection? = nil, block: Block? = nil, question: Question = .ids
  ) {
    self.owner = owner
    self.key = key
    self.org = org
    self.user = user
    self.kind = kind
    self.columns = columns
    self.items = items
    self.doubt = doubt
    self.block = block
    self.question = question
  }

  var comparesRows: Bool { question == .rows }

  var isEmpty: Bool { items.isEmpty }

  /// The highest number of failed attempts among the items.
  var attempts: Int64 { items.reduce(0) { max($0, $1.attempts) } }

  var size: Int64 { items.reduce(0) { $0 + $1.size } }

  /// This is one item that was found to be at fault.
  var isSetAside: Bool { items.count == 1 && items[0].blocks > 0 }

  func with(_ items: [Item]) -> UploadBatch {
    copy(items, doubt: doubt, block: block, question)
  }

  func filter(_ isIncluded: (Item) -> Bool) -> UploadBatch { with(items.filter(isIncluded)) }

  func doubted(_ doubt: Rejection, block: Block? = nil) -> UploadBatch {
    copy(items, doubt: doubt, block: block, question)
  }

  func asking(_ question: Question) -> UploadBatch {
    copy(items, doubt: doubt, block: block, question)
  }

  private func copy(
    _ items: [Item], doubt: Rejection?, block: Block?, _ question: Question
  ) -> UploadBatch {
    UploadBatch(
      owner: owner, key: key, org: org, user: user, kind: kind, columns: columns, items: items,
      doubt: doubt,
      block: block, question: question)
  }

  /// Whether an item of the batch is blamed at once for a refused row (`BlamePolicy`).
  func isBlamed(for outcome: RestOutcome, _ error: ServerError) -> Bool {
    guard let ground = outcome.ground else { return true }
    return BlamePolicy.isForGiven(ground, naming: named(by: error))
  }

  private func named(by error: ServerError) -> BlamePolicy.Named {
    var own = ["id", "user_id"]
    if org != nil { own.append("org_id") }
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
