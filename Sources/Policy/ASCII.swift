/// Byte-wise text matching: protocols are made of bytes, and the same everywhere.
enum ASCII {
  /// Whether `text` holds `words`, upper and lower case taken as one.
  static func contains(_ text: String, _ words: StaticString) -> Bool {
    let count = words.utf8CodeUnitCount
    var start = text.utf8.startIndex
    while start != text.utf8.endIndex {
      if matches(text.utf8[start...], words, count) { return true }
      start = text.utf8.index(after: start)
    }
    return count == 0
  }

  /// Whether `text` starts with `prefix`, exactly.
  static func starts(_ text: String, _ prefix: StaticString) -> Bool {
    prefix.withUTF8Buffer { prefix in
      var bytes = text.utf8.makeIterator()
      for byte in prefix where bytes.next() != byte { return false }
      return true
    }
  }

  static func lowered(_ byte: UInt8) -> UInt8 {
    byte >= UInt8(ascii: "A") && byte <= UInt8(ascii: "Z") ? byte | 0x20 : byte
  }

  /// The value of a decimal digit.
  static func digit(_ byte: UInt8) -> Int? {
    byte >= UInt8(ascii: "0") && byte <= UInt8(ascii: "9") ? Int(byte &- UInt8(ascii: "0")) : nil
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

  /// Whether `word` is one of `words`, which stand in one text with a space between two.
  @inline(never)
  static func lists(_ words: StaticString, _ word: [UInt8]) -> Bool {
    words.withUTF8Buffer { words in
      var start = 0
      while start < words.count {
        var end = start
        while end < words.count, words[end] != UInt8(ascii: " ") { end += 1 }
        if Array(words[start..<end]) == word { return true }
        start = end + 1
      }
      return false
    }
  }
}
