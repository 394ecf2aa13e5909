/// A JSON object that is read in place, without jansson.
///
/// Its members are texts without escapes, integers, true, false or null; there are few, and no name comes
/// twice. Rows of tables are such objects. About any other text it says nothing, and jansson has to read
/// it.
public struct PlainObject {
  private enum Kind { case text, null, other }

  /// Places in the text, without quotes.
  private struct Member {
    let name: Range<Int>
    let value: Range<Int>
    let kind: Kind
  }

  private let text: UnsafeRawBufferPointer
  private var members: [Member] = []

  private static var maxMembers: Int { 32 }

  /// The text must be UTF-8, and outlive the value.
  public init?(_ text: UnsafeRawBufferPointer) {
    self.text = text
    members.reserveCapacity(8)
    var at = 0
    guard take(UInt8(ascii: "{"), &at) else { return nil }
    repeat {
      guard take(quote, &at), let name = takeText(&at), take(UInt8(ascii: ":"), &at),
        find(bytes(name)) == nil, members.count < PlainObject.maxMembers
      else { return nil }
      if take(quote, &at) {
        guard let value = takeText(&at) else { return nil }
        members.append(Member(name: name, value: value, kind: .text))
      } else {
        guard let (value, kind) = takeWord(&at) else { return nil }
        members.append(Member(name: name, value: value, kind: kind))
      }
    } while take(UInt8(ascii: ","), &at)
    guard take(UInt8(ascii: "}"), &at) else { return nil }
    skipSpace(&at)
    guard at == text.count else { return nil }
  }

  // MARK: Members

  /// The UTF-8 of a text; nil for other values and where there is none.
  public func utf8(_ name: StaticCString) -> UnsafeRawBufferPointer? {
    guard let member = find(name.bytes), member.kind == .text else { return nil }
    return bytes(member.value)
  }

  public func string(_ name: StaticCString) -> String? {
    utf8(name).map { String(decoding: $0, as: UTF8.self) }
  }

  public func string(named name: String) -> String? {
    var name = name
    guard let member = name.withUTF8({ find(UnsafeRawBufferPointer($0)) }), member.kind == .text
    else { return nil }
    return String(decoding: bytes(member.value), as: UTF8.self)
  }

  /// Whether there is a value that is no text and not null.
  public func isOther(_ name: StaticCString) -> Bool { find(name.bytes)?.kind == .other }

  /// The object with these members alone, as `JSON.text` writes it. Throws `memory.exhausted`.
  public func text(of names: [String]) throws(Failure) -> JSONText {
    let kept = members.filter { member in
      names.contains { name in
        var name = name
        return name.withUTF8 { equals(UnsafeRawBufferPointer($0), member.name) }
      }
    }
    // Two quotes, a colon, and a comma or the end; two quotes of a text.
    let size = kept.reduce(1) { $0 + $1.name.count + $1.value.count + ($1.kind == .text ? 6 : 4) }
    let result = try JSONText(room: max(2, size))
    var separator: StaticString = "{\""
    for member in kept {
      let isText = member.kind == .text
      try result.append(separator)
      try result.append(bytes(member.name))
      try result.append(isText ? "\":\"" : "\":")
      try result.append(bytes(member.value))
      if isText { try result.append("\"") }
      separator = ",\""
    }
    try result.append(kept.isEmpty ? "{}" : "}")
    return result
  }

  private func find(_ name: UnsafeRawBufferPointer) -> Member? {
    members.first { equals(name, $0.name) }
  }

  private func equals(_ wanted: UnsafeRawBufferPointer, _ range: Range<Int>) -> Bool {
    guard wanted.count == range.count else { return false }
    for place in 0..<wanted.count where wanted[place] != text[range.lowerBound + place] {
      return false
    }
    return true
  }

  private func bytes(_ range: Range<Int>) -> UnsafeRawBufferPointer {
    UnsafeRawBufferPointer(rebasing: text[range])
  }

  // MARK: Reading

  private var quote: UInt8 { UInt8(ascii: "\"") }

  /// Moves behind white space, and behind the next byte if it is this one.
  private func take(_ wanted: UInt8, _ at: inout Int) -> Bool {
    skipSpace(&at)
    guard at < text.count, text[at] == wanted else { return false }
    at += 1
    return true
  }

  private func skipSpace(_ at: inout Int) {
    while at < text.count, JSONRows.isSpace(text[at]) { at += 1 }
  }

  /// The rest of a text, without its closing quote.
  private func takeText(_ at: inout Int) -> Range<Int>? {
    let start = at
    while at < text.count {
      let byte = text[at]
      at += 1
      if byte == quote { return start..<at - 1 }
      if byte == UInt8(ascii: "\\") || byte < 0x20 { return nil }
    }
    return nil
  }

  private func takeWord(_ at: inout Int) -> (Range<Int>, Kind)? {
    let start = at
    while at < text.count, PlainObject.isOfWord(text[at]) { at += 1 }
    let range = start..<at
    if equals(("null" as StaticCString).bytes, range) { return (range, .null) }
    let isOther =
      equals(("true" as StaticCString).bytes, range)
      || equals(("false" as StaticCString).bytes, range) || isInteger(range)
    return isOther ? (range, .other) : nil
  }

  private static func isOfWord(_ byte: UInt8) -> Bool {
    byte >= UInt8(ascii: "a") && byte <= UInt8(ascii: "z")
      || byte >= UInt8(ascii: "0") && byte <= UInt8(ascii: "9") || byte == UInt8(ascii: "-")
  }

  /// Whether it is an integer of 64 bits as jansson writes it.
  private func isInteger(_ range: Range<Int>) -> Bool {
    guard let first = range.first else { return false }
    let digits = text[first] == UInt8(ascii: "-") ? range.dropFirst() : range
    guard let leading = digits.first, digits.count <= 18 else { return false }
    if text[leading] == UInt8(ascii: "0") { return range.count == 1 }
    return digits.allSatisfy { text[$0] >= UInt8(ascii: "0") && text[$0] <= UInt8(ascii: "9") }
  }
}
