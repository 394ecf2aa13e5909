import CJansson
import CPlatform

// Real numbers in JSON text, one by one.
//
// jansson holds a real number as a double and writes all of them with the same number of digits,
// 17 when it must be sure. So each number's text is shortened after that: the smallest number of
// digits (15, 16 or 17) that reads back as the same double. 15 always do for a number that was
// written with 15 or fewer, so such a number leaves as it came.
//
// A number that was written with more digits than a double holds would leave as another one. It is
// found by comparing digits and exponent of what was written with those of the shortened text.
//
// A number without decimals after its exponent was applied (1e3, 1.5e3) is a whole number, as
// PostgreSQL sees it: an integer column takes it. 1500.0 is not one.
//
// jansson converts between texts and doubles, because strtod() follows the host's locale.

/// The numbers of a JSON text that jansson could read, from the first to the last.
struct NumberTokens {
  let bytes: UnsafeRawBufferPointer
  private var at = 0

  init(_ bytes: UnsafeRawBufferPointer) { self.bytes = bytes }

  mutating func next() -> Range<Int>? {
    while at < bytes.count {
      switch bytes[at] {
      case UInt8(ascii: "\""):
        at += 1
        JSONScan.skipString(bytes, &at)
      case UInt8(ascii: "-"), UInt8(ascii: "0")...UInt8(ascii: "9"):
        let start = at
        while at < bytes.count, NumberTokens.isPart(bytes[at]) { at += 1 }
        return start..<at
      default: at += 1
      }
    }
    return nil
  }

  static func isPart(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "+"),
      UInt8(ascii: "."), UInt8(ascii: "e"), UInt8(ascii: "E"):
      true
    default: false
    }
  }
}

/// A number as it is written: its digits without leading and trailing zeros, times a power of ten.
private struct WrittenNumber: Equatable {
  private var digits: [UInt8] = []
  private var exponent = 0
  /// It has a point or an exponent, so jansson reads it as a real number.
  private(set) var isReal = false
  /// It has no decimals, once its exponent is applied.
  private(set) var isWhole: Bool

  init(_ text: some Sequence<UInt8>) {
    var decimals = 0
    var power = 0
    var hasPoint = false
    var isNegativePower = false
    var hasPower = false
    for byte in text {
      switch byte {
      case UInt8(ascii: "."): hasPoint = true
      case UInt8(ascii: "e"), UInt8(ascii: "E"): hasPower = true
      case UInt8(ascii: "-"): isNegativePower = hasPower
      case UInt8(ascii: "+"): break
      default:
        // No double has such an exponent; more digits would overflow.
        if hasPower {
          power = min(10 * power + Int(byte - UInt8(ascii: "0")), 1_000_000)
        } else {
          digits.append(byte)
          if hasPoint { decimals += 1 }
        }
      }
    }
    isReal = hasPoint || hasPower
    exponent = (isNegativePower ? -power : power) - decimals
    isWhole = exponent >= 0
    while digits.last == UInt8(ascii: "0") {
      digits.removeLast()
      exponent += 1
    }
    digits = Array(digits.drop { $0 == UInt8(ascii: "0") })
    if digits.isEmpty { exponent = 0 }
  }

  /// A double has room for any number with so few digits, except near its limits.
  var isSurelyExact: Bool { digits.count <= 15 && abs(exponent) < 250 }

  static func == (left: WrittenNumber, right: WrittenNumber) -> Bool {
    left.exponent == right.exponent && left.digits == right.digits
  }
}

/// Texts of doubles, as jansson writes them.
private enum RealText {
  /// The text of the same double with the smallest number of digits; nil: not a real number, or no
  /// memory.
  static func shortest(_ text: Slice<UnsafeRawBufferPointer>) -> [UInt8]? {
    guard let number = read(UnsafeRawBufferPointer(rebasing: text)) else { return nil }
    defer { json_decref(number) }
    let value = json_real_value(number)
    // Below the smallest normal double, fewer digits than 15 may be enough.
    let least = abs(value) < Double.leastNormalMagnitude ? 1 : 15
    for digits in least...17 {
      let text = written(number, digits)
      if reads(text, as: value) { return text }
    }
    return nil
  }

  private static func written(_ number: UnsafeMutablePointer<json_t>, _ digits: Int) -> [UInt8] {
    [UInt8](unsafeUninitializedCapacity: 32) { room, count in
      let start = UnsafeMutableRawPointer(room.baseAddress)?.assumingMemoryBound(to: CChar.self)
      let flags = JSON_ENCODE_ANY_FLAG | digits << JSON_REAL_PRECISION_SHIFT
      count = min(json_dumpb(number, start, room.count, flags), room.count)
    }
  }

  private static func reads(_ text: [UInt8], as value: Double) -> Bool {
    guard let number = text.withUnsafeBytes({ read($0) }) else { return false }
    defer { json_decref(number) }
    return json_real_value(number) == value
  }

  private static func read(_ bytes: UnsafeRawBufferPointer) -> UnsafeMutablePointer<json_t>? {
    guard
      let number = platform_read_json(
        bytes.baseAddress?.assumingMemoryBound(to: CChar.self), bytes.count, bytes.count,
        JSON_DECODE_ANY_FLAG, nil)?.assumingMemoryBound(to: json_t.self)
    else { return nil }
    if number.pointee.type == JSON_REAL { return number }
    json_decref(number)
    return nil
  }
}

extension JSONText {
  /// Write each real number with the smallest number of digits that reads back the same.
  func shortenReals() {
    var tokens = NumberTokens(bytes)
    var end = 0
    var copied = 0
    func move(_ from: UnsafeRawPointer, _ size: Int) {
      (start + end).copyMemory(from: from, byteCount: size)
      end += size
    }
    while let token = tokens.next() {
      move(start + copied, token.lowerBound - copied)
      copied = token.upperBound
      // A whole number below 10^17 can be shorter with 17 digits and no exponent.
      if let short = RealText.shortest(bytes[token]), short.count < token.count {
        short.withUnsafeBytes { if let from = $0.baseAddress { move(from, short.count) } }
      } else {
        move(start + token.lowerBound, token.count)
      }
    }
    move(start + copied, count - copied)
    shrink(to: end)
  }
}

extension JSON {
  /// Calls `replacement` with each real number in a value, in the order of the text: jansson keeps members
  /// in it. What it returns takes the number's place.
  private static func eachReal(
    in raw: UnsafeMutablePointer<json_t>,
    _ replacement: (UnsafeMutablePointer<json_t>) -> UnsafeMutablePointer<json_t>?
  ) {
    func visit(_ value: UnsafeMutablePointer<json_t>?) -> UnsafeMutablePointer<json_t>? {
      guard let value else { return nil }
      switch value.pointee.type {
      case JSON_REAL: return replacement(value)
      case JSON_ARRAY, JSON_OBJECT: eachReal(in: value, replacement)
      default: break
      }
      return nil
    }
    switch raw.pointee.type {
    case JSON_ARRAY:
      for index in 0..<json_array_size(raw) {
        if let other = visit(json_array_get(raw, index)) { json_array_set_new(raw, index, other) }
      }
    case JSON_OBJECT:
      var at = json_object_iter(raw)
      while let iterator = at {
        if let other = visit(json_object_iter_value(iterator)) {
          json_object_iter_set_new(raw, iterator, other)
        }
        at = json_object_iter_next(raw, iterator)
      }
    default: break
    }
  }

  /// Whether the value is or contains a real number.
  static func holdsReals(_ raw: UnsafeMutablePointer<json_t>) -> Bool {
    var found = raw.pointee.type == JSON_REAL
    eachReal(in: raw) { _ in
      found = true
      return nil
    }
    return found
  }

  /// Make the real numbers of `raw`, which was read from `bytes`, what was written: refuse one that
  /// a double cannot hold so, and turn whole ones into integers.
  static func makeExact(
    _ raw: UnsafeMutablePointer<json_t>, _ bytes: UnsafeRawBufferPointer
  ) throws(Failure) {
    var areWhole: [Bool] = []
    var tokens = NumberTokens(bytes)
    while let token = tokens.next() {
      let number = WrittenNumber(bytes[token])
      guard number.isReal else { continue }
      if !number.isSurelyExact,
        RealText.shortest(bytes[token]).map({ WrittenNumber($0) }) != number
      {
        try checkMemory()
        throw Failure(
          .queueInvalidPayload, "a number with more digits than a double holds is not exact",
          field: JSONPointer.locate(at: token.lowerBound, in: bytes))
      }
      areWhole.append(number.isWhole)
    }
    var rest = areWhole[...]
    eachReal(in: raw) { value in
      guard rest.popFirst() == true, let whole = Int64(exactly: json_real_value(value)),
        Fields.safe.contains(whole)
      else { return nil }
      return json_integer(whole)
    }
  }
}

private var JSON_REAL_PRECISION_SHIFT: Int { 11 }
