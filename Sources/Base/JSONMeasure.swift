/// What a JSON text holds, and what it costs, measured before jansson builds it.
///
/// One pass over the text, without allocations: it follows strings, brackets and commas, with a stack of
/// as many counters as levels are allowed. Up to the first error in the text it sees the tokens that
/// jansson sees, and every further byte only adds to the figures, so they hold for malformed text too.
///
/// The cost is that of jansson 2.14 over glibc's malloc: each block is rounded up to 16 bytes and has a
/// head of 8. Where a table or a text grows, its former blocks count as well, because they exist beside the
/// new one for a moment, and the heap may not use them again.
struct JSONMeasure {
  /// The deepest nesting. Beyond `JSON.maxDepth` the text is not read on.
  private(set) var depth = 0
  /// Where a level was opened that is too deep.
  private(set) var tooDeepAt = 0
  /// The number of values. Each but the first of an object or array follows a comma; each object or array
  /// counts as one value more than it has.
  private(set) var values = 1
  /// At least the memory that jansson takes to build the value.
  private(set) var bytes = 512
  /// The longest string among the members of an object: its text without the quotes.
  private(set) var longest = 0..<0
  /// The number of that member.
  private(set) var longestMember = 0
  /// The size of the longest string, number or word, with a string's closing quote.
  private(set) var longestToken = 0

  init(_ text: UnsafeRawBufferPointer) {
    withUnsafeTemporaryAllocation(of: Int.self, capacity: JSON.maxDepth + 1) { scan(text, $0) }
  }

  /// `levels`: for each open object or array twice the number of its commas, plus 1 for an object.
  private mutating func scan(
    _ text: UnsafeRawBufferPointer, _ levels: UnsafeMutableBufferPointer<Int>
  ) {
    var level = 0
    var isKey = false
    var place = 0
    levels[0] = 0
    while place < text.count {
      let byte = text[place]
      place += 1
      switch byte {
      case UInt8(ascii: "\""):
        let start = place
        JSONScan.skipString(text, &place)
        let size = place - start
        longestToken = max(longestToken, size)
        if isKey {
          bytes += JSONMeasure.block(57 + size)
        } else {
          // jansson gives the value as much room as its text took.
          bytes += 48 + JSONMeasure.block(size + 2)
          if level == 1, levels[1] & 1 == 1, size > longest.count {
            longest = start..<(place - 1)
            longestMember = levels[1] >> 1
          }
        }
      case UInt8(ascii: ","):
        values += 1
        levels[level] += 2
        isKey = levels[level] & 1 == 1
        // From 8 on, tables double: an array's of pointers, an object's of pairs of pointers.
        let count = levels[level] >> 1
        if count >= 8, count & (count - 1) == 0 {
          bytes += JSONMeasure.block((isKey ? 32 : 16) * count)
        }
      case UInt8(ascii: "{"), UInt8(ascii: "["):
        values += 1
        level += 1
        depth = max(depth, level)
        guard level <= JSON.maxDepth else {
          tooDeepAt = place - 1
          return
        }
        isKey = byte == UInt8(ascii: "{")
        levels[level] = isKey ? 1 : 0
        bytes += isKey ? 224 : 128
      case UInt8(ascii: "}"), UInt8(ascii: "]"):
        level -= 1
        guard level >= 0 else { return }
      case UInt8(ascii: ":"): isKey = false
      case UInt8(ascii: "-"), UInt8(ascii: "0")...UInt8(ascii: "9"):
        let start = place
        while place < text.count, NumberTokens.isPart(text[place]) { place += 1 }
        longestToken = max(longestToken, place - start)
        bytes += 32
      case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"):
        // Also of a word that is none of JSON's, as far as the next other byte.
        let start = place - 1
        while place < text.count, ASCII.isLetter(text[place]) { place += 1 }
        longestToken = max(longestToken, place - start)
      default: break
      }
    }
    // Each token is collected in one text, which doubles.
    var room = 16
    while room <= longestToken + 2 { room *= 2 }
    bytes += room + room / 2
  }

  /// A block of the heap. Large ones are rounded to pages.
  private static func block(_ size: Int) -> Int {
    max(32, (size + 23) & ~15) + (size >= 1 << 16 ? 4096 : 0)
  }
}
