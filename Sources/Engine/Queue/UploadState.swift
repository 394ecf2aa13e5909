import Base
import Policy
import Supabase

/// The state of this process's uploads that is not in the queue's rows.
final class UploadState {
  /// How long no control is asked after one that was not answered.
  private static var controlPauseMS: Int64 { 600_000 }

  private let revision: Revision
  /// Batches whose ids must be read back.
  private(set) var readBacks: [UploadBatch] = [] { didSet { revision.advance() } }
  /// When a control was last not answered, if no upload was judged since.
  private var unansweredMS: Int64?
  /// The batch size for items of which nothing is known.
  private(set) var batchSize = BatchSize()
  /// Leased items that are sent in several requests.
  var hand: UploadHand? { didSet { revision.advance() } }
  /// The batch keys of items whose kind this handle's configuration does not list.
  private var unknownKinds: [[UInt8]] = []
  /// Whether uploads get through: all of them, and those of each batch key.
  private var proof = UploadProof()
  private var proofs: [(key: [UInt8], proof: UploadProof)] = []
  /// How large an upload may be.
  private var size = UploadSize()
  /// How many uploads of each kind the service has judged.
  private var judged: [(kind: String, count: Int)] = []
  /// The items that were refused on the way, each with what `judged` was at the first refusal and at
  /// the last one.
  private var blocked: [(sequence: Int64, first: Int, last: Int)] = []
  /// How many uploads of new items in a row were refused on the way.
  private(set) var blockedInARow = 0

  init(_ revision: Revision) { self.revision = revision }

  func add(readBack: UploadBatch) { readBacks.append(readBack) }

  /// Ask before all others whether anything is answered: it tells about them, too.
  func add(control batch: UploadBatch) { readBacks.insert(batch.asking(.control), at: 0) }

  func noteUnansweredControl(_ now: Instant) { unansweredMS = now.monotonicMS }

  /// In an outage not every refusal is followed by another question.
  func mayAskControl(_ now: Instant) -> Bool {
    guard let unansweredMS else { return true }
    return now.monotonicMS - unansweredMS >= UploadState.controlPauseMS
  }

  func removeFirstReadBack() { readBacks.removeFirst() }

  func removeReadBacks() { readBacks = [] }

  /// Remove and return the read-backs of uploads that were refused on the way.
  func takeBlockedReadBacks() -> [UploadBatch] {
    let taken = readBacks.filter { $0.block != nil }
    if !taken.isEmpty { readBacks.removeAll { $0.block != nil } }
    return taken
  }

  // MARK: Judged or not

  /// The service has judged an upload: it stored items, or refused them for what they are.
  func noteJudged(_ batch: UploadBatch, _ now: Instant) {
    let nowMS = now.monotonicMS
    proof.judge(at: nowMS)
    proofs[place(of: batch.key)].proof.judge(at: nowMS)
    size.judge()
    blockedInARow = 0
    unansweredMS = nil
    if let place = judged.firstIndex(where: { $0.kind == batch.kind.name }) {
      judged[place].count += 1
    } else {
      judged.append((batch.kind.name, 1))
    }
  }

  /// An upload failed, and the failure blames no item. Returns whether uploads of its batch key, or any,
  /// get through nevertheless.
  func noteFailed(_ batch: UploadBatch, _ fault: UploadFault, _ now: Instant) -> Bool {
    guard fault == .batchKey else { return proof.fail(at: now.monotonicMS) }
    return proofs[place(of: batch.key)].proof.fail(at: now.monotonicMS)
  }

  /// The items of this batch key wait: the next upload has one of them. Returns how many times in a row
  /// they did.
  func noteWait(_ batch: UploadBatch) -> Int { proofs[place(of: batch.key)].proof.wait() }

  private func place(of key: [UInt8]) -> Int {
    if let place = proofs.firstIndex(where: { $0.key == key }) { return place }
    proofs.append((key, UploadProof()))
    return proofs.count - 1
  }

  /// An upload was too large, or took the server too long.
  func noteTooLarge(_ batch: UploadBatch) { size.refuse(items: batch.items.count) }

  /// How many items the next upload of this batch key may have.
  func maxItems(of key: [UInt8], isProbing: Bool, isTight: Bool = false) -> Int {
    let isOfOne = isProbing || proofs.contains { $0.key == key && $0.proof.isProbing }
    return min(BatchPolicy.items(probing: isOfOne, isTight: isTight), size.maxItems)
  }

  // MARK: Refused on the way

  /// An upload was refused on the way.
  func noteBlocked() { blockedInARow += 1 }

  /// Whether the service has judged other uploads of the kind since this process first saw the item
  /// refused on the way; the first time, whether it has judged any. `mayPass`: since it saw the last
  /// refusal, because an outage gives the same answer.
  func othersWereJudged(since sequence: Int64, kind: String, mayPass: Bool) -> Bool {
    let count = judged.first { $0.kind == kind }?.count ?? 0
    guard let place = blocked.firstIndex(where: { $0.sequence == sequence }) else {
      blocked.append((sequence, count, count))
      return count > 0
    }
    let before = mayPass ? blocked[place].last : blocked[place].first
    blocked[place].last = count
    return count > before
  }

  func forgetBlocked(_ sequence: Int64) { blocked.removeAll { $0.sequence == sequence } }

  func isOfUnknownKind(_ batchKey: [UInt8]) -> Bool { unknownKinds.contains(batchKey) }

  func add(unknownKind batchKey: [UInt8]) {
    if !isOfUnknownKind(batchKey) { unknownKinds.append(batchKey) }
  }

  /// Items are being refused: each costs less in a small batch.
  func shrinkBatches() { batchSize.refuse() }

  /// A batch of so many items was stored.
  func growBatches(_ count: Int) { batchSize.store(count) }
}
