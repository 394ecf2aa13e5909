/// What an upload's failure says that blames none of its items. Each of these may be the fault of all
/// uploads, or of one item that fails whenever it is sent.
public enum UploadFault: CaseIterable, Sendable {
  /// The service refuses items of this kind and these columns: its schema, its load, a defect.
  case batchKey
  /// The service says that it cannot answer for now.
  case service
  /// Something else than the service answers, or nothing does.
  case onTheWay
}

/// Decides about an upload whose failure blames no item.
///
/// If other uploads get through, the failure is an item's: the batch is halved until the item is alone,
/// which then waits by itself. Otherwise the failure may be of all uploads: they wait, and one item
/// probes. So one item at fault delays no other for long, and an outage causes one request for each
/// wait.
public enum DoubtPolicy {
  public enum Step: Equatable, Sendable {
    /// All wait: those of the batch key, or all uploads.
    case wait
    /// Ask the service which of the items it has. If it answers, then the way is open, and an item is
    /// at fault.
    case ask
    /// Halve the batch, or let the single item wait by itself.
    case find
  }

  /// From this number of failed attempts on, a failure that often passes may be an item's.
  public static let suspectAfter: Int64 = 2

  /// What to do after the failure. `attempts` is the highest number of failed attempts among the items
  /// before this one; `isSetAside` says that this is a single item that was found to be at fault
  /// before, `works` that other uploads get through (`UploadProof`), and `asksForPause` that the service
  /// itself asks for a pause.
  public static func step(
    _ fault: UploadFault, attempts: Int64, isSetAside: Bool, works: Bool, asksForPause: Bool
  ) -> Step {
    if asksForPause { return .wait }
    let isSuspect = fault == .batchKey || attempts >= suspectAfter
    guard isSetAside || works && isSuspect else { return .wait }
    return fault == .onTheWay ? .ask : .find
  }
}

/// Whether uploads get through, by those that the service judged and those that failed since.
public struct UploadProof: Sendable {
  /// An older success says little. The longest wait of our own is shorter.
  static let maxAgeMS: Int64 = 600_000
  /// How many failures in a row one item explains: each half of a batch is sent in turn.
  static let maxFailures = 2

  private var judgedMS: Int64?
  private var failures = 0
  /// How many times in a row all waited.
  public private(set) var waits = 0
  /// All waited, and nothing was judged since: the next upload finds out with one item.
  public var isProbing: Bool { waits > 0 }

  public init() {}

  /// The service judged an upload: it stored items, or refused them for what they are.
  public mutating func judge(at nowMS: Int64) {
    (judgedMS, failures, waits) = (nowMS, 0, 0)
  }

  /// An upload failed, and the failure blames no item. Returns whether uploads get through
  /// nevertheless.
  public mutating func fail(at nowMS: Int64) -> Bool {
    failures += 1
    guard let judgedMS, nowMS - judgedMS <= UploadProof.maxAgeMS else { return false }
    return failures <= UploadProof.maxFailures
  }

  /// All wait. Returns how many times in a row they did.
  public mutating func wait() -> Int {
    waits += 1
    return waits
  }
}

/// How many items an upload may have while the server says that uploads are too large, or take it too
/// long.
///
/// One item at fault gets no more than two such answers in a row, because each half of a batch is sent in
/// turn. From the third one on the whole request is at fault, and the next is half as large: an upload of
/// 500 is down at one item after ten requests.
public struct UploadSize: Sendable {
  private static let maxRefused = 2
  /// So many uploads are judged before the next is larger.
  private static let growAfter = 4

  public private(set) var maxItems = BatchPolicy.maxItems
  private var refused = 0
  private var judged = 0

  public init() {}

  /// An upload of so many items was too large.
  public mutating func refuse(items: Int) {
    refused += 1
    judged = 0
    if refused > UploadSize.maxRefused { maxItems = max(1, min(maxItems, items / 2)) }
  }

  public mutating func judge() {
    refused = 0
    judged += 1
    guard judged >= UploadSize.growAfter else { return }
    judged = 0
    maxItems = min(2 * maxItems, BatchPolicy.maxItems)
  }
}
