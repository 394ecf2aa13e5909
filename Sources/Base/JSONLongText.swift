import CJansson
import CPlatform

// Reading a request with one long text among its members, such as the body of a response.
//
// jansson collects a string's text in a buffer that doubles, and copies it from there into a block of
// that size: up to four times the text, and an escape takes up to six times the byte that it stands for.
// So the text is taken out, jansson reads the rest with "" in its place, and the text is decoded into a
// block of exactly its size. What is refused, and the field that is named, stay the same.

extension JSON {
  /// A string with so many bytes is read so.
  static var longText: Int { 16_384 }

  static func parse(
    _ bytes: UnsafeRawBufferPointer, without size: JSONMeasure, _ dialect: Dialect, _ scalars: Bool
  ) throws(Failure) -> JSON {
    let cut = size.longest
    let rest = try JSONText(bytes, without: cut)
    defer { withExtendedLifetime(rest) {} }
    let longest = min(size.longestToken, rest.bytes.count)
    let json = try build(rest.bytes, dialect, scalars, longest: longest, of: bytes, cut: cut)
    let text = LongText(UnsafeRawBufferPointer(rebasing: bytes[cut]))
    guard text.problem == nil else {
      throw Failure(
        .requestNotJSON, explanation(text.problem ?? json_error_invalid_syntax),
        field: JSONPointer.locate(at: cut.lowerBound, in: bytes))
    }
    let decoded = try text.decoded()
    defer { withExtendedLifetime(decoded) {} }
    let start = decoded.start.assumingMemoryBound(to: CChar.self)
    guard let value = json_stringn(start, decoded.count) else {
      try checkMemory()
      throw Failure(
        .requestNotJSON, explanation(json_error_invalid_utf8),
        field: JSONPointer.locate(at: cut.lowerBound, in: bytes))
    }
    // Members are in the order of the text, and none is there twice.
    var at = json_object_iter(json.raw)
    for _ in 0..<size.longestMember { at = json_object_iter_next(json.raw, at) }
    guard at != nil, json_object_iter_set_new(json.raw, at, value) == 0 else {
      throw Failure(.memoryExhausted, "no memory for a text")
    }
    return json
  }
}

/// The text of a JSON string, with its escapes.
private struct LongText {
  private let raw: UnsafeRawBufferPointer
  /// What is wrong with it, except for its UTF-8.
  private(set) var problem: json_error_code?
  private var count = 0

  init(_ raw: UnsafeRawBufferPointer) {
    self.raw = raw
    count = write(to: nil)
  }

  func decoded() throws(Failure) -> JSONText {
    // No escape is shorter than what it stands for, so there are as many bytes to begin with.
    let text = try JSONText(UnsafeRawBufferPointer(rebasing: raw[..<count]))
    var copy = self
    _ = copy.write(to: text.start)
    return text
  }

  /// Decodes the text, or with nil only counts its bytes. Stops at a problem.
  private mutating func write(to room: UnsafeMutableRawPointer?) -> Int {
    var size = 0
    var at = 0
    func put(_ byte: UInt8) {
      room?.storeBytes(of: byte, toByteOffset: size, as: UInt8.self)
      size += 1
    }
    while at < raw.count {
      let start = at
      while at < raw.count, raw[at] != UInt8(ascii: "\\"), raw[at] >= 0x20 { at += 1 }
      if let room {
        UnsafeMutableRawBufferPointer(start: room + size, count: at - start)
          .copyMemory(from: UnsafeRawBufferPointer(rebasing: raw[start..<at]))
      }
      size += at - start
      guard at < raw.count else { break }
      guard raw[at] == UInt8(ascii: "\\"), at + 1 < raw.count else {
        return stop(json_error_invalid_syntax)
      }
      let escape = raw[at + 1]
      at += 2
      switch escape {
      case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"): put(escape)
      case UInt8(ascii: "b"): put(0x08)
      case UInt8(ascii: "f"): put(0x0C)
      case UInt8(ascii: "n"): put(0x0A)
      case UInt8(ascii: "r"): put(0x0D)
      case UInt8(ascii: "t"): put(0x09)
      case UInt8(ascii: "u"):
        guard let scalar = scalar(&at) else { return stop(json_error_invalid_syntax) }
        guard scalar.value != 0 else { return stop(json_error_null_character) }
        for unit in UTF8.encode(scalar) ?? .init() { put(unit) }
      default: return stop(json_error_invalid_syntax)
      }
    }
    return size
  }

  private mutating func stop(_ code: json_error_code) -> Int {
    problem = code
    return 0
  }

  /// The character of an escape with hexadecimal digits, or of two that are a pair of surrogates.
  private func scalar(_ at: inout Int) -> Unicode.Scalar? {
    guard let first = unit(&at) else { return nil }
    guard first & 0xFC00 == 0xD800 else { return Unicode.Scalar(first) }
    guard at + 2 <= raw.count, raw[at] == UInt8(ascii: "\\"), raw[at + 1] == UInt8(ascii: "u")
    else {
      return nil
    }
    at += 2
    guard let second = unit(&at), second & 0xFC00 == 0xDC00 else { return nil }
    return Unicode.Scalar(0x10000 + (first & 0x3FF) << 10 + second & 0x3FF)
  }

  private func unit(_ at: inout Int) -> UInt32? {
    guard let value = JSON.unit(raw, at: at) else { return nil }
    at += 4
    return value
  }
}

extension JSON {
  /// The UTF-16 unit that the four hexadecimal digits at this place stand for.
  static func unit(_ text: UnsafeRawBufferPointer, at place: Int) -> UInt32? {
    guard place + 4 <= text.count else { return nil }
    var value: UInt32 = 0
    for byte in text[place..<place + 4] {
      let byte = ASCII.lowered(byte)
      switch byte {
      case UInt8(ascii: "0")...UInt8(ascii: "9"): value = value << 4 | UInt32(byte & 15)
      case UInt8(ascii: "a")...UInt8(ascii: "f"): value = value << 4 | UInt32(byte & 15 + 9)
      default: return nil
      }
    }
    return value
  }
}
