/// A row of a server's answer: a JSON object that is read in place.
///
/// Only the places of its members are found. A text without escapes is taken from its place; jansson
/// builds another value when it is asked for. So what is not needed costs nothing and is not judged:
/// a number that no type here holds, a text with U+0000, a value that is nested too deep. Of a name
/// that comes twice the last one counts. A name with escapes is none of those that are asked for.
public struct JSONRow {
  /// Places in the text: of a name without its quotes, of a value with them.
  private struct Member {
    let name: Range<Int>
    let value: Range<Int>
    let kind: JSONScan.Kind
  }

  private let text: UnsafeRawBufferPointer
  private var members: [Member] = []
  /// Whether the text is an object; one that is not has no members.
  public private(set) var isObject = false

  /// A table of PostgreSQL has at most so many columns.
  private static var maxMembers: Int { 1_600 }

  /// The text must be UTF-8, and outlive the row.
  @inline(never)
  public init(_ text: UnsafeRawBufferPointer) {
    self.text = text
    members.reserveCapacity(8)
    isObject = readMembers()
    if !isObject { members = [] }
  }

  private mutating func readMembers() -> Bool {
    var scan = JSONScan(text)
    guard scan.take(UInt8(ascii: "{")) else { return false }
    if !scan.take(UInt8(ascii: "}")) {
      repeat {
        guard members.count < JSONRow.maxMembers, let (name, _) = scan.takeString(),
          scan.take(UInt8(ascii: ":")), let (value, kind) = scan.takeValue()
        else { return false }
        members.append(Member(name: JSONRow.inner(name), value: value, kind: kind))
      } while scan.take(UInt8(ascii: ","))
      guard scan.take(UInt8(ascii: "}")) else { return false }
    }
    return scan.isAtEnd()
  }

  /// A string without its quotes.
  private static func inner(_ string: Range<Int>) -> Range<Int> {
    string.lowerBound + 1..<string.upperBound - 1
  }

  // MARK: Members

  @inline(never)
  public func string(_ name: StaticCString) -> String? { string(of: find(name.bytes)) }

  public func string(named name: String) -> String? { string(of: find(name)) }

  @inline(never)
  private func string(of member: Member?) -> String? {
    guard let member else { return nil }
    return member.kind == .text
      ? String(decoding: unquoted(member), as: UTF8.self) : value(of: member)?.string
  }

  @inline(never)
  public func uuid(_ name: StaticCString) -> UUID? {
    guard let member = find(name.bytes) else { return nil }
    return member.kind == .text ? UUID(utf8: unquoted(member)) : value(of: member)?.uuid
  }

  /// A member as jansson builds it; nil: there is none, or it cannot be read.
  @inline(never)
  public func value(_ name: StaticCString) -> JSON? {
    find(name.bytes).flatMap { value(of: $0) }
  }

  /// Whether the value is a text or null, or there is none.
  @inline(never)
  public func isTextOrNull(_ name: StaticCString) -> Bool {
    guard let member = find(name.bytes) else { return true }
    switch member.kind {
    case .text, .null: return true
    case .word: return false
    case .other: return text[member.value.lowerBound] == UInt8(ascii: "\"")
    }
  }

  /// Whether the value is null, or there is none.
  public func isNull(_ name: StaticCString) -> Bool {
    find(name.bytes).map { $0.kind == .null } ?? true
  }

  /// What can be read of the row, as jansson builds it; null: nothing.
  @inline(never)
  public var value: JSON { JSONRow.built(text) ?? .null }

  /// These members alone, as `JSON.text` writes them; nil: one of them cannot be read. Throws
  /// `memory.exhausted`.
  public func text(of names: [String]) throws(Failure) -> JSONText? {
    var kept: [Member] = []
    for name in names {
      if let member = find(name) { kept.append(member) }
    }
    // Two quotes, a colon, and a comma or the end.
    let size = kept.reduce(2) { $0 + $1.name.count + $1.value.count + 4 }
    let result = try JSONText(room: size)
    var separator: StaticString = "{\""
    for member in kept {
      try result.append(separator)
      try result.append(bytes(member.name))
      try result.append("\":")
      try result.append(bytes(member.value))
      separator = ",\""
    }
    try result.append(kept.isEmpty ? "{}" : "}")
    guard kept.contains(where: { $0.kind == .other }) else { return result }
    defer { withExtendedLifetime(result) {} }
    let read = try JSON.receive(result.bytes, bytes: JSON.mostCost(result.bytes))
    return read.isWhole ? try read.value.text() : nil
  }

  private func value(of member: Member) -> JSON? { JSONRow.built(bytes(member.value)) }

  @inline(never)
  private static func built(_ text: UnsafeRawBufferPointer) -> JSON? {
    (try? JSON.receive(text, bytes: JSON.mostCost(text)))?.value
  }

  private func find(_ name: String) -> Member? {
    var name = name
    return name.withUTF8 { find(UnsafeRawBufferPointer($0)) }
  }

  private func find(_ name: UnsafeRawBufferPointer) -> Member? {
    members.last { equals(name, $0.name) }
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

  private func unquoted(_ member: Member) -> UnsafeRawBufferPointer {
    bytes(JSONRow.inner(member.value))
  }
}
