import CPlatform

/// A place in a JSON text, which moves over its parts without building them.
///
/// Of objects and arrays only the strings and brackets are looked at. The text must be UTF-8, and
/// outlive the place.
struct JSONScan {
  enum Kind {
    /// A string without escapes.
    case text
    case null
    /// true, false, or an integer as jansson writes it.
    case word
    /// Any other value, or none: jansson has to read it.
    case other
  }

  let text: UnsafeRawBufferPointer
  private(set) var place = 0

  init(_ text: UnsafeRawBufferPointer) { self.text = text }

  /// Moves behind white space, and behind the next byte if it is this one.
  mutating func take(_ wanted: UInt8) -> Bool {
    skipSpace()
    guard place < text.count, text[place] == wanted else { return false }
    place += 1
    return true
  }

  /// Moves behind white space; whether nothing follows it.
  mutating func isAtEnd() -> Bool {
    skipSpace()
    return place == text.count
  }

  private mutating func skipSpace() {
    while place < text.count, JSONScan.isSpace(text[place]) { place += 1 }
  }

  private static func isSpace(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: " "), UInt8(ascii: "\t"), UInt8(ascii: "\n"), UInt8(ascii: "\r"): true
    default: false
    }
  }

  /// Moves behind a string; where it is, with its quotes.
  mutating func takeString() -> (place: Range<Int>, kind: Kind)? {
    guard take(UInt8(ascii: "\"")) else { return nil }
    let start = place - 1
    var kind = Kind.text
    while place < text.count {
      let byte = text[place]
      place += 1
      if byte == UInt8(ascii: "\"") { return (start..<place, kind) }
      if byte == UInt8(ascii: "\\") {
        kind = .other
        place += 1
      } else if byte < 0x20 {
        return nil
      }
    }
    return nil
  }

  /// Moves behind a value; where it is. nil: none is there, or it breaks off.
  mutating func takeValue() -> (place: Range<Int>, kind: Kind)? {
    if isAtEnd() { return nil }
    let start = place
    switch text[start] {
    case UInt8(ascii: "\""): return takeString()
    case UInt8(ascii: "{"), UInt8(ascii: "["):
      return skipContainer() ? (start..<place, .other) : nil
    default:
      while place < text.count, !JSONScan.endsWord(text[place]) { place += 1 }
      guard let found = kind(ofWord: start..<place) else { return nil }
      return (start..<place, found)
    }
  }

  private mutating func skipContainer() -> Bool {
    var depth = 0
    while place < text.count {
      let byte = text[place]
      place += 1
      switch byte {
      case UInt8(ascii: "\""): JSONScan.skipString(text, &place)
      case UInt8(ascii: "{"), UInt8(ascii: "["): depth += 1
      case UInt8(ascii: "}"), UInt8(ascii: "]"):
        depth -= 1
        if depth == 0 { return true }
      default: break
      }
    }
    return false
  }

  /// Moves `place` from the start of a string's text behind its closing quote: the first quote with
  /// an even number of backslashes before it. A token or an image is one long string, so the search
  /// is the C library's.
  static func skipString(_ bytes: UnsafeRawBufferPointer, _ place: inout Int) {
    guard let base = bytes.baseAddress else { return }
    let start = place
    while place < bytes.count {
      guard let quote = memchr(base + place, Int32(UInt8(ascii: "\"")), bytes.count - place) else {
        place = bytes.count
        return
      }
      let at = UnsafeRawPointer(quote) - base
      place = at + 1
      var first = at
      while first > start, bytes[first - 1] == UInt8(ascii: "\\") { first -= 1 }
      if (at - first) % 2 == 0 { return }
    }
  }

  // MARK: Words

  private static func endsWord(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: ","), UInt8(ascii: "}"), UInt8(ascii: "]"): true
    default: isSpace(byte)
    }
  }

  /// nil: JSON has no such word.
  private func kind(ofWord range: Range<Int>) -> Kind? {
    let word = UnsafeRawBufferPointer(rebasing: text[range])
    func isWord(_ other: StaticCString) -> Bool { word.elementsEqual(other.bytes) }
    if isWord("null") { return .null }
    if isWord("true") || isWord("false") { return .word }
    guard let first = word.first, word.allSatisfy({ NumberTokens.isPart($0) }) else { return nil }
    let digits = first == UInt8(ascii: "-") ? word.dropFirst() : word[...]
    guard let leading = digits.first, digits.count <= 18,
      digits.allSatisfy({ ASCII.isDigit($0) }),
      leading != UInt8(ascii: "0") || word.count == 1
    else { return .other }
    return .word
  }
}
