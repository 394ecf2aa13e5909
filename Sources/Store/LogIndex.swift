public import Base
import CPlatform

/// What SQLite's index of a log ("-shm") says of the commits in it.
///
/// The first process that opens a file makes the index anew: SQLite reads the log up to the first frame
/// whose checksum does not match, and drops the rest without a word. The index that a killed process left
/// tells how many frames were committed. SQLite writes it after it has synced the log
/// (`PRAGMA synchronous=FULL`), so an index that a power cut left never claims more than the log had.
/// Format: https://www.sqlite.org/walformat.html
public struct LogIndex {
  /// The committed frames of the log.
  let frames: Int
  /// How many of them were copied into the file.
  let copied: Int
  private let pageSize: Int
  /// They are in the log's header and in each of its frames, and change when it begins anew.
  private let salts: [UInt8]

  private static var headerSize: Int { 48 }
  private static var size: Int { 136 }

  /// nil: the bytes are no valid index. They begin with two copies of its header.
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
    let size = bytes.withUnsafeBytes { $0.loadUnaligned(fromByteOffset: 14, as: UInt16.self) }
    pageSize = size == 1 ? 65536 : Int(size)
    frames = Int(word(16))
    copied = Int(word(96))
    salts = Array(bytes[32..<40])
  }

  /// The index of a file; nil: there is none. `isLeft`: nil also where somebody uses it.
  ///
  /// POSIX drops all locks that a process holds on a file as soon as the process closes any descriptor of
  /// it. So the index is read as a file only where nobody has it open.
  static func of(_ path: String, isLeft: Bool) throws(Failure) -> LogIndex? {
    guard platform_exists(path + "-shm") else { return nil }
    return try Database.withRawFile(path) { (raw) throws(Failure) -> LogIndex? in
      guard let raw else { return nil }
      if raw.isUnused { return LogIndex(try bytes(of: path + "-shm", at: 0, count: size)) }
      if isLeft { return nil }
      defer { raw.closeIndex() }
      return try raw.index().flatMap {
        LogIndex([UInt8](UnsafeRawBufferPointer(start: $0, count: size)))
      }
    }
  }

  /// Whether a killed process has left a file whose log has lost commits. The caller keeps others from
  /// opening the file.
  public static func hasLostCommits(_ path: String) throws(Failure) -> Bool {
    guard let index = try of(path, isLeft: true) else { return false }
    let readable = try index.readableFrames(of: path)
    // The last connection removes the index, then the log. Where the first failed, the file has all.
    return readable < index.frames && (readable > 0 || index.copied < index.frames)
  }

  /// How many of the committed frames SQLite can read.
  func readableFrames(of path: String) throws(Failure) -> Int {
    let log = path + "-wal"
    let header = try LogIndex.bytes(of: log, at: 0, count: 32)
    guard header.count == 32, header[0] == 0x37, header[1] == 0x7F, header[2] == 0x06,
      header[3] & ~1 == 0x82
    else { return 0 }
    var sum = LogChecksum(isBigEndian: header[3] & 1 == 1)
    sum.add(header[0..<24])
    guard sum.isStored(in: header, at: 24) else { return 0 }
    // After a power cut the index may be that of an earlier log.
    guard header[16..<24] == salts[...] else { return frames }
    let size = 24 + pageSize
    var number = 0
    while number < frames {
      let count = min(frames - number, LogIndex.framesAtOnce) * size
      let part = try LogIndex.bytes(of: log, at: Int64(32 + number * size), count: count)
      for at in stride(from: 0, to: count, by: size) {
        guard at + size <= part.count, part[at + 8..<at + 16] == salts[...] else { return number }
        sum.add(part[at..<at + 8])
        sum.add(part[at + 24..<at + size])
        guard sum.isStored(in: part, at: at + 16) else { return number }
        number += 1
      }
    }
    return frames
  }

  private static var framesAtOnce: Int { 32 }

  /// What the file has there, as far as it goes. A failure of the disk is no damage of the file.
  private static func bytes(
    of path: String, at offset: Int64, count: Int
  ) throws(Failure) -> [UInt8] {
    var bytes = [UInt8](repeating: 0, count: count)
    var length = 0
    let problem = Int(platform_read_at(path, offset, &bytes, count, &length))
    guard problem == 0 || problem == PLATFORM_NO_ENTRY else {
      throw Database.failure(ofSystem: problem, "the log could not be read")
    }
    return Array(bytes[0..<length])
  }
}

/// The running checksum of a log (section 4.2 of https://www.sqlite.org/fileformat2.html).
private struct LogChecksum {
  var first: UInt32 = 0
  var second: UInt32 = 0
  let isBigEndian: Bool

  init(isBigEndian: Bool) { self.isBigEndian = isBigEndian }

  /// Add pairs of words.
  mutating func add(_ bytes: ArraySlice<UInt8>) {
    let isSwapped = isBigEndian != (UInt32(1).bigEndian == 1)
    var (first, second) = (first, second)
    bytes.withUnsafeBytes { raw in
      guard var at = raw.baseAddress else { return }
      let end = at + raw.count
      // A log in this machine's order has a loop of its own: every start after a kill reads the whole log.
      while !isSwapped, at < end {
        first &+= at.loadUnaligned(as: UInt32.self) &+ second
        second &+= (at + 4).loadUnaligned(as: UInt32.self) &+ first
        at += 8
      }
      while at < end {
        first &+= at.loadUnaligned(as: UInt32.self).byteSwapped &+ second
        second &+= (at + 4).loadUnaligned(as: UInt32.self).byteSwapped &+ first
        at += 8
      }
    }
    (self.first, self.second) = (first, second)
  }

  /// Whether the sum stands there, as two big-endian words.
  func isStored(in bytes: [UInt8], at: Int) -> Bool {
    Array(bytes[at..<at + 8]) == [UInt8](bigEndian: UInt64(first) << 32 | UInt64(second))
  }
}
