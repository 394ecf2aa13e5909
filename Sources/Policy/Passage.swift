/// Whether uploads get through: all of them, or those of one batch key.
public struct Passage: Sendable {
  /// An older success says little. The longest wait of our own is shorter.
  private static let maxAgeMS: Int64 = 600_000
  /// How many failures in a row one item explains: each half of a batch is sent in turn.
  private static let maxFailures = 2
  /// From this number of new items on that are refused on the way one after the other, perhaps all are.
  private static let manyFailures = 4

  private var judgedMS: Int64?
  private var failures = 0
  private var waits = 0

  public init() {}

  /// All waited, and nothing was judged since: the next upload finds out with one item.
  public var isProbing: Bool { waits > 0 }

  /// So many failed in a row that perhaps all do, although the way is open.
  public var manyFail: Bool { failures >= Passage.manyFailures }

  /// The service judged an upload: it stored items, or refused them for what they are.
  public mutating func judge(at nowMS: Int64) { (judgedMS, failures, waits) = (nowMS, 0, 0) }

  /// An upload failed, and the failure blames no item. Returns whether uploads get through nevertheless.
  public mutating func fail(at nowMS: Int64) -> Bool {
    failures += 1
    return works(at: nowMS)
  }

  public func works(at nowMS: Int64) -> Bool {
    guard let judgedMS, nowMS - judgedMS <= Passage.maxAgeMS else { return false }
    return failures <= Passage.maxFailures
  }

  /// All wait. Returns how many times in a row they did.
  public mutating func wait() -> Int {
    waits += 1
    return waits
  }
}
