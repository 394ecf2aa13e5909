import Base

/// A reader for the text of a date, from front to back. A method that finds something else than
/// what it looks for returns nil or false.
struct DateReader<Bytes: Collection> where Bytes.Element == UInt8 {
  private let bytes: Bytes
  private var position: Bytes.Index

  init(_ bytes: Bytes) {
    self.bytes = bytes
    position = bytes.startIndex
  }

  var isAtEnd: Bool { position == bytes.endIndex }
  var next: UInt8? { isAtEnd ? nil : bytes[position] }

  mutating func skip() {
    if !isAtEnd { position = bytes.index(after: position) }
  }

  mutating func skipSpaces() {
    while next == UInt8(ascii: " ") || next == UInt8(ascii: "\t") { skip() }
  }

  /// Takes `byte` if it is next.
  mutating func take(_ byte: UInt8) -> Bool {
    guard next == byte else { return false }
    skip()
    return true
  }

  /// Takes all of `words` if they are next, without regard to case.
  mutating func take(_ words: StaticString) -> Bool {
    var ahead = self
    let fits = words.withUTF8Buffer { words in
      for word in words {
        guard let byte = ahead.next, ASCII.lowered(byte) == ASCII.lowered(word) else {
          return false
        }
        ahead.skip()
      }
      return true
    }
    if fits { self = ahead }
    return fits
  }

  mutating func digit() -> Int? {
    guard let digit = next.flatMap(ASCII.digit) else { return nil }
    skip()
    return digit
  }

  /// A number of exactly `digits` digits, at most four.
  mutating func number(digits: Int) -> Int? {
    var total = 0
    for _ in 0..<digits {
      guard let digit = digit() else { return nil }
      total = total * 10 + digit
    }
    return total
  }
}
