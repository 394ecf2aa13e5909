import CJansson
import CPlatform

// Reading a request with one long text among its members, such as the body of a response.
//
// jansson collects a string's text in a buffer that doubles, and copies it from there into a block of
// that size: up to four times the text, and an escape takes up to six times the byte that it stands for.
// So the text is taken out, jansson reads the rest with "" in its place, and a copy of the text is decoded
// in place. What is refused, and the field that is named, stay the same.

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
    let text = try JSONText(UnsafeRawBufferPointer(rebasing: bytes[cut]))
    defer { withExtendedLifetime(text) {} }
    func refusal(_ code: json_error_code) -> Failure {
      Failure(
        .requestNotJSON, explanation(code),
        field: JSONPointer.locate(at: cut.lowerBound, in: bytes))
    }
    if let problem = text.decodeEscapes() { throw refusal(problem) }
    let start = text.start.assumingMemoryBound(to: CChar.self)
    guard let value = json_stringn(start, text.count) else {
      try checkMemory()
      throw refusal(json_error_invalid_utf8)
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

extension JSONText {
  /// Puts what they stand for in place of the escapes of a JSON string; no escape is shorter than that.
  /// Returns what is wrong with the string, except for its UTF-8.
  fileprivate func decodeEscapes() -> json_error_code? {
    let raw = bytes
    var size = 0
    var at = 0
    // Without a check of bounds: most bytes of a text are plain.
    func isPlain(_ place: Int) -> Bool {
      let byte = start.load(fromByteOffset: place, as: UInt8.self)
      return byte != UInt8(ascii: "\\") && byte >= 0x20
    }
    func put(_ byte: UInt8) {
      start.storeBytes(of: byte, toByteOffset: size, as: UInt8.self)
      size += 1
    }
    while at < raw.count {
      let plain = at
      while at < raw.count, isPlain(at) { at += 1 }
      (start + size).copyMemory(from: start + plain, byteCount: at - plain)
      size += at - plain
      guard at < raw.count else { break }
      guard raw[at] == UInt8(ascii: "\\"), at + 1 < raw.count else {
        return json_error_invalid_syntax
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
        guard let scalar = JSON.scalar(raw, &at) else { return json_error_invalid_syntax }
        guard scalar.value != 0 else { return json_error_null_character }
        for unit in UTF8.encode(scalar) ?? .init() { put(unit) }
      default: return json_error_invalid_syntax
      }
    }
    shrink(to: size)
    return nil
  }
}

extension JSON {
  /// The character of an escape with hexadecimal digits, which begin at `at`, or of two that are a pair
  /// of surrogates.
  fileprivate static func scalar(
    _ text: UnsafeRawBufferPointer, _ at: inout Int
  ) -> Unicode.Scalar? {
    guard let first = unit(text, at: at) else { return nil }
    at += 4
    guard first & 0xFC00 == 0xD800 else { return Unicode.Scalar(first) }
    guard at + 2 <= text.count, text[at] == UInt8(ascii: "\\"), text[at + 1] == UInt8(ascii: "u"),
      let second = unit(text, at: at + 2), second & 0xFC00 == 0xDC00
    else { return nil }
    at += 6
    return Unicode.Scalar(0x10000 + (first & 0x3FF) << 10 + second & 0x3FF)
  }

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
