import Base
import Policy
import Store
import Supabase

/// The state of this process's uploads that is not in the queue's rows.
final class UploadState {
  /// What is known of a batch key.
  private struct Known {
    let batch: UploadBatch
    /// That changes get through says nothing about inserts.
    let isCorrection: Bool
    var passage = Passage()
    /// The newest retry group when items of it were stored last.
    var storedGroup: RetryGroup?
  }

  /// Batches whose ids must be read back.
  var readBacks: [UploadBatch] = []
  /// How many items the next upload has.
  var size = UploadSize()
  /// Whether uploads get through: all of them, and those of each batch key.
  private var all = Passage()
  private var known: [Known] = []
  /// The batch keys of items whose kind this handle's configuration does not list.
  private var unknownKinds: [[UInt8]] = []

  // MARK: Questions

  func add(readBack: UploadBatch) {
    // A control comes first: it tells about the others, too.
    let place = readBack.request == .control ? 0 : readBacks.count
    readBacks.insert(readBack, at: place)
  }

  /// Remove and return the questions that are to tell whether the way is open.
  func takeReadBacksAboutTheWay() -> [UploadBatch] {
    let taken = readBacks.filter { $0.asksAboutTheWay }
    if !taken.isEmpty { readBacks.removeAll { $0.asksAboutTheWay } }
    return taken
  }

  // MARK: Who gets through

  /// The service has judged an upload: it stored items, or refused them for what they are.
  func noteJudged(_ now: Instant) {
    all.judge(at: now.monotonicMS)
    size.judge()
  }

  /// The service has stored items of this batch: only that shows that its schema takes the kind. Returns
  /// whether the batch key waited. `group` is the newest retry group.
  func noteStored(_ batch: UploadBatch, group: RetryGroup, _ now: Instant) -> Bool {
    noteJudged(now)
    let place = place(of: batch)
    let waited = known[place].passage.isProbing
    known[place].passage.judge(at: now.monotonicMS)
    known[place].storedGroup = group
    return waited
  }

  /// Whether an item of the same kind was stored since this one was refused first, or failed alone last.
  func storedOthers(since item: UploadBatch.Item, of batch: UploadBatch) -> Bool {
    let since = item.history.since(item.retryGroup)
    return known.contains {
      $0.batch.kind.name == batch.kind.name && $0.batch.org == batch.org
        && $0.isCorrection == batch.isCorrection
        && $0.storedGroup.map { $0 >= since } ?? false
    }
  }

  /// The upload failed, and the failure blames no item. Returns whether others get through nevertheless.
  func noteFailed(
    _ batch: UploadBatch, _ failing: UploadSituation.Answer.Failing, _ now: Instant
  ) -> Bool {
    failing == .kind
      ? known[place(of: batch)].passage.fail(at: now.monotonicMS) : all.fail(at: now.monotonicMS)
  }

  /// Whether any uploads get through.
  func works(_ now: Instant) -> Bool { all.works(at: now.monotonicMS) }

  /// So many items fail one after the other that perhaps all uploads do, although the way is open.
  var manyFail: Bool { all.manyFail }

  /// All items of the batch key wait. Returns how many times in a row they did.
  func noteWait(_ batch: UploadBatch) -> Int { known[place(of: batch)].passage.wait() }

  private func place(of batch: UploadBatch) -> Int {
    if let place = known.firstIndex(where: { $0.batch.key == batch.key }) { return place }
    known.append(Known(batch: batch.with([]), isCorrection: batch.isCorrection))
    return known.count - 1
  }

  // MARK: Sizes

  /// How many items the next upload of this batch key may have. `isProbing`: uploads back off.
  func maxItems(of key: [UInt8], isProbing: Bool, isTight: Bool = false) -> Int {
    if isProbing || known.contains(where: { $0.batch.key == key && $0.passage.isProbing }) {
      return 1
    }
    return isTight ? min(size.items, UploadSize.tightItems) : size.items
  }

  // MARK: Unknown kinds

  func isOfUnknownKind(_ batchKey: [UInt8]) -> Bool { unknownKinds.contains(batchKey) }

  func add(unknownKind batchKey: [UInt8]) {
    if !isOfUnknownKind(batchKey) { unknownKinds.append(batchKey) }
  }
}
