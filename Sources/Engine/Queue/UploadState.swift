import Base
import Policy
import Supabase

/// The state of this process's uploads that is not in the queue's rows.
final class UploadState {
  /// How long no control is asked after one that was not answered.
  private static var controlPauseMS: Int64 { 600_000 }
  /// Items whose group is forgotten are refused once more before they are parked.
  private static var mostGroups: Int { 512 }

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
  /// How many uploads of each kind, in each organisation, have stored items, and the newest retry group when
  /// the last one did.
  private var stored: [(kind: String, org: UUID?, count: Int, group: Int64)] = []
  /// The retry groups of refused items, each with the one that they got at the first refusal.
  private var refused: [(group: Int64, first: Int64)] = []
  /// The items that fail alone, each with what `stored` was at the first failure and at the last one.
  private var failing: [(sequence: Int64, first: Int, last: Int, tries: Int)] = []
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
  func noteJudged(_ now: Instant) {
    proof.judge(at: now.monotonicMS)
    size.judge()
    blockedInARow = 0
    unansweredMS = nil
  }

  /// The service has stored items of this batch: only that shows that its schema takes the kind. Returns
  /// whether the batch key waited. `group` is the newest retry group.
  func noteStored(_ batch: UploadBatch, group: Int64, _ now: Instant) -> Bool {
    noteJudged(now)
    let place = place(of: batch.key)
    let waited = proofs[place].proof.isProbing
    proofs[place].proof.judge(at: now.monotonicMS)
    let kind = storedPlace(of: batch)
    stored[kind].count += 1
    stored[kind].group = group
    return waited
  }

  private func storedPlace(of batch: UploadBatch) -> Int {
    if let place = stored.firstIndex(where: { $0.kind == batch.kind.name && $0.org == batch.org }) {
      return place
    }
    stored.append((batch.kind.name, batch.org, 0, 0))
    return stored.count - 1
  }

  /// Whether another item of the kind was stored since this one was refused.
  func othersGotThrough(since item: UploadBatch.Item, of batch: UploadBatch) -> Bool {
    guard let first = firstRefusal(of: item.retryGroup) else { return false }
    return first <= stored[storedPlace(of: batch)].group
  }

  /// Items of this retry group were refused, and got a new one.
  func noteRefused(_ group: Int64, now new: Int64) {
    if refused.count >= UploadState.mostGroups { refused.removeFirst() }
    refused.append((new, firstRefusal(of: group) ?? new))
  }

  private func firstRefusal(of group: Int64) -> Int64? {
    refused.last { $0.group == group }?.first
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

  /// An item that failed alone.
  struct FailureAlone {
    /// How many times it did, at least as this process knows.
    let tries: Int
    /// Whether another item of its kind got through since the first time; at the first time, whether any has.
    let othersGotThrough: Bool
    /// Whether another item of its kind got through since the time before.
    let othersGotThroughSinceLast: Bool
  }

  /// A single item fails. One that was set aside before this process began failed before all that this one
  /// has stored, and often.
  func noteFailing(_ item: UploadBatch.Item, of batch: UploadBatch) -> FailureAlone {
    let count = stored[storedPlace(of: batch)].count
    guard let place = failing.firstIndex(where: { $0.sequence == item.sequence }) else {
      let tries = item.blocks > 0 ? Backoff.aloneAfter : 1
      failing.append((item.sequence, count, count, tries))
      return FailureAlone(
        tries: tries, othersGotThrough: count > 0,
        othersGotThroughSinceLast: item.blocks > 0 && count > 0)
    }
    let before = failing[place]
    failing[place].last = count
    failing[place].tries += 1
    return FailureAlone(
      tries: before.tries + 1, othersGotThrough: count > before.first,
      othersGotThroughSinceLast: count > before.last)
  }

  func forgetFailing(_ sequence: Int64) { failing.removeAll { $0.sequence == sequence } }

  func isOfUnknownKind(_ batchKey: [UInt8]) -> Bool { unknownKinds.contains(batchKey) }

  func add(unknownKind batchKey: [UInt8]) {
    if !isOfUnknownKind(batchKey) { unknownKinds.append(batchKey) }
  }

  /// Items are being refused: each costs less in a small batch.
  func shrinkBatches() { batchSize.refuse() }

  /// A batch of so many items was stored.
  func growBatches(_ count: Int) { batchSize.store(count) }
}
