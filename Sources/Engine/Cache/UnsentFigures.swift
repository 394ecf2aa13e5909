import Base
import CPlatform
import Policy
import Store
import Supabase
import Vault

/// What is queued of the kind that the summary counts.
struct Unsent {
  var figures = Figures()
  /// How many items there are, also those that the server's figures may count already.
  var items: Int64 = 0
  /// Of a sum that is kept: the last number of its items.
  var through: Int64 = 0

  static func + (left: Unsent, right: Unsent) -> Unsent {
    var result = left
    result.figures.activities += right.figures.activities
    result.figures.minutes += right.figures.minutes
    result.items += right.items
    return result
  }
}

/// Sums up what is queued, without reading all of the queue: the sums of blocks of items are kept, sealed
/// (`QueueBlockTable`).
///
/// A short queue, or what was added since the root was made, is read. Otherwise the sums that were
/// forgotten since are made again from those below them, and kept. All items are read once when there
/// are no sums yet for the organisation, or none for this beginning of the server's period or this kind
/// of the configuration.
struct UnsentFigures {
  /// So many items are read without keeping a sum.
  private static var mostRead: Int { 64 }

  private let core: Core
  private let session: OpenSession
  private let org: UUID?
  private let sinceMS: Int64?
  private let tag: [UInt8]

  /// `sinceMS`: visits before this time are not counted.
  init(
    _ core: Core, _ session: OpenSession, in org: UUID?, since sinceMS: Int64?
  ) throws(Failure) {
    (self.core, self.session, self.org, self.sinceMS) = (core, session, org, sinceMS)
    tag = try core.keys().orgTag(org)
  }

  private var owner: [UInt8] { session.owner }
  private var blocks: QueueBlockTable { core.queueBlocks }

  func sum() throws(Failure) -> Unsent {
    let root = try read(QueueBlockTable.levels, 0)
    let rows = try core.queue.page(
      of: owner, state: nil, after: root?.through ?? 0, limit: UnsentFigures.mostRead + 1)
    if rows.count <= UnsentFigures.mostRead {
      return try (root ?? Unsent()) + sum(of: rows)
    }
    // On a full disk nothing is kept.
    if core.database.isTight { return try scan() }
    do throws(Failure) { return try keepSums() } catch {
      guard error.code != .memoryExhausted, error.code != .storageDamaged else { throw error }
      return try scan()
    }
  }

  // MARK: Items

  @inline(never)
  private func sum(of rows: [QueueRow]) throws(Failure) -> Unsent {
    var result = Unsent()
    for row in rows { try add(row, to: &result) }
    return result
  }

  /// Parked items are left out: they wait for the user, and may never be stored.
  private func add(_ row: QueueRow, to result: inout Unsent) throws(Failure) {
    let backend = core.configuration.backend
    guard row.state != .parked, let item = try row.read(session.queueKey),
      org == nil || item.org == org, item.kind == backend.summaryKind
    else { return }
    result.items += 1
    if let counted = Counted(item, backend) { result.figures.add(counted, since: sinceMS) }
  }

  @inline(never)
  private func scan() throws(Failure) -> Unsent {
    var result = Unsent()
    try core.queue.eachRow(of: owner, state: nil) { (row) throws(Failure) in
      try add(row, to: &result)
    }
    return result
  }

  // MARK: Sums

  /// Make the sums that are missing, and the root. A transaction reads 4096 items at most, and between two
  /// of them others get the lock, so that no other process waits for long.
  private func keepSums() throws(Failure) -> Unsent {
    let last = try core.queue.highestNumber()
    var isFirst = true
    try eachBlock(2, in: 0...last) { (block) throws(Failure) in
      if try read(2, block) != nil { return }
      try eachBlock(1, in: QueueBlockTable.range(2, block)) { (block) throws(Failure) in
        guard QueueBlockTable.range(1, block).upperBound <= last, try read(1, block) == nil else {
          return
        }
        if isFirst { isFirst = false } else { platform_patience_give() }
        try core.database.transaction { () throws(Failure) in _ = try sum(1, block, last) }
      }
    }
    return try core.database.transaction { () throws(Failure) in
      let last = try core.queue.highestNumber()
      var result = Unsent()
      try eachBlock(2, in: 0...last) { (block) throws(Failure) in
        result = try result + sum(2, block, last)
      }
      result.through = last
      try write(QueueBlockTable.levels, 0, result)
      return result
    }
  }

  /// The blocks of a level that have items, in their order.
  @inline(never)
  private func eachBlock(
    _ level: Int64, in range: ClosedRange<Int64>, _ body: (Int64) throws(Failure) -> Void
  ) throws(Failure) {
    var next = range.lowerBound
    while let found = try core.queue.firstNumber(from: next), found <= range.upperBound {
      let block = QueueBlockTable.block(of: found, level)
      try body(block)
      next = QueueBlockTable.range(level, block).upperBound + 1
    }
  }

  /// The sum of a block; it is kept if no new item can come into the block any more. In a transaction.
  @inline(never)
  private func sum(_ level: Int64, _ block: Int64, _ last: Int64) throws(Failure) -> Unsent {
    if let known = try read(level, block) { return known }
    let range = QueueBlockTable.range(level, block)
    var result = Unsent()
    if level == 0 {
      result = try sum(of: try core.queue.rows(of: owner, range))
    } else {
      try eachBlock(level - 1, in: range) { (block) throws(Failure) in
        result = try result + sum(level - 1, block, last)
      }
    }
    result.through = range.upperBound
    if range.upperBound <= last { try write(level, block, result) }
    return result
  }

  // MARK: Sealing

  private func context(_ level: Int64, _ block: Int64) -> SealContext {
    SealContext(
      table: "queue_block", row: Array("\(level) \(block)".utf8), owner: owner, column: "sealed",
      org: tag)
  }

  /// nil: there is none, or it cannot be read, or it is for another period or kind.
  @inline(never)
  private func read(_ level: Int64, _ block: Int64) throws(Failure) -> Unsent? {
    guard let sealed = try blocks.read(level, block, of: owner, org: tag),
      let json = try session.queueKey.openJSON(sealed, context(level, block)),
      json.int("since_ms") == sinceMS,
      json.string("kind") == core.configuration.backend.summaryKind,
      let items = json.int("items"), let through = json.int("through")
    else { return nil }
    return Unsent(figures: Figures(json), items: items, through: through)
  }

  @inline(never)
  private func write(_ level: Int64, _ block: Int64, _ sum: Unsent) throws(Failure) {
    let json = sum.figures.json
    json.set("items", .int(sum.items))
    json.set("through", .int(sum.through))
    json.set("since_ms", JSON(sinceMS))
    json.set("kind", .string(core.configuration.backend.summaryKind))
    try blocks.write(
      level, block, of: owner, org: tag,
      try session.queueKey.seal(json, context(level, block)))
  }
}
