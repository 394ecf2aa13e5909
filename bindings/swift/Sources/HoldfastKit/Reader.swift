import Foundation

/// What a reply is not.
struct Unreadable: Error {
  let what: String
}

/// What can be read from a reply.
protocol Readable {
  init(reading reader: inout Reader) throws(Unreadable)
  /// The decision in it, of which the handle keeps the newest.
  var decided: Decision? { get }
}

extension Readable {
  var decided: Decision? { nil }
}

/// A record of a reply.
protocol ReadableRecord: Readable {
  init(of object: inout Fields) throws(Unreadable)
}

extension ReadableRecord {
  init(reading reader: inout Reader) throws(Unreadable) {
    try reader.begin()
    var object = Fields(of: reader)
    try self.init(of: &object)
    try reader.leave(object)
  }
}

/// The name of a member, as it stands in the reply: with its quotation marks.
struct Key {
  fileprivate let quoted: UnsafeBufferPointer<UInt8>

  /// Whether it is this one, in a `switch`. The library writes the names of its fields without escapes.
  static func ~= (name: StaticString, key: Key) -> Bool {
    let length = name.utf8CodeUnitCount
    guard key.quoted.count == length + 2, let start = key.quoted.baseAddress else { return false }
    return memcmp(start + 1, name.utf8Start, length) == 0
  }

  /// The name of a member that is data.
  func text() throws(Unreadable) -> String {
    var reader = Reader(quoted)
    return try reader.text()
  }
}

/// Reads the library's JSON, in a fraction of JSONDecoder's time. It reads valid JSON; in other text it
/// finds an error, or another value, and never leaves the bounds.
struct Reader {
  private let bytes: UnsafeBufferPointer<UInt8>
  private var at = 0
  /// Nothing was read of the object that was begun last.
  private var isFirst = false

  init(_ bytes: UnsafeBufferPointer<UInt8>) { self.bytes = bytes }

  // MARK: Objects

  /// Enter an object.
  mutating func begin() throws(Unreadable) {
    try take(UInt8(ascii: "{"), of: "object")
    isFirst = true
  }

  /// The name of the next member; nil at the end of the object.
  mutating func key() throws(Unreadable) -> Key? {
    guard let next = peek() else { throw Unreadable(what: "object") }
    if next == UInt8(ascii: "}") {
      at += 1
      isFirst = false
      return nil
    }
    if !isFirst { try take(UInt8(ascii: ","), of: "object") }
    isFirst = false
    _ = peek()
    let start = at
    try skipText()
    let name = Key(quoted: UnsafeBufferPointer(rebasing: bytes[start..<at]))
    try take(UInt8(ascii: ":"), of: "object")
    return name
  }

  /// Go on after an object, whose other members are left out.
  fileprivate mutating func leave(_ object: Fields) throws(Unreadable) {
    self = object.next
    while try key() != nil { try skip() }
  }

  /// Whether the object that follows has a member with this name. It is still to be read.
  func has(_ name: StaticString) throws(Unreadable) -> Bool {
    var ahead = self
    try ahead.begin()
    return try ahead.goTo(name)
  }

  /// The text of this member of the object that follows, which is still to be read.
  func ahead(_ name: StaticString) throws(Unreadable) -> String {
    var ahead = self
    try ahead.begin()
    guard try ahead.goTo(name) else { throw Unreadable(what: "object with \(name)") }
    return try ahead.text()
  }

  /// Go to the value of a later member. False: none has the name, and the object is over.
  fileprivate mutating func goTo(_ name: StaticString) throws(Unreadable) -> Bool {
    while let key = try key() {
      if name ~= key { return true }
      try skip()
    }
    return false
  }

  // MARK: Values

  mutating func value<Value: Readable>() throws(Unreadable) -> Value { try Value(reading: &self) }

  /// Pass over a value.
  mutating func skip() throws(Unreadable) {
    switch peek() {
    case UInt8(ascii: "{"):
      try begin()
      while try key() != nil { try skip() }
    case UInt8(ascii: "["):
      try eachElement { (reader: inout Reader) throws(Unreadable) in try reader.skip() }
    case UInt8(ascii: "\""): try skipText()
    case nil: throw Unreadable(what: "value")
    default: _ = literal()
    }
  }

  fileprivate mutating func eachElement(
    _ read: (inout Reader) throws(Unreadable) -> Void
  ) throws(Unreadable) {
    try take(UInt8(ascii: "["), of: "array")
    if peek() == UInt8(ascii: "]") {
      at += 1
      return
    }
    while true {
      try read(&self)
      let next = peek()
      at += 1
      if next == UInt8(ascii: "]") { return }
      guard next == UInt8(ascii: ",") else { throw Unreadable(what: "array") }
    }
  }

  // MARK: Scalars

  mutating func bool() throws(Unreadable) -> Bool {
    _ = peek()
    let word = literal()
    if word.elementsEqual("true".utf8) { return true }
    guard word.elementsEqual("false".utf8) else { throw Unreadable(what: "boolean") }
    return false
  }

  mutating func int() throws(Unreadable) -> Int {
    _ = peek()
    let word = literal()
    // Few digits cannot overflow.
    guard (1...18).contains(word.count), word.allSatisfy({ (0x30...0x39).contains($0) }) else {
      return try longInt(word)
    }
    return word.reduce(0) { $0 * 10 + Int($1 - 0x30) }
  }

  /// A number with a sign, or of many digits.
  private func longInt(_ word: Slice<UnsafeBufferPointer<UInt8>>) throws(Unreadable) -> Int {
    guard let value = Int(String(decoding: word, as: UTF8.self)) else {
      throw Unreadable(what: "whole number")
    }
    return value
  }

  mutating func double() throws(Unreadable) -> Double {
    guard let value = Double(try word()) else { throw Unreadable(what: "number") }
    return value
  }

  mutating func json() throws(Unreadable) -> JSON {
    switch peek() {
    case UInt8(ascii: "{"): return .object(try value())
    case UInt8(ascii: "["): return .array(try value())
    case UInt8(ascii: "\""): return .string(try text())
    default: break
    }
    let word = try word()
    switch word {
    case "null": return .null
    case "true": return .bool(true)
    case "false": return .bool(false)
    default:
      if let int = Int(word) { return .int(int) }
      guard let number = Double(word) else { throw Unreadable(what: "value") }
      return .number(number)
    }
  }

  fileprivate mutating func takeNull() -> Bool {
    guard peek() == UInt8(ascii: "n") else { return false }
    _ = literal()
    return true
  }

  private mutating func word() throws(Unreadable) -> String {
    _ = peek()
    return String(decoding: literal(), as: UTF8.self)
  }

  /// The bytes of a number, true, false or null.
  private mutating func literal() -> Slice<UnsafeBufferPointer<UInt8>> {
    let start = at
    loop: while at < bytes.count {
      switch bytes[at] {
      case UInt8(ascii: ","), UInt8(ascii: "}"), UInt8(ascii: "]"), 0x20, 0x0A, 0x0D, 0x09:
        break loop
      default: at += 1
      }
    }
    return bytes[start..<at]
  }

  // MARK: Text

  mutating func text() throws(Unreadable) -> String {
    try take(UInt8(ascii: "\""), of: "string")
    let start = at
    while at < bytes.count {
      switch bytes[at] {
      case UInt8(ascii: "\""):
        let text = String(decoding: bytes[start..<at], as: UTF8.self)
        at += 1
        return text
      case UInt8(ascii: "\\"): return try escapedText(from: start)
      default: at += 1
      }
    }
    throw Unreadable(what: "string")
  }

  private mutating func skipText() throws(Unreadable) {
    try take(UInt8(ascii: "\""), of: "string")
    while at < bytes.count {
      let byte = bytes[at]
      at += byte == UInt8(ascii: "\\") ? 2 : 1
      if byte == UInt8(ascii: "\"") { return }
    }
    throw Unreadable(what: "string")
  }

  private mutating func escapedText(from start: Int) throws(Unreadable) -> String {
    var text = Array(bytes[start..<at])
    while at < bytes.count {
      let byte = bytes[at]
      at += 1
      switch byte {
      case UInt8(ascii: "\""): return String(decoding: text, as: UTF8.self)
      case UInt8(ascii: "\\"): try escape(into: &text)
      default: text.append(byte)
      }
    }
    throw Unreadable(what: "string")
  }

  private mutating func escape(into text: inout [UInt8]) throws(Unreadable) {
    guard at < bytes.count else { throw Unreadable(what: "string") }
    let byte = bytes[at]
    at += 1
    switch byte {
    case UInt8(ascii: "n"): text.append(0x0A)
    case UInt8(ascii: "r"): text.append(0x0D)
    case UInt8(ascii: "t"): text.append(0x09)
    case UInt8(ascii: "b"): text.append(0x08)
    case UInt8(ascii: "f"): text.append(0x0C)
    case UInt8(ascii: "u"): text.append(contentsOf: Array(String(try scalar()).utf8))
    default: text.append(byte)
    }
  }

  /// A code point from one escape, or from the two of a surrogate pair.
  private mutating func scalar() throws(Unreadable) -> Unicode.Scalar {
    let first = try unit()
    if let scalar = Unicode.Scalar(first) { return scalar }
    guard (0xD800..<0xDC00).contains(first), at + 1 < bytes.count,
      bytes[at] == UInt8(ascii: "\\"), bytes[at + 1] == UInt8(ascii: "u")
    else { return "\u{FFFD}" }
    at += 2
    let second = try unit()
    guard (0xDC00..<0xE000).contains(second) else { return "\u{FFFD}" }
    return Unicode.Scalar(0x10000 + (first - 0xD800) << 10 + (second - 0xDC00)) ?? "\u{FFFD}"
  }

  private mutating func unit() throws(Unreadable) -> UInt32 {
    guard at + 4 <= bytes.count,
      let unit = UInt32(String(decoding: bytes[at..<at + 4], as: UTF8.self), radix: 16)
    else { throw Unreadable(what: "string") }
    at += 4
    return unit
  }

  // MARK: Bytes

  /// The next byte that is no white space.
  private mutating func peek() -> UInt8? {
    while at < bytes.count {
      switch bytes[at] {
      case 0x20, 0x0A, 0x0D, 0x09: at += 1
      default: return bytes[at]
      }
    }
    return nil
  }

  private mutating func take(_ byte: UInt8, of what: String) throws(Unreadable) {
    guard peek() == byte else { throw Unreadable(what: what) }
    at += 1
  }
}

/// The fields of an object, in any order. Those that stand in the order in which they are read need no
/// search.
struct Fields {
  /// Before the first member.
  private let first: Reader
  /// After the last one that was read.
  fileprivate private(set) var next: Reader
  /// All members, once one was not the next.
  private var members: [(key: Key, value: Reader)]?

  fileprivate init(of object: Reader) { (first, next) = (object, object) }

  mutating func value<Value: Readable>(_ name: StaticString) throws(Unreadable) -> Value {
    guard try find(name) else { throw Unreadable(what: "object with \(name)") }
    return try next.value()
  }

  /// Nil: it is absent, or null.
  mutating func optional<Value: Readable>(_ name: StaticString) throws(Unreadable) -> Value? {
    guard try find(name), !next.takeNull() else { return nil }
    return try next.value() as Value
  }

  /// The members that have no field of their own.
  func others(than known: [StaticString]) throws(Unreadable) -> [String: JSON] {
    var (reader, found) = (first, [String: JSON]())
    while let key = try reader.key() {
      if known.contains(where: { $0 ~= key }) {
        try reader.skip()
      } else {
        found[try key.text()] = try reader.value()
      }
    }
    return found
  }

  /// Go to a member's value, if there is such a member.
  private mutating func find(_ name: StaticString) throws(Unreadable) -> Bool {
    var reader = next
    let key = try reader.key()
    if let key, name ~= key {
      next = reader
      return true
    }
    if members == nil {
      // Every member was read in its order, so none is left.
      if key == nil { return false }
      members = try all()
    }
    guard let member = members?.first(where: { name ~= $0.key }) else { return false }
    next = member.value
    return true
  }

  private func all() throws(Unreadable) -> [(key: Key, value: Reader)] {
    var (reader, members) = (first, [(key: Key, value: Reader)]())
    while let key = try reader.key() {
      members.append((key, reader))
      try reader.skip()
    }
    return members
  }
}

// MARK: - What replies consist of

extension Array: Readable where Element: Readable {
  init(reading reader: inout Reader) throws(Unreadable) {
    var elements: [Element] = []
    try reader.eachElement { (reader: inout Reader) throws(Unreadable) in
      elements.append(try reader.value())
    }
    self = elements
  }
}

extension Dictionary: Readable where Key == String, Value: Readable {
  init(reading reader: inout Reader) throws(Unreadable) {
    self.init()
    try reader.begin()
    while let key = try reader.key() { self[try key.text()] = try reader.value() }
  }
}

extension String: Readable {
  init(reading reader: inout Reader) throws(Unreadable) { self = try reader.text() }
}

extension Bool: Readable {
  init(reading reader: inout Reader) throws(Unreadable) { self = try reader.bool() }
}

extension Int: Readable {
  init(reading reader: inout Reader) throws(Unreadable) { self = try reader.int() }
}

extension Double: Readable {
  init(reading reader: inout Reader) throws(Unreadable) { self = try reader.double() }
}

extension JSON: Readable {
  init(reading reader: inout Reader) throws(Unreadable) { self = try reader.json() }
}

extension Instant: Readable {
  init(reading reader: inout Reader) throws(Unreadable) {
    self.init(milliseconds: try reader.int())
  }
}

extension Readable where Self: RawRepresentable, RawValue == String {
  init(reading reader: inout Reader) throws(Unreadable) {
    let word = try reader.text()
    guard let value = Self(rawValue: word) else { throw Unreadable(what: "\(Self.self)") }
    self = value
  }
}

extension Readable where Self: OpenCode {
  init(reading reader: inout Reader) throws(Unreadable) { self.init(rawValue: try reader.text()) }
}

/// Read a reply.
func read<Reply: Readable>(_ text: UnsafePointer<CChar>, _ length: Int) throws(Unreadable) -> Reply
{
  let bytes = UnsafeRawPointer(text).assumingMemoryBound(to: UInt8.self)
  var reader = Reader(UnsafeBufferPointer(start: bytes, count: length))
  return try Reply(reading: &reader)
}
