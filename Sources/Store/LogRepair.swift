public import Base
import CPlatform

/// Writes a damaged log anew, so that SQLite takes over every commit that the index names.
///
/// 1. A frame's checksum continues that of the frame before it. So each frame is verified by itself,
///    with the stored checksum of the frame before.
/// 2. A single flipped bit of a frame is found and turned back. The checksum is linear: a flip of bit
///    b in a word adds or subtracts 2^b times a vector that depends on the word's place alone. It is
///    computed modulo 2^32, so the effects of two high bits can be equal; then neither is turned back.
/// 3. Several flipped bits of a frame's page number are turned back as well: one page alone has the
///    number that gives the checksum.
/// 4. Any other damaged frame stays as it is. Its page is then a damaged page like one of the main
///    file, which SQLite's checks and the seals find. Only its page number is compared with what the
///    pages held before: a page in the wrong place would cost the items of another one.
/// 5. All checksums are computed anew.
public struct LogRepair {
  private static var headerSize: Int { 32 }
  private static var frameHeader: Int { 24 }
  /// The log is written anew in memory. Logs are kept far below this by checkpoints.
  private static var largest: Int { 1 << 26 }

  private let path: String
  private let index: LogIndex
  private var log: [UInt8]
  /// The checksum up to the next frame, as it was when the frame was written.
  private var sum: LogChecksum
  private var isCertain = true
  private var isExact = true
  /// Frames that name no page of the database.
  private var nameless: [Int] = []

  /// Repair the log of `path`. Returns whether each bit is as it was written. Throws when the log is
  /// shorter than the index says.
  public static func repair(_ path: String, _ index: LogIndex) throws(Failure) -> Bool {
    let size = Int(clamping: platform_size(path + "-wal"))
    guard PageFile.valid(index.pageSize) != nil, size <= largest,
      (size - headerSize) / (frameHeader + index.pageSize) >= index.frames
    else { throw Failure(.storageDamaged, "the log has lost frames that were committed") }
    let log = PageFile.read(path + "-wal", at: 0, count: size)
    guard log.count == size else { throw Failure(.storageFailed, "the log could not be read") }
    var repair = LogRepair(path, index, log)
    let count = try repair.mendFrames()
    let bytes = repair.written(count)
    let problem = platform_write(path + "-wal", bytes, bytes.count)
    guard problem == 0 else {
      throw Database.failure(ofSystem: Int(problem), "the log could not be repaired")
    }
    return repair.isExact
  }

  private init(_ path: String, _ index: LogIndex, _ log: [UInt8]) {
    self.path = path
    self.index = index
    self.log = log
    sum = LogChecksum(isBigEndian: index.isBigEndian)
    mendHeader()
  }

  // MARK: The parts of a log

  private func start(_ frame: Int) -> Int {
    LogRepair.headerSize + frame * (LogRepair.frameHeader + index.pageSize)
  }

  private var frames: Int {
    (log.count - LogRepair.headerSize) / (LogRepair.frameHeader + index.pageSize)
  }

  private func word(_ at: Int) -> UInt32 { PageFile.word(log, at) }

  private mutating func set(_ at: Int, _ word: UInt32) {
    for byte in 0..<4 { log[at + byte] = UInt8(truncatingIfNeeded: word >> UInt32(24 - 8 * byte)) }
  }

  private func checksum(at: Int) -> LogChecksum {
    LogChecksum(isBigEndian: index.isBigEndian, word(at), word(at + 4))
  }

  private mutating func setSalts(at: Int) {
    for byte in 0..<8 { log[at + byte] = index.salts[byte] }
  }

  private func hasSalts(_ frame: Int) -> Bool {
    for byte in 0..<8 where log[start(frame) + 8 + byte] != index.salts[byte] { return false }
    return true
  }

  private mutating func setChecksum(at: Int, _ sum: LogChecksum) {
    set(at, sum.first)
    set(at + 4, sum.second)
  }

  /// The checksum that the frame was written with, if no bit of it has flipped.
  private func wanted(_ frame: Int) -> LogChecksum {
    frame == index.frames - 1 ? index.checksum : checksum(at: start(frame) + 16)
  }

  /// The checksum up to the frame's end: over the page's number, the commit's size and the page.
  private func computed(_ frame: Int, after before: LogChecksum) -> LogChecksum {
    let at = start(frame)
    var result = before
    result.add(log[at..<at + 8])
    result.add(log[at + LogRepair.frameHeader..<at + LogRepair.frameHeader + index.pageSize])
    return result
  }

  private func follows(_ frame: Int, _ before: LogChecksum) -> Bool {
    computed(frame, after: before) == wanted(frame)
  }

  // MARK: Mending

  /// All of the header is known but a counter that nobody reads, and the checksum.
  private mutating func mendHeader() {
    set(0, index.isBigEndian ? 0x377f_0683 : 0x377f_0682)
    set(4, 3_007_000)
    set(8, UInt32(index.pageSize))
    setSalts(at: 16)
    let stored = checksum(at: 24)
    sum.add(log[0..<24])
    if sum == stored { return }
    // The first frame tells which of both is right, else neither is known to be.
    isCertain = follows(0, stored)
    if isCertain { sum = stored }
  }

  /// Mend the frames that the index names; returns how many frames of the log count.
  private mutating func mendFrames() throws(Failure) -> Int {
    for frame in 0..<index.frames {
      setSalts(at: start(frame) + 8)
      if follows(frame, sum) || isCertain && mend(frame) {
        isCertain = true
      } else {
        isExact = false
        isCertain = false
        findPage(of: frame, isCertain: false)
        if !isPage(word(start(frame))) { nameless.append(frame) }
      }
      // `mend` may have found that the stored checksum is wrong.
      sum = isCertain ? computed(frame, after: sum) : wanted(frame)
    }
    set(start(index.frames - 1) + 4, index.pages)
    for frame in nameless { try replace(frame) }
    // What was committed after the index was written.
    sum = index.checksum
    var next = index.frames
    var count = next
    while next < frames, hasSalts(next), follows(next, sum) {
      sum = wanted(next)
      next += 1
      if word(start(next - 1) + 4) != 0 { count = next }
    }
    return count
  }

  /// Repeat a neighbour in place of a frame whose page is not known.
  private mutating func replace(_ frame: Int) throws(Failure) {
    var other = frame - 1
    if frame == 0 {
      other = 1
      while other < index.frames, !isPage(word(start(other))) { other += 1 }
    }
    guard other < index.frames else {
      throw Failure(.storageDamaged, "no frame of the log names a page")
    }
    let size = LogRepair.frameHeader + index.pageSize
    let commit = word(start(frame) + 4)
    for byte in 0..<size { log[start(frame) + byte] = log[start(other) + byte] }
    set(start(frame) + 4, commit)
  }

  /// Mend a frame of which one bit has flipped. `sum` is certain.
  private mutating func mend(_ frame: Int) -> Bool {
    let found = computed(frame, after: sum)
    let wanted = wanted(frame)
    let isLast = frame == index.frames - 1
    // The stored checksum is damaged, and the frame is not.
    if !isLast, follows(frame + 1, found) { return true }
    // A flip of the page's last words and one of the checksum look alike; the next frame tells.
    let difference =
      (found.first ^ wanted.first).nonzeroBitCount
      + (found.second ^ wanted.second).nonzeroBitCount
    guard isLast || difference > 1 || follows(frame + 1, wanted) else { return false }
    let (all, inHeader, number) = flippedBits(
      frame, wanted.first &- found.first, wanted.second &- found.second)
    let isOdd = !isPage(word(start(frame))) || word(start(frame) + 4) > index.pages
    if all.count == 1 {
      log[all.at] ^= all.mask
    } else if all.count == 0, let number {
      set(start(frame), number)
    } else if isOdd, inHeader.count == 1 {
      log[inHeader.at] ^= inHeader.mask
    } else {
      findPage(of: frame, isCertain: true)
    }
    return computed(frame, after: sum) == wanted
  }

  /// Bits of which one has flipped: how many there are, and the last of them.
  private struct Flips {
    var count = 0
    var at = 0
    var mask: UInt8 = 0

    mutating func add(_ at: Int, _ mask: UInt8) {
      count += 1
      self.at = at
      self.mask = mask
    }
  }

  /// The bits of a frame that alone account for this difference of its checksum: all of them, and
  /// those in the frame's header. `number`: the page whose number alone accounts for it, however many
  /// bits of the number have flipped.
  private func flippedBits(
    _ frame: Int, _ first: UInt32, _ second: UInt32
  ) -> (all: Flips, inHeader: Flips, number: UInt32?) {
    var all = Flips()
    var inHeader = Flips()
    var number: UInt32?
    // What adding 1 to a pair's first or second word adds to the sum.
    var left: (UInt32, UInt32) = (1, 1)
    var right: (UInt32, UInt32) = (0, 1)
    for pair in (0..<(index.pageSize + 8) / 8).reversed() {
      let at = start(frame) + (pair == 0 ? 0 : LogRepair.frameHeader + (pair - 1) * 8)
      for isLeft in [true, false] {
        let effect = isLeft ? left : right
        for bit in 0..<32 {
          let byte = at + (isLeft ? 0 : 4) + (index.isBigEndian ? 3 - bit / 8 : bit / 8)
          let mask = UInt8(1) << UInt8(bit % 8)
          let (one, two) = (effect.0 << UInt32(bit), effect.1 << UInt32(bit))
          let isSet = log[byte] & mask != 0
          if first == (isSet ? 0 &- one : one), second == (isSet ? 0 &- two : two) {
            all.add(byte, mask)
            if pair == 0 { inHeader.add(byte, mask) }
          }
        }
      }
      if pair == 0 {
        let stored = inOrder(word(at))
        // One of both effects is odd, so no other page accounts for the difference.
        var page: UInt32 = 1
        while page <= index.pages, number == nil {
          let more = inOrder(page) &- stored
          if first == more &* left.0, second == more &* left.1 { number = page }
          page += 1
        }
      }
      left = (left.0 &+ left.1, left.0 &+ left.1 &+ left.1)
      right = (right.0 &+ right.1, right.0 &+ right.1 &+ right.1)
    }
    return (all, inHeader, number)
  }

  /// A word of the log as the checksum adds it.
  private func inOrder(_ word: UInt32) -> UInt32 { index.isBigEndian ? word : word.byteSwapped }

  // MARK: Page numbers

  private func isPage(_ number: UInt32) -> Bool { number > 0 && number <= index.pages }

  /// Name the page that the frame's image is most like, if another number than the stored one
  /// differs from it in one bit and has its place here. `isCertain`: the checksum must then match.
  private mutating func findPage(of frame: Int, isCertain: Bool) {
    let at = start(frame)
    let stored = word(at)
    if !isCertain, !isPage(stored), let only = onlyPage(of: frame) { return set(at, only) }
    var named = stored
    // Rows are sealed, so two images of one page may be as unlike as those of two pages. A number that
    // may be right is given up only for a page of which much is in the image, also with a matching
    // checksum: a flip in the image can have the same effect on it as one in the number.
    var best = isCertain ? 0 : 64
    if hasPlace(frame, stored) {
      let image = start(frame) + LogRepair.frameHeader
      let filled = log[image..<image + index.pageSize].count { $0 != 0 }
      best = max(filled / 4, 2 * likeness(frame, stored))
    }
    for bit in 0..<32 {
      let number = stored ^ 1 << UInt32(bit)
      let found = hasPlace(frame, number) ? likeness(frame, number) : 0
      guard found > best else { continue }
      set(at, number)
      if isCertain, computed(frame, after: sum) != wanted(frame) { continue }
      named = number
      best = found
    }
    set(at, named)
  }

  /// The page of a frame whose number is none of the database's, if there is only one that the number
  /// differs from in one bit and that has its place here. The page may have held nothing before, so that
  /// no image is like it.
  private func onlyPage(of frame: Int) -> UInt32? {
    var only: UInt32?
    for bit in 0..<32 {
      let number = word(start(frame)) ^ 1 << UInt32(bit)
      guard hasPlace(frame, number) else { continue }
      if only != nil { return nil }
      only = number
    }
    return only
  }

  /// Whether the frame may be of this page: SQLite writes the pages of a commit once each and sorted. (It
  /// may write some before the others if there are too many for its cache.)
  private func hasPlace(_ frame: Int, _ number: UInt32) -> Bool {
    guard isPage(number) else { return false }
    func isEnd(_ frame: Int) -> Bool { word(start(frame) + 4) != 0 }
    let before = frame > 0 && !isEnd(frame - 1) ? word(start(frame - 1)) : 0
    let after =
      frame + 1 < index.frames && !isEnd(frame) ? word(start(frame + 1)) : UInt32.max
    return before >= after || before < number && number < after
  }

  /// How many bytes of a frame's image the page had before. Zeroes are no sign.
  private func likeness(_ frame: Int, _ number: UInt32) -> Int {
    guard isPage(number) else { return 0 }
    let image = start(frame) + LogRepair.frameHeader
    var other = frame - 1
    while other >= 0, word(start(other)) != number { other -= 1 }
    var stored: [UInt8] = []
    if other < 0 {
      let offset = Int64(number - 1) * Int64(index.pageSize)
      stored = PageFile.read(path, at: offset, count: index.pageSize)
      if stored.count < index.pageSize { return 0 }
    }
    var result = 0
    for at in 0..<index.pageSize {
      let byte = other < 0 ? stored[at] : log[start(other) + LogRepair.frameHeader + at]
      if byte != 0, byte == log[image + at] { result += 1 }
    }
    return result
  }

  // MARK: Writing

  /// The log up to this frame, with valid checksums.
  private mutating func written(_ count: Int) -> [UInt8] {
    var sum = LogChecksum(isBigEndian: index.isBigEndian)
    sum.add(log[0..<24])
    setChecksum(at: 24, sum)
    for frame in 0..<count {
      sum = computed(frame, after: sum)
      setChecksum(at: start(frame) + 16, sum)
    }
    log.removeLast(log.count - start(count))
    return log
  }
}
