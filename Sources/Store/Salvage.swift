public import Base
import CPlatform

/// What can be read of a main file that was set aside.
///
/// A copy of it is read through SQLite, so the file stays as it was found. The schema is made in one step,
/// so it has the same pages in every file, and the tables have the same roots. The copy takes these pages
/// from a new file: then no damage of the header or the schema keeps SQLite from the rows.
///
/// Rows are read in the order of their numbers. Behind one that cannot be read, a number is searched from
/// which on others can be: a damaged leaf costs its rows, a damaged overflow page one row, and
/// an inner page the rows below it. The caller authenticates rows by their seals.
public final class Salvage {
  private let path: String
  /// nil: nothing can be read.
  private var copy: Database?
  /// No part of the file was found unreadable so far. False also when its log has lost commits.
  public private(set) var isWhole = true

  private var copyPath: String { path + ".scratch" }
  private static var suffixes: [String] { ["", "-wal", "-shm"] }

  private init(_ path: String) { self.path = path }

  /// `path` is that of the file; its log is `path` + "-wal". One salvage of a file at a time. A failure says
  /// nothing about the file.
  public static func open(_ path: String) throws(Failure) -> Salvage {
    let salvage = Salvage(path)
    try salvage.open()
    return salvage
  }

  private func open() throws(Failure) {
    guard platform_exists(path) else { return isWhole = false }
    let index = try LogIndex.of(path, isLeft: false)
    let readable = try index?.readableFrames(of: path) ?? 0
    // Behind what was copied into the file, the log's beginning is older than the file.
    let usesLog = readable >= index?.copied ?? 0
    if let index { isWhole = max(readable, index.copied) >= index.frames }
    do throws(Failure) { try open(withLog: usesLog) } catch  where error.code == .storageDamaged {
      // Somebody has changed the schema, and the log has the change.
      isWhole = false
      try open(withLog: false)
    }
  }

  deinit {
    copy?.close()
    removeCopy()
  }

  /// Remove what a killed process has left of a salvage of this file.
  public static func removeCopy(of path: String) { Salvage(path).removeCopy() }

  private func removeCopy() {
    for suffix in Salvage.suffixes where platform_exists(copyPath + suffix) {
      _ = platform_remove(copyPath + suffix)
    }
  }

  private func open(withLog usesLog: Bool) throws(Failure) {
    removeCopy()
    var kept: [Bool] = []
    do {
      let fresh = try Database(path: copyPath, .normal)
      try Schema.main.apply(to: fresh)
      let pages = try fresh.first("PRAGMA page_count") { (row) throws(Failure) in row.int(0) } ?? 0
      kept = [Bool](repeating: true, count: Int(pages))
      let roots: StaticCString = "SELECT rootpage FROM sqlite_master WHERE rootpage > 1"
      try fresh.each(roots, []) { (row) throws(Failure) in
        kept[Int(row.int(0)) - 1] = false
        return true
      }
      // What stayed in the new file's log would cover the rows that are copied now.
      try fresh.flush()
      fresh.close()
    }
    try check(platform_copy_pages(path, copyPath, Salvage.pageSize, kept, kept.count))
    if usesLog, platform_exists(path + "-wal") {
      try check(platform_copy_pages(path + "-wal", copyPath + "-wal", Salvage.pageSize, [], 0))
    }
    let opened = try Database(path: copyPath, .normal)
    opened.keepsLog = true
    try opened.execute("PRAGMA cell_size_check=OFF")
    copy = opened
  }

  /// SQLite's default since 2016.
  private static var pageSize: Int { 4096 }

  private func check(_ problem: Int32) throws(Failure) {
    guard problem == 0 else {
      throw Database.failure(ofSystem: Int(problem), "a damaged file could not be copied")
    }
  }

  // MARK: Tables

  /// The items, in the order of registration.
  public func eachItem(_ body: (QueueRow) throws(Failure) -> Void) throws(Failure) {
    try each("SELECT * FROM queue NOT INDEXED WHERE seq >= ?1 ORDER BY seq") {
      (row) throws(Failure) in
      if let item = QueueRow.salvaged(row) { try body(item) } else { isWhole = false }
    }
  }

  /// The items' tags as their index names them. A page that has lost the end of its list of rows looks
  /// sound, and so does one with the rows of another page: the index still names those that are gone.
  public func eachName(_ body: ([UInt8]) throws(Failure) -> Void) throws(Failure) {
    var failure: Failure?
    try reading { (copy) throws(Failure) in
      try copy.each("SELECT item FROM queue INDEXED BY sqlite_autoindex_queue_1", []) {
        (row) throws(Failure) in
        do throws(Failure) { try body(row.blob(0)) } catch { failure = error }
        return failure == nil
      }
    }
    if let failure { throw failure }
  }

  /// The session, if it belongs to a user. The row always exists.
  public func session() throws(Failure) -> SessionRow? {
    var found: SessionRow?
    var isRead = false
    try each("SELECT * FROM session WHERE id >= max(?1, 1) ORDER BY id") {
      (row) throws(Failure) in
      if isRead { return }
      found = SessionRow.salvaged(row)
      isRead = found != nil || SessionRow.isSignedOut(row)
    }
    if !isRead { isWhole = false }
    return found
  }

  /// The notices that were not acknowledged.
  public func eachNotice(
    _ body: (_ number: Int64, _ owner: [UInt8]?, _ sealed: [UInt8]) throws(Failure) -> Void
  ) throws(Failure) {
    try each("SELECT number, owner, sealed FROM notice WHERE number >= ?1 ORDER BY number") {
      (row) throws(Failure) in try body(row.count(0), row.blob(ifPresent: 1), row.blob(2))
    }
  }

  /// The orders to revoke a session.
  public func eachRevocation(_ body: ([UInt8]) throws(Failure) -> Void) throws(Failure) {
    try each("SELECT id, sealed FROM revocation WHERE id >= ?1 ORDER BY id") {
      (row) throws(Failure) in try body(row.blob(1))
    }
  }

  /// A number by its name; 0: there is none, or it cannot be read. No seal proves it.
  public func number(_ name: MetaTable.Name) throws(Failure) -> Int64 {
    let number = try reading { (copy) throws(Failure) in try MetaTable(copy).int(name) ?? 0 } ?? 0
    return (0..<Salvage.largest).contains(number) ? number : 0
  }

  /// nil: there is none, or it cannot be read.
  public func text(_ name: MetaTable.Name) throws(Failure) -> String? {
    try reading { (copy) throws(Failure) in try MetaTable(copy).text(name) } ?? nil
  }

  public func blob(_ name: MetaTable.Name) throws(Failure) -> [UInt8]? {
    try reading { (copy) throws(Failure) in try MetaTable(copy).blob(name) } ?? nil
  }

  /// The project whose data the file holds; nil: unknown.
  public func project() throws(Failure) -> String? {
    try reading { (copy) throws(Failure) in try MetaTable(copy).project() } ?? nil
  }

  // MARK: Reading

  /// nil: it cannot be read.
  @discardableResult
  private func reading<Result>(
    _ body: (Database) throws(Failure) -> Result
  ) throws(Failure) -> Result? {
    guard let copy else { return nil }
    do throws(Failure) { return try body(copy) } catch  where error.code == .storageDamaged {
      isWhole = false
      return nil
    }
  }

  /// Larger numbers are damage: no device comes near.
  private static var largest: Int64 { 1 << 40 }

  /// The rows of a statement that takes the number from which on it reads, and whose first column it is.
  ///
  /// A damaged number may read higher, and then the rows behind it are not those that follow. So behind an
  /// error the search begins more than a page before it, and rows whose number was read are passed over.
  private func each(
    _ sql: StaticCString, _ body: (Row) throws(Failure) -> Void
  ) throws(Failure) {
    var start = Int64.min
    var seen: Set<Int64> = []
    while true {
      var failure: Failure?
      var latest: [Int64] = []
      let isRead = try reading { (copy) throws(Failure) -> Bool in
        try copy.each(sql, [.int(start)]) { (row) throws(Failure) -> Bool in
          if let number = row.integer(0) {
            seen.insert(number)
            if latest.count == Salvage.mostOfPage { latest.removeFirst() }
            latest.append(number)
          }
          do throws(Failure) { try body(row) } catch { failure = error }
          copy.sawStrangeNumber = false
          return failure == nil
        }
        return true
      }
      if let failure { throw failure }
      if isRead != nil { return }
      let behind = min(max(latest.min() ?? start, start, 0), Salvage.largest)
      guard let next = try unread(sql, behind: behind, seen) else { return }
      start = next
    }
  }

  /// More rows than a page has.
  private static var mostOfPage: Int { 128 }

  /// A number behind `last` from which on rows can be read that were not, or there are none.
  private func unread(
    _ sql: StaticCString, behind last: Int64, _ seen: Set<Int64>
  ) throws(Failure) -> Int64? {
    func canRead(_ distance: Int64) throws(Failure) -> Bool {
      var isNew = true
      return try reading { (copy) throws(Failure) -> Bool in
        try copy.each(sql, [.int(last + distance)]) { (row) throws(Failure) in
          if let number = row.integer(0) { isNew = !seen.contains(number) }
          return false
        }
        return isNew
      } ?? false
    }
    // One by one near the error: rows that can be read may lie between two that cannot.
    for near in 1...2 * Int64(Salvage.mostOfPage) where try canRead(near) { return last + near }
    var (low, high) = (2 * Int64(Salvage.mostOfPage), 4 * Int64(Salvage.mostOfPage))
    while try !canRead(high) {
      if high > Salvage.largest { return nil }
      (low, high) = (high, high * 2)
    }
    while high - low > 1 {
      let middle = (low + high) / 2
      if try canRead(middle) { high = middle } else { low = middle }
    }
    return last + high
  }
}
