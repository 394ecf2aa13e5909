extension UInt64 {
  /// Reads a word, most significant byte first.
  init(bigEndian bytes: some Sequence<UInt8>) {
    self = 0
    for byte in bytes { self = self << 8 | UInt64(byte) }
  }
}

extension [UInt8] {
  /// Appends the eight bytes of a word, most significant first.
  mutating func append(bigEndian word: UInt64) {
    for shift in stride(from: 56, through: 0, by: -8) {
      append(UInt8(truncatingIfNeeded: word >> UInt64(shift)))
    }
  }
}
