extension UInt64 {
  /// Reads a word, most significant byte first.
  init(bigEndian bytes: some Sequence<UInt8>) {
    self = 0
    for byte in bytes { self = self << 8 | UInt64(byte) }
  }
}

extension [UInt8] {
  /// The eight bytes of each word, most significant first.
  public init(bigEndian words: UInt64...) {
    self.init(unsafeUninitializedCapacity: words.count * 8) { room, count in
      count = words.count * 8
      let start = UnsafeMutableRawBufferPointer(room)
      for (index, word) in words.enumerated() {
        start.storeBytes(of: word.bigEndian, toByteOffset: index * 8, as: UInt64.self)
      }
    }
  }
}
