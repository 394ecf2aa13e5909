/// Recognises texts that jansson certainly reads, without building a value.
///
/// It knows the common part of JSON only: no escapes with digits, no exponents, and numbers that cannot
/// overflow. About any other text it says nothing, and jansson has to be asked. The text must be UTF-8.
public struct JSONGrammar {
  private let text: UnsafeRawBufferPointer
  private var place = 0
  /// One bit for each open level: it is an object.
  private var objects: UInt64 = 0
  private var level = 0

  private init(_ text: UnsafeRawBufferPointer) { self.text = text }

  /// Whether the text is certainly one value. False: it may be one.
  public static func surelyAccepts(_ text: UnsafeRawBufferPointer) -> Bool {
    var grammar = JSONGrammar(text)
    return grammar.takeValue() && grammar.isAtEnd()
  }

  private mutating func takeValue() -> Bool {
    while true {
      if take(UInt8(ascii: "{")) {
        guard open(isObject: true) else { return false }
        if !take(UInt8(ascii: "}")) {
          guard takeKey() else { return false }
          continue
        }
        level -= 1
      } else if take(UInt8(ascii: "[")) {
        guard open(isObject: false) else { return false }
        if !take(UInt8(ascii: "]")) { continue }
        level -= 1
      } else {
        guard takeScalar() else { return false }
      }
      // A value has ended. So do those around it that have no more elements.
      while level > 0, !take(UInt8(ascii: ",")) {
        guard take(isObject ? UInt8(ascii: "}") : UInt8(ascii: "]")) else { return false }
        level -= 1
      }
      if level == 0 { return true }
      if isObject, !takeKey() { return false }
    }
  }

  private var isObject: Bool { objects >> UInt64(level) & 1 == 1 }

  private mutating func open(isObject: Bool) -> Bool {
    level += 1
    guard level < UInt64.bitWidth else { return false }
    let bit: UInt64 = 1 << UInt64(level)
    objects = isObject ? objects | bit : objects & ~bit
    return true
  }

  private mutating func takeKey() -> Bool {
    take(UInt8(ascii: "\"")) && takeString() && take(UInt8(ascii: ":"))
  }

  private mutating func takeScalar() -> Bool {
    if take(UInt8(ascii: "\"")) { return takeString() }
    guard place < text.count else { return false }
    switch text[place] {
    case UInt8(ascii: "t"): return take("true")
    case UInt8(ascii: "f"): return take("false")
    case UInt8(ascii: "n"): return take("null")
    default: return takeNumber()
    }
  }

  /// The rest of a string.
  private mutating func takeString() -> Bool {
    while place < text.count {
      let byte = text[place]
      place += 1
      switch byte {
      case UInt8(ascii: "\""): return true
      case UInt8(ascii: "\\"):
        guard place < text.count else { return false }
        switch text[place] {
        case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"), UInt8(ascii: "b"),
          UInt8(ascii: "f"), UInt8(ascii: "n"), UInt8(ascii: "r"), UInt8(ascii: "t"):
          place += 1
        default: return false
        }
      default: if byte < 0x20 { return false }
      }
    }
    return false
  }

  /// A number of at most 18 bytes without an exponent fits into 64 bits, or into a double.
  private mutating func takeNumber() -> Bool {
    let start = place
    if text[place] == UInt8(ascii: "-") { place += 1 }
    let first = place
    var digits = takeDigits()
    // A zero is followed by no other digit.
    if digits > 1, text[first] == UInt8(ascii: "0") { return false }
    if digits > 0, place < text.count, text[place] == UInt8(ascii: ".") {
      place += 1
      digits = takeDigits()
    }
    return digits > 0 && place - start <= 18
  }

  private mutating func takeDigits() -> Int {
    let start = place
    while place < text.count, text[place] >= UInt8(ascii: "0"), text[place] <= UInt8(ascii: "9") {
      place += 1
    }
    return place - start
  }

  private mutating func take(_ word: StaticString) -> Bool {
    for byte in UnsafeBufferPointer(start: word.utf8Start, count: word.utf8CodeUnitCount) {
      guard place < text.count, text[place] == byte else { return false }
      place += 1
    }
    return true
  }

  /// Moves behind white space, and behind the next byte if it is this one.
  private mutating func take(_ wanted: UInt8) -> Bool {
    skipSpace()
    guard place < text.count, text[place] == wanted else { return false }
    place += 1
    return true
  }

  private mutating func isAtEnd() -> Bool {
    skipSpace()
    return place == text.count
  }

  private mutating func skipSpace() {
    while place < text.count, JSONRows.isSpace(text[place]) { place += 1 }
  }
}
