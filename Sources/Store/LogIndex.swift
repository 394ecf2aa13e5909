import CPlatform

/// SQLite's index of a log ("-shm"), as the last process left that used the file and was killed.
///
/// The first process that opens the file makes the index anew: SQLite reads the log up to the first
/// frame whose checksum does not match, and drops the rest without a word. A frame that damage has
/// reached cuts off every commit behind it. The index that was left tells how many frames were
/// committed. SQLite writes it after it has synced the log (`PRAGMA synchronous=FULL`), so an index
/// that a power cut left never claims more than the log had. Format: section 2 of
/// https://www.sqlite.org/walformat.html
public struct LogIndex {
  /// The committed frames of the log.
  let frames: Int
  /// The size of the database in pages, after the last of them.
  let pages: UInt32
  let pageSize: Int
  /// The byte order of the log's checksums.
  let isBigEndian: Bool
  /// The checksum of the last committed frame.
  let checksum: LogChecksum
  /// They are in the log's header and in each of its frames, and change when it begins anew.
  let salts: [UInt8]
  /// The index's first bytes: two copies of its header, and what SQLite knows of checkpoints.
  private let bytes: [UInt8]

  private static var headerSize: Int { 48 }
  private static var size: Int { 136 }

  /// nil: the bytes are no valid index.
  init?(_ bytes: [UInt8]) {
    let header = LogIndex.headerSize
    guard bytes.count == LogIndex.size, bytes[0..<header] == bytes[header..<2 * header],
      bytes[12] == 1
    else { return nil }
    func word(_ at: Int) -> UInt32 {
      bytes.withUnsafeBytes { $0.loadUnaligned(fromByteOffset: at, as: UInt32.self) }
    }
    var sum = LogChecksum(isBigEndian: UInt32(1).bigEndian == 1)
    sum.add(bytes[0..<40])
    guard sum.first == word(40), sum.second == word(44) else { return nil }
    self.bytes = bytes
    isBigEndian = bytes[13] == 1
    let size = bytes.withUnsafeBytes { $0.loadUnaligned(fromByteOffset: 14, as: UInt16.self) }
    pageSize = size == 1 ? 65536 : Int(size)
    frames = Int(word(16))
    pages = word(20)
    checksum = LogChecksum(isBigEndian: isBigEndian, word(24), word(28))
    salts = Array(bytes[32..<40])
  }

  /// The index of a database that no process uses; nil: there is none, or a process uses it.
  public static func left(of path: String) -> LogIndex? {
    var bytes = [UInt8](repeating: 0, count: size)
    guard
      platform_read_unused_index(path, platform_file_id(path), &bytes, bytes.count)
    else { return nil }
    return LogIndex(bytes)
  }

  /// Whether SQLite has dropped frames that were committed. `version` is that of the database after
  /// it was opened, nil if it could not be.
  public func claimsMore(than version: FileVersion?, in path: String) -> Bool {
    guard frames > 0 else { return false }
    if let version, version.salts == salts { return version.frames < frames }
    let header = PageFile.read(path + "-wal", at: 0, count: 32)
    guard header.count == 32 else { return false }
    // After a power cut the index may be that of an earlier log.
    return !LogChecksum.matches(header) || Array(header[16..<24]) == salts
  }

  /// Leave the index for the next process, as it was found.
  public func putBack(_ path: String) {
    _ = platform_write_unused_index(path, platform_file_id(path), bytes, bytes.count)
  }
}

extension FileVersion {
  /// The committed frames of the log.
  var frames: Int {
    withUnsafeBytes(of: words) { Int($0.load(fromByteOffset: 16, as: UInt32.self)) }
  }
  var salts: [UInt8] { withUnsafeBytes(of: words) { Array($0[32..<40]) } }
}

/// The running checksum of a log (section 4.2 of https://www.sqlite.org/fileformat2.html).
struct LogChecksum: Equatable {
  var first: UInt32
  var second: UInt32
  let isBigEndian: Bool

  init(isBigEndian: Bool, _ first: UInt32 = 0, _ second: UInt32 = 0) {
    self.isBigEndian = isBigEndian
    self.first = first
    self.second = second
  }

  /// Add pairs of words.
  mutating func add(_ bytes: ArraySlice<UInt8>) {
    let isBigEndian = isBigEndian
    var (first, second) = (first, second)
    bytes.withUnsafeBytes { raw in
      var at = 0
      while at + 8 <= raw.count {
        let left = raw.loadUnaligned(fromByteOffset: at, as: UInt32.self)
        let right = raw.loadUnaligned(fromByteOffset: at + 4, as: UInt32.self)
        first &+= (isBigEndian ? left.bigEndian : left.littleEndian) &+ second
        second &+= (isBigEndian ? right.bigEndian : right.littleEndian) &+ first
        at += 8
      }
    }
    (self.first, self.second) = (first, second)
  }

  /// Whether the checksum of a log's header matches.
  static func matches(_ header: [UInt8]) -> Bool {
    guard PageFile.word(header, 0) & ~1 == 0x377f_0682 else { return false }
    var sum = LogChecksum(isBigEndian: header[3] & 1 == 1)
    sum.add(header[0..<24])
    return sum.first == PageFile.word(header, 24) && sum.second == PageFile.word(header, 28)
  }
}
