import CPlatform
import CSQLite

/// What `LogCheck` says of a log.
public enum LogCondition: Sendable {
  case whole
  /// The last transaction is not whole: it was not committed before a power cut, or it is damaged.
  case endsTorn
  /// Transactions that were committed would be lost.
  case damaged
}

/// Looks whether SQLite takes over all of a write-ahead log that an earlier process left.
///
/// SQLite reads a log up to the first frame whose checksum does not match, and overwrites the rest
/// without a word. After a power cut that is right: the rest is a transaction that was not committed.
/// After damage the rest holds committed transactions. Format: section 4 of
/// https://www.sqlite.org/fileformat2.html
///
/// 1. A frame's checksum continues that of the frame before it. With the stored checksum of the frame
///    before, each frame is verified by itself.
/// 2. A single flipped bit is found and turned back. The checksum is linear: a flip of bit b in a
///    word adds or subtracts 2^b times a vector that depends on the word's place alone.
/// 3. If that fails and whole frames of a later transaction follow, the log is damaged.
enum LogCheck {
  private static var headerSize: Int { 32 }
  private static var frameHeader: Int { 24 }

  typealias Sum = (UInt32, UInt32)

  /// Single flipped bits are mended in the file.
  static func mend(_ path: String) -> LogCondition {
    let size = Int(clamping: platform_size(path))
    guard size > headerSize, let found = read(path, size) else { return .whole }
    var log = found
    guard let isBigEndian = mendHeader(&log, path) else {
      return hasFrames(log) ? .damaged : .whole
    }
    let pageSize = Int(PageFile.word(log, 8))
    guard pageSize >= 512, pageSize <= 65536, pageSize & (pageSize - 1) == 0 else { return .whole }
    var frames = Frames(
      log: log, path: path, pageSize: pageSize, isBigEndian: isBigEndian,
      sum: (PageFile.word(log, 24), PageFile.word(log, 28)))
    for index in 0..<frames.count where !frames.acceptOrMend(index) {
      if frames.holdsCommits(after: index) { return .damaged }
      return frames.hasSalt(index) ? .endsTorn : .whole
    }
    return .whole
  }

  private static func read(_ path: String, _ size: Int) -> [UInt8]? {
    var bytes = [UInt8](repeating: 0, count: size)
    var length = 0
    guard platform_read_at(path, 0, &bytes, size, &length) == 0, length == size else { return nil }
    return bytes
  }

  /// The byte order of the checksums; nil when the header is not valid.
  private static func byteOrder(_ log: [UInt8]) -> Bool? {
    guard PageFile.word(log, 0) & ~1 == 0x377f_0682 else { return nil }
    let isBigEndian = log[3] & 1 == 1
    let sum = checksum(log, 0, 24, (0, 0), isBigEndian)
    return sum == (PageFile.word(log, 24), PageFile.word(log, 28)) ? isBigEndian : nil
  }

  private static func mendHeader(_ log: inout [UInt8], _ path: String) -> Bool? {
    if let order = byteOrder(log) { return order }
    // A flip in the last word of the salts and one in the checksum look alike; the first frame tells.
    for mustMatch in [true, false] {
      for bit in 0..<headerSize * 8 {
        log[bit / 8] ^= 1 << UInt8(bit % 8)
        if let order = byteOrder(log), !mustMatch || log.count < 56 || log[16..<24] == log[40..<48]
        {
          return write(log, bit / 8, 1, path) ? order : nil
        }
        log[bit / 8] ^= 1 << UInt8(bit % 8)
      }
    }
    return nil
  }

  /// With a damaged header: whether two frames follow each other. A header that was never written has
  /// none behind it.
  private static func hasFrames(_ log: [UInt8]) -> Bool {
    for pageSize in [4096, 512, 1024, 2048, 8192, 16384, 32768, 65536] {
      for isBigEndian in [false, true] {
        let frames = Frames(
          log: log, path: "", pageSize: pageSize, isBigEndian: isBigEndian, sum: (0, 0))
        for index in 1..<max(1, min(frames.count, 8)) where frames.follows(index) { return true }
      }
    }
    return false
  }

  fileprivate static func write(_ log: [UInt8], _ at: Int, _ count: Int, _ path: String) -> Bool {
    var part = Array(log[at..<at + count])
    return platform_write_at(path, Int64(at), &part, count) == 0
  }

  static func checksum(
    _ bytes: [UInt8], _ start: Int, _ count: Int, _ before: Sum, _ isBigEndian: Bool
  ) -> Sum {
    var (first, second) = before
    bytes.withUnsafeBytes { raw in
      var at = start
      while at < start + count {
        let left = raw.loadUnaligned(fromByteOffset: at, as: UInt32.self)
        let right = raw.loadUnaligned(fromByteOffset: at + 4, as: UInt32.self)
        first &+= (isBigEndian ? left.bigEndian : left.littleEndian) &+ second
        second &+= (isBigEndian ? right.bigEndian : right.littleEndian) &+ first
        at += 8
      }
    }
    return (first, second)
  }

  /// The frames of a log. `sum` is the checksum up to the next one.
  private struct Frames {
    var log: [UInt8]
    let path: String
    let pageSize: Int
    let isBigEndian: Bool
    var sum: Sum

    private var size: Int { frameHeader + pageSize }
    var count: Int { (log.count - headerSize) / size }
    private func start(_ index: Int) -> Int { headerSize + index * size }

    private func stored(_ index: Int) -> Sum {
      (PageFile.word(log, start(index) + 16), PageFile.word(log, start(index) + 20))
    }

    private func isCommit(_ index: Int) -> Bool { PageFile.word(log, start(index) + 4) != 0 }

    func hasSalt(_ index: Int) -> Bool {
      (0..<8).allSatisfy { log[start(index) + 8 + $0] == log[16 + $0] }
    }

    /// The checksum over page number, commit size and page.
    private func computed(_ index: Int, after before: Sum) -> Sum {
      let at = start(index)
      let header = checksum(log, at, 8, before, isBigEndian)
      return checksum(log, at + frameHeader, pageSize, header, isBigEndian)
    }

    /// Whether the frame continues the stored checksum of the one before it.
    func follows(_ index: Int) -> Bool {
      PageFile.word(log, start(index)) != 0
        && computed(index, after: stored(index - 1)) == stored(index)
    }

    mutating func acceptOrMend(_ index: Int) -> Bool {
      let at = start(index)
      let found = computed(index, after: sum)
      let wanted = stored(index)
      if found == wanted {
        // A checksum that continues the log's proves that the frame belongs to it.
        if !hasSalt(index) {
          guard index > 0 || follows(max(1, index)) || count == 1 else { return false }
          for byte in 0..<8 { log[at + 8 + byte] = log[16 + byte] }
          guard LogCheck.write(log, at + 8, 8, path) else { return false }
        }
        sum = wanted
        return true
      }
      guard hasSalt(index) else { return false }
      // A flip in the page's last word and one in the checksum look alike; the next frame tells.
      let isChecksum =
        (found.0 ^ wanted.0).nonzeroBitCount + (found.1 ^ wanted.1).nonzeroBitCount == 1
      if isChecksum, index + 1 >= count || !follows(index + 1) {
        for byte in 0..<4 {
          log[at + 16 + byte] = UInt8(truncatingIfNeeded: found.0 >> UInt32(24 - 8 * byte))
          log[at + 20 + byte] = UInt8(truncatingIfNeeded: found.1 >> UInt32(24 - 8 * byte))
        }
        guard LogCheck.write(log, at + 16, 8, path) else { return false }
        sum = found
        return true
      }
      guard let flip = flippedBit(index, (wanted.0 &- found.0, wanted.1 &- found.1)) else {
        return false
      }
      log[flip.at] ^= flip.mask
      guard computed(index, after: sum) == wanted, LogCheck.write(log, flip.at, 1, path) else {
        return false
      }
      sum = wanted
      return true
    }

    /// The one bit of a frame that accounts for this difference of its checksum.
    private func flippedBit(_ index: Int, _ wanted: Sum) -> (at: Int, mask: UInt8)? {
      // What adding 1 to a pair's first or second word adds to the sum.
      var left: Sum = (1, 1)
      var right: Sum = (0, 1)
      var pair = (pageSize + 8) / 8
      while pair > 0 {
        pair -= 1
        let at = start(index) + (pair == 0 ? 0 : frameHeader + (pair - 1) * 8)
        for (word, effect) in [(at, left), (at + 4, right)] {
          for bit in 0..<32 {
            let byte = word + (isBigEndian ? 3 - bit / 8 : bit / 8)
            let mask = UInt8(1) << UInt8(bit % 8)
            let (first, second) = (effect.0 << UInt32(bit), effect.1 << UInt32(bit))
            let isSet = log[byte] & mask != 0
            if wanted == (isSet ? (0 &- first, 0 &- second) : (first, second)) {
              return (byte, mask)
            }
          }
        }
        left = (left.0 &+ left.1, left.0 &+ left.1 &+ left.1)
        right = (right.0 &+ right.1, right.0 &+ right.1 &+ right.1)
      }
      return nil
    }

    /// Whether a transaction ends after the one in which the frame `bad` is. A transaction that was
    /// not committed before a power cut is the log's last one.
    func holdsCommits(after bad: Int) -> Bool {
      var hasEnded = isCommit(bad)
      for index in bad + 1..<max(bad + 1, count) where hasSalt(index) && follows(index) {
        if hasEnded, isCommit(index) { return true }
        if isCommit(index) { hasEnded = true }
      }
      return false
    }
  }
}

extension Database {
  /// Whether SQLite would take over all of the file's log. Called before the file is opened.
  public static func logCondition(_ path: String) -> LogCondition {
    let found = LogCheck.mend(path + "-wal")
    if found == .whole { return found }
    // A log that another process is writing looks damaged for a moment.
    sqlite3_sleep(20)
    return LogCheck.mend(path + "-wal")
  }
}
