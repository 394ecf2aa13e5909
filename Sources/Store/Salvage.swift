public import Base

/// The rows of a damaged SQLite file.
///
/// All rows of a table are in leaf pages, whose first byte is 13. So every page is read on its own,
/// and the header, the schema and the inner pages are not needed:
///
/// 1. `PageFile` gives the newest image of each page, with the write-ahead log applied.
/// 2. A leaf page lists the offsets of its cells; a cell is (payload size, row id, payload). The
///    payload's end may be in a chain of overflow pages.
/// 3. The payload is a record: the size of its header, a type per column, then the values.
/// 4. A record does not name its table. The row types recognise theirs by the number, types and
///    lengths of the columns; the caller authenticates the contents by their seals.
///
/// The entries of indexes, which are in pages of the kinds 2 and 10, name the rows once more:
/// `SalvageCount` counts by them what is lost. Freed pages may hold old images of rows, so a row can be found more than once or after its
/// removal. Cells that cannot be understood are skipped.
public final class Salvage {
  /// A table row: its row id and its columns. A column that is an alias of the row id is null.
  public struct Record {
    public let rowID: Int64
    public let columns: [Value]
  }

  private let file: PageFile
  /// After `each`: the pages that could not be read whole, and the leaf pages without a valid list
  /// of cells. The rows on them are lost.
  public private(set) var unreadablePages: Int64 = 0

  /// After `each`: the pages that may have held rows and are understood as nothing else: not as a page
  /// of a tree, of a row's overflow, or of the free list. The first page holds the schema.
  public private(set) var strayPages: Int64 = 0
  /// The pages of overflow chains that were read.
  private var overflow: [UInt32] = []

  public var pageSize: Int { file.pageSize }

  /// `path` is that of the damaged file; its log is `path` + "-wal".
  public init(path: String) { file = PageFile(path: path) }

  /// Every row of a table, and every entry of an index.
  public func each(
    _ body: (Record) throws(Failure) -> Void,
    entry: ([Value]) throws(Failure) -> Void = { (_) throws(Failure) in }
  ) throws(Failure) {
    unreadablePages = 0
    var unknown: [UInt32] = []
    let last = file.last
    var number: UInt32 = 1
    while number <= last {
      if let page = file.page(number) {
        switch page[number == 1 ? 100 : 0] {
        case 13: try readLeaf(page, at: number == 1 ? 100 : 0, body)
        case 10, 2: try readIndex(page, entry)
        case 5: break
        default: if number > 1, !isFree(page, last) { unknown.append(number) }
        }
      } else {
        unreadablePages += 1
        unknown.append(number)
      }
      number += 1
    }
    overflow.sort()
    var stray: Int64 = 0
    for page in unknown where !overflow.sortedContains(page) { stray += 1 }
    strayPages = stray
  }

  /// The entries of indexes alone, which are also the rows of tables without row ids.
  func eachEntry(_ body: ([Value]) throws(Failure) -> Void) throws(Failure) {
    for number in 2...max(2, file.last) {
      if let page = file.page(number), page[0] == 10 || page[0] == 2 { try readIndex(page, body) }
    }
  }

  /// Freed pages are zeroed; a trunk of the free list begins with the next trunk, the number of its
  /// leaves, and the leaves.
  private func isFree(_ page: [UInt8], _ last: UInt32) -> Bool {
    let leaves = Int(PageFile.word(page, 4))
    guard PageFile.word(page, 0) <= last, leaves <= page.count / 4 - 2 else { return false }
    for index in 0..<leaves where PageFile.word(page, 8 + 4 * index) > last { return false }
    return page[(8 + 4 * leaves)...].allSatisfy { $0 == 0 }
  }

  /// Entries of an index that fit into the page, as all of this library's do.
  private func readIndex(
    _ page: [UInt8], _ body: ([Value]) throws(Failure) -> Void
  ) throws(Failure) {
    let headerSize = page[0] == 2 ? 12 : 8
    let count = Int(page[3]) << 8 | Int(page[4])
    guard headerSize + 2 * count <= page.count else { return }
    for index in 0..<count {
      let pointer = headerSize + 2 * index
      var reader = Reader(
        bytes: page,
        at: (Int(page[pointer]) << 8 | Int(page[pointer + 1])) + (headerSize == 12 ? 4 : 0))
      guard let size = reader.varint(), size > 0, size <= page.count - reader.at,
        let columns = Salvage.columns(Array(page[reader.at..<reader.at + Int(size)])),
        !columns.isEmpty
      else { continue }
      try body(columns)
    }
  }

  /// `start` is where the page's header begins: after the file's header on page 1.
  private func readLeaf(
    _ page: [UInt8], at start: Int, _ body: (Record) throws(Failure) -> Void
  ) throws(Failure) {
    let count = Int(page[start + 3]) << 8 | Int(page[start + 4])
    guard start + 8 + 2 * count <= page.count else {
      unreadablePages += 1
      return
    }
    for index in 0..<count {
      let pointer = start + 8 + 2 * index
      var reader = Reader(bytes: page, at: Int(page[pointer]) << 8 | Int(page[pointer + 1]))
      guard let size = reader.varint(), let key = reader.varint(), size >= 0,
        let payload = payload(page, reader.at, size), let columns = Salvage.columns(payload)
      else { continue }
      try body(Record(rowID: key, columns: columns))
    }
  }

  /// A cell's payload, with the part on overflow pages. How much is on the leaf follows from the
  /// sizes ("B-tree Cell Format" in the file format).
  private func payload(_ page: [UInt8], _ start: Int, _ size: Int64) -> [UInt8]? {
    guard let total = Int(exactly: size), total <= 1 << 24, start <= page.count else { return nil }
    let usable = file.pageSize
    let least = (usable - 12) * 32 / 255 - 23
    // For a payload that fits into the leaf, this is all of it.
    let fitting = least + (total - least) % (usable - 4)
    let local = fitting <= usable - 35 ? fitting : least
    guard start + local <= page.count else { return nil }
    var result = Array(page[start..<start + local])
    guard local < total else { return result }
    guard start + local + 4 <= page.count else { return nil }
    var next = PageFile.word(page, start + local)
    while result.count < total {
      guard let more = file.page(next) else { return nil }
      overflow.append(next)
      result.append(contentsOf: more[4..<min(more.count, 4 + total - result.count)])
      next = PageFile.word(more, 0)
    }
    return result
  }

  private static func columns(_ record: [UInt8]) -> [Value]? {
    var header = Reader(bytes: record, at: 0)
    guard let headerSize = header.varint().flatMap({ Int(exactly: $0) }), headerSize > 0,
      headerSize <= record.count
    else { return nil }
    var values = Reader(bytes: record, at: headerSize)
    var result: [Value] = []
    while header.at < headerSize {
      guard let type = header.varint(), let value = values.value(type) else { return nil }
      result.append(value)
    }
    return result
  }

  private struct Reader {
    let bytes: [UInt8]
    var at: Int

    /// A number of one to nine bytes: seven bits from each, eight from the ninth.
    mutating func varint() -> Int64? {
      var result: UInt64 = 0
      for index in 0..<9 {
        guard at >= 0, at < bytes.count else { return nil }
        let byte = bytes[at]
        at += 1
        if index == 8 { return Int64(bitPattern: result << 8 | UInt64(byte)) }
        result = result << 7 | UInt64(byte & 0x7F)
        if byte & 0x80 == 0 { return Int64(bitPattern: result) }
      }
      return nil
    }

    mutating func value(_ type: Int64) -> Value? {
      switch type {
      case 0: return .null
      case 1...4: return integer(Int(type))
      case 5: return integer(6)
      case 6, 7: return integer(8)
      case 8: return .int(0)
      case 9: return .int(1)
      case 12...: return bytes(Int(clamping: (type - 12) / 2), isText: type & 1 == 1)
      default: return nil
      }
    }

    private mutating func integer(_ size: Int) -> Value? {
      guard at + size <= bytes.count else { return nil }
      var result: Int64 = bytes[at] & 0x80 == 0 ? 0 : -1
      for byte in bytes[at..<at + size] { result = result << 8 | Int64(byte) }
      at += size
      return .int(result)
    }

    private mutating func bytes(_ size: Int, isText: Bool) -> Value? {
      guard size <= bytes.count - at else { return nil }
      let part = bytes[at..<at + size]
      at += size
      // A flipped bit of a blob's type says that it is text, which its bytes are not.
      let blob = Array(part)
      let text = String(decoding: part, as: UTF8.self)
      return isText && text.utf8.elementsEqual(blob) ? .text(text) : .blob(blob)
    }
  }
}

extension Salvage.Record {
  /// A column by its name; for columns that the record has.
  subscript<Column: RawRepresentable>(_ column: Column) -> Value where Column.RawValue == Int32 {
    columns[Int(column.rawValue)]
  }

  /// A column that holds a keyed tag: 16 bytes.
  func tag<Column: RawRepresentable>(_ column: Column) -> [UInt8]? where Column.RawValue == Int32 {
    guard let bytes = self[column].blob, bytes.count == 16 else { return nil }
    return bytes
  }
}
