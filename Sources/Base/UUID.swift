/// A UUID (RFC 9562). It is compared by its bytes and written in lower case.
public struct UUID: Hashable, Comparable, Sendable {
  public let high: UInt64
  public let low: UInt64

  public init(high: UInt64, low: UInt64) {
    self.high = high
    self.low = low
  }

  /// Reads the form 8-4-4-4-12 in upper or lower case; nil for anything else.
  public init?(_ text: String) {
    var copy = text
    guard let id = copy.withUTF8({ UUID(utf8: UnsafeRawBufferPointer($0)) }) else { return nil }
    self = id
  }

  public init?(utf8 text: UnsafeRawBufferPointer) {
    guard text.count == UUID.length else { return nil }
    var (high, low): (UInt64, UInt64) = (0, 0)
    for at in 0..<UUID.length {
      if UUID.isDash(at) {
        guard text[at] == UInt8(ascii: "-") else { return nil }
        continue
      }
      guard let digit = Hex.value(text[at]) else { return nil }
      high = high << 4 | low >> 60
      low = low << 4 | UInt64(digit)
    }
    self.init(high: high, low: low)
  }

  /// Whether the form has a dash at this place.
  private static func isDash(_ at: Int) -> Bool {
    at == 8 || at == 13 || at == 18 || at == 23
  }

  /// Takes sixteen bytes as they are, of any UUID version or none.
  public init?(bytes: [UInt8]) {
    guard bytes.count == 16 else { return nil }
    high = UInt64(bigEndian: bytes[..<8])
    low = UInt64(bigEndian: bytes[8...])
  }

  /// Makes a UUID of version 7. These are ordered by time, which keeps the server's index compact.
  public init(version7At milliseconds: Int64, random: (UInt64, UInt64)) {
    high = UInt64(clamping: milliseconds) << 16 | 0x7000 | random.0 & 0x0FFF
    low = 0x8000_0000_0000_0000 | random.1 & 0x3FFF_FFFF_FFFF_FFFF
  }

  /// Makes a UUID of version 8, whose bits mean what its maker says.
  public init(version8 high: UInt64, _ low: UInt64) {
    self.high = high & ~0xF000 | 0x8000
    self.low = 0x8000_0000_0000_0000 | low & 0x3FFF_FFFF_FFFF_FFFF
  }

  /// The number of characters of the text.
  public static var length: Int { 36 }

  public var text: String {
    String(unsafeUninitializedCapacity: UUID.length) { room in
      write(to: room)
      return UUID.length
    }
  }

  func write(to room: UnsafeMutableBufferPointer<UInt8>) {
    var at = 0
    for word in [high, low] {
      for shift in stride(from: 56, through: 0, by: -8) {
        let byte = UInt8(truncatingIfNeeded: word >> UInt64(shift))
        room[at] = Hex.digit(byte >> 4)
        room[at + 1] = Hex.digit(byte & 0xF)
        at += 2
        if UUID.isDash(at) {
          room[at] = UInt8(ascii: "-")
          at += 1
        }
      }
    }
  }

  public var bytes: [UInt8] {
    [UInt8](bigEndian: high, low)
  }

  public static func < (left: UUID, right: UUID) -> Bool {
    left.high != right.high ? left.high < right.high : left.low < right.low
  }
}

public enum Hex {
  public static func value(_ character: UInt8) -> UInt8? {
    switch character {
    case UInt8(ascii: "0")...UInt8(ascii: "9"): return character - UInt8(ascii: "0")
    case UInt8(ascii: "a")...UInt8(ascii: "f"): return character - UInt8(ascii: "a") + 10
    case UInt8(ascii: "A")...UInt8(ascii: "F"): return character - UInt8(ascii: "A") + 10
    default: return nil
    }
  }

  public static func digit(_ value: UInt8) -> UInt8 {
    value < 10 ? UInt8(ascii: "0") + value : UInt8(ascii: "a") + value - 10
  }
}

/// A fixed set of ids, as a sorted array. For the few hundred ids of a batch this costs less than
/// hashing.
public struct SortedUUIDSet {
  private var sorted: [UUID]

  public init(_ ids: [UUID]) {
    sorted = ids.ordered()
  }

  public var isEmpty: Bool { sorted.isEmpty }

  public func contains(_ id: UUID) -> Bool {
    sorted.sortedContains(id)
  }
}
