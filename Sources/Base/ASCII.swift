/// Text matching byte by byte, independent of Unicode tables and locale.
public enum ASCII {
  /// Whether `text` contains `words`, without regard to case.
  public static func contains(_ text: String, _ words: StaticString) -> Bool {
    let count = words.utf8CodeUnitCount
    var start = text.utf8.startIndex
    while start != text.utf8.endIndex {
      if matches(text.utf8[start...], words, count) { return true }
      start = text.utf8.index(after: start)
    }
    return count == 0
  }

  /// Whether `text` starts with `prefix`, with regard to case.
  public static func starts(_ text: String, _ prefix: StaticString) -> Bool {
    prefix.withUTF8Buffer { prefix in
      var bytes = text.utf8.makeIterator()
      for byte in prefix where bytes.next() != byte { return false }
      return true
    }
  }

  /// The byte in lower case, if it is a letter.
  public static func lowered(_ byte: UInt8) -> UInt8 {
    byte >= UInt8(ascii: "A") && byte <= UInt8(ascii: "Z") ? byte | 0x20 : byte
  }

  public static func isDigit(_ byte: UInt8) -> Bool {
    byte >= UInt8(ascii: "0") && byte <= UInt8(ascii: "9")
  }

  public static func isLetter(_ byte: UInt8) -> Bool {
    lowered(byte) >= UInt8(ascii: "a") && lowered(byte) <= UInt8(ascii: "z")
  }

  /// The value of a decimal digit.
  public static func digit(_ byte: UInt8) -> Int? {
    isDigit(byte) ? Int(byte &- UInt8(ascii: "0")) : nil
  }

  private static func matches(
    _ text: Substring.UTF8View, _ words: StaticString, _ count: Int
  ) -> Bool {
    words.withUTF8Buffer { words in
      var bytes = text.makeIterator()
      for word in words {
        guard let byte = bytes.next(), lowered(byte) == lowered(word) else { return false }
      }
      return true
    }
  }
}
