import CPlatform

/// The pages of an SQLite file and of its write-ahead log, read without SQLite, for files that
/// SQLite refuses. Format: https://www.sqlite.org/fileformat2.html
///
/// The page size comes from the file's header, else from the log's header, else it is 4096,
/// SQLite's default since 2016. A log with another page size is ignored. The log is a header and
/// frames, each a header and one page. Frames count while their salt is that of the log's header,
/// up to the last frame that ends a commit; the last such frame of a page is its newest image, and
/// pages without one are read from the file. Checksums are not verified: the caller authenticates
/// by seal what it takes from a page.
final class PageFile {
  let pageSize: Int
  let pageCount: Int
  private let path: String
  /// The committed page images in the log, in its order: page number, offset.
  private var logged: [(page: UInt32, at: Int64)] = []

  init(path: String) {
    self.path = path
    let header = PageFile.read(path, at: 0, count: 100)
    let log = PageFile.read(path + "-wal", at: 0, count: 32)
    pageSize =
      PageFile.pageSize(header) ?? PageFile.logPageSize(log) ?? 4096
    pageCount = Int(clamping: (platform_size(path) + Int64(pageSize) - 1) / Int64(pageSize))
    readLog(log)
  }

  static func read(_ path: String, at offset: Int64, count: Int) -> [UInt8] {
    var bytes = [UInt8](repeating: 0, count: count)
    var length = 0
    guard platform_read_at(path, offset, &bytes, count, &length) == 0 else { return [] }
    return Array(bytes[0..<length])
  }

  /// The size, if SQLite allows it: a power of two from 512 to 65536.
  static func valid(_ size: Int) -> Int? {
    size >= 512 && size <= 65536 && size & (size - 1) == 0 ? size : nil
  }

  private static func pageSize(_ header: [UInt8]) -> Int? {
    guard header.count == 100, Array(header[..<16]) == Array("SQLite format 3\0".utf8) else {
      return nil
    }
    let size = Int(header[16]) << 8 | Int(header[17])
    return valid(size == 1 ? 65536 : size)
  }

  private static func logPageSize(_ log: [UInt8]) -> Int? {
    guard log.count == 32, word(log, 0) & ~1 == 0x377f_0682 else { return nil }
    return valid(Int(word(log, 8)))
  }

  static func word(_ bytes: [UInt8], _ at: Int) -> UInt32 {
    UInt32(bytes[at]) << 24 | UInt32(bytes[at + 1]) << 16 | UInt32(bytes[at + 2]) << 8
      | UInt32(bytes[at + 3])
  }

  private func readLog(_ header: [UInt8]) {
    guard PageFile.logPageSize(header) == pageSize else { return }
    // A page number with a flipped bit must not stand for a million pages.
    let limit = Int64(pageCount) + platform_size(path + "-wal") / Int64(24 + pageSize)
    var at: Int64 = 32
    var open: [(page: UInt32, at: Int64)] = []
    while true {
      let frame = PageFile.read(path + "-wal", at: at, count: 24)
      guard frame.count == 24, Array(frame[8..<16]) == Array(header[16..<24]) else { return }
      let page = PageFile.word(frame, 0)
      if page <= limit { open.append((page, at + 24)) }
      if PageFile.word(frame, 4) != 0 {
        logged += open
        open = []
      }
      at += 24 + Int64(pageSize)
    }
  }

  /// The newest image of a page, numbered from 1; nil when it is incomplete.
  func page(_ number: UInt32) -> [UInt8]? {
    guard number > 0 else { return nil }
    let bytes: [UInt8]
    if let at = logged.last(where: { $0.page == number })?.at {
      bytes = PageFile.read(path + "-wal", at: at, count: pageSize)
    } else {
      bytes = PageFile.read(path, at: Int64(number - 1) * Int64(pageSize), count: pageSize)
    }
    return bytes.count == pageSize ? bytes : nil
  }

  /// The highest page number in the file or the log.
  var last: UInt32 {
    var result = UInt32(clamping: pageCount)
    for image in logged { result = max(result, image.page) }
    return result
  }
}
