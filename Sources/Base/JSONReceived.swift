import CJansson
import CPlatform

// Reading a server's text: what is not needed is not judged.
//
// A server sends values that this library never looks at, such as `user_metadata`. One of them may be
// a number that neither 64 bits nor a double hold, a text with U+0000 or half of a surrogate pair (a
// column of type `json` keeps both), may be nested too deep, or may cost too much memory. Such values
// are replaced in a copy of the text, and jansson reads the copy: a number becomes null, such a
// character U+FFFD, and objects and arrays below the second level become empty. No answer that is used
// has a field below the second level, except figures and contacts, which need all of their values.
//
// A whole number beyond 64 bits, as 10000000000000000000000, is read as a real one, with the precision of a double.
// PostgreSQL writes 1e22 so.

/// A value of a server's text.
public struct ReceivedJSON {
  public let value: JSON
  /// Nothing was replaced.
  public let isWhole: Bool
}

extension JSON {
  /// The memory that a value of an answer may take. An answer of n bytes costs n as text, and 6 n
  /// more allow one long text: jansson takes 4 n for it. A small value may cost a fixed amount,
  /// whatever its shape.
  public static func mostCost(_ text: UnsafeRawBufferPointer) -> Int {
    max(6 * text.count, 1 << 19)
  }

  /// Reads any value of a server's text. Throws `request.*` for text that is not JSON or costs too
  /// much in any case, or `memory.exhausted`. `levels`: what is nested deeper may be left out.
  public static func receive(
    _ text: UnsafeRawBufferPointer, _ dialect: Dialect = .tolerant, most: Int = maxValues,
    bytes: Int = .max, levels: Int = 2
  ) throws(Failure) -> ReceivedJSON {
    func read(_ text: UnsafeRawBufferPointer) throws(Failure) -> JSON {
      try parse(text, dialect, most: most, bytes: bytes, scalars: true)
    }
    do throws(Failure) { return ReceivedJSON(value: try read(text), isWhole: true) } catch {
      guard error.code == .requestNotJSON || error.isOfSize else { throw error }
      let copy = try JSONText(text)
      defer { withExtendedLifetime(copy) {} }
      let hadCharacters = copy.replaceCharacters()
      guard error.isOfNumber || error.isOfSize || hadCharacters else { throw error }
      if error.isOfSize { copy.emptyContainers(below: levels) }
      let lacksNumbers = try copy.replaceNumbers()
      return ReceivedJSON(
        value: try read(copy.bytes),
        isWhole: !hadCharacters && !error.isOfSize && !lacksNumbers)
    }
  }
}

extension Failure {
  /// A text is refused for a number that neither 64 bits nor a double hold.
  public var isOfNumber: Bool {
    code == .requestNotJSON && message == JSON.explanation(json_error_numeric_overflow)
  }

  /// A text is refused for its nesting, or for what it costs.
  public var isOfSize: Bool { code == .requestTooDeep || code == .requestTooManyValues }
}

extension JSONText {
  private func fill(_ range: Range<Int>, _ byte: UInt8) {
    (start + range.lowerBound).initializeMemory(as: UInt8.self, repeating: byte, count: range.count)
  }

  /// Objects and arrays below this level become empty.
  fileprivate func emptyContainers(below most: Int) {
    var (level, place, first) = (0, 0, 0)
    while place < count {
      let byte = bytes[place]
      place += 1
      switch byte {
      case UInt8(ascii: "\""): JSONScan.skipString(bytes, &place)
      case UInt8(ascii: "{"), UInt8(ascii: "["):
        level += 1
        if level == most + 1 { first = place }
      case UInt8(ascii: "}"), UInt8(ascii: "]"):
        if level == most + 1 { fill(first..<place - 1, UInt8(ascii: " ")) }
        level -= 1
      default: break
      }
    }
  }

  /// Escapes of U+0000, and of half a surrogate pair, become U+FFFD. Returns whether there were any.
  fileprivate func replaceCharacters() -> Bool {
    var place = 0
    var found = false
    func unit(at place: Int) -> UInt32? {
      guard place + 2 <= count, bytes[place] == UInt8(ascii: "\\"),
        bytes[place + 1] == UInt8(ascii: "u")
      else { return nil }
      return JSON.unit(bytes, at: place + 2)
    }
    while place < count {
      guard bytes[place] == UInt8(ascii: "\\") else {
        place += 1
        continue
      }
      guard let first = unit(at: place) else {
        place += 2
        continue
      }
      if first & 0xFC00 == 0xD800, let second = unit(at: place + 6), second & 0xFC00 == 0xDC00 {
        place += 6
      } else if first == 0 || first & 0xF800 == 0xD800 {
        let replacement: StaticCString = "\\ufffd"
        (start + place).copyMemory(from: replacement.start, byteCount: 6)
        found = true
      }
      place += 6
    }
    return found
  }

  /// Whole numbers beyond 64 bits become real ones: their last two digits become an exponent. Those that jansson
  /// cannot hold become null; whether there were any. The shortest is 2e308.
  fileprivate func replaceNumbers() throws(Failure) -> Bool {
    func put(_ text: StaticCString, at place: Int) {
      (start + place).copyMemory(from: text.start, byteCount: text.count)
    }
    var tokens = NumberTokens(bytes)
    var found = false
    while let token = tokens.next() {
      guard token.count >= 5, try JSON.isTooLarge(bytes, token) else { continue }
      if bytes[token].allSatisfy({ ASCII.isDigit($0) || $0 == UInt8(ascii: "-") }) {
        put("e2", at: token.upperBound - 2)
        guard try JSON.isTooLarge(bytes, token) else { continue }
      }
      found = true
      fill(token, UInt8(ascii: " "))
      put("null", at: token.lowerBound)
    }
    return found
  }
}

extension JSON {
  fileprivate static func isTooLarge(
    _ text: UnsafeRawBufferPointer, _ token: Range<Int>
  ) throws(Failure) -> Bool {
    do throws(Failure) {
      _ = try build(
        UnsafeRawBufferPointer(rebasing: text[token]), .tolerant, true, longest: token.count)
      return false
    } catch {
      if error.code == .memoryExhausted { throw error }
      return error.isOfNumber
    }
  }
}
