import CJansson
import CPlatform

/// A JSON value, held by jansson. Copies share the value, so it must not be changed after it was
/// shared.
///
/// A value may hold secrets: the memory of jansson is zeroed when it is released
/// (`platform_install_allocator`).
public struct JSON: @unchecked Sendable {
  @usableFromInline
  final class Box {
    let raw: UnsafeMutablePointer<json_t>
    init(_ raw: UnsafeMutablePointer<json_t>) { self.raw = raw }
    deinit { json_decref(raw) }
  }

  let box: Box

  /// Takes over one reference. nil (no memory, or text that is not UTF-8) becomes JSON null. After
  /// a lack of memory such a value is neither committed nor sent to the host: both check
  /// `platform_memory_exhausted` before.
  init(owning raw: UnsafeMutablePointer<json_t>?) {
    box = Box(raw ?? json_null())
  }

  init(borrowing raw: UnsafeMutablePointer<json_t>) {
    box = Box(json_incref(raw))
  }

  var raw: UnsafeMutablePointer<json_t> { box.raw }

  public enum Kind: Sendable { case object, array, string, integer, real, boolean, null }

  @inline(never)
  public var kind: Kind {
    switch raw.pointee.type {
    case JSON_OBJECT: return .object
    case JSON_ARRAY: return .array
    case JSON_STRING: return .string
    case JSON_INTEGER: return .integer
    case JSON_REAL: return .real
    case JSON_TRUE, JSON_FALSE: return .boolean
    default: return .null
    }
  }

  /// Throws `memory.exhausted` when a value that was made in this call may be incomplete. Call this
  /// before a value is kept or stored.
  public static func checkMemory() throws(Failure) {
    if platform_memory_exhausted() { throw Failure(.memoryExhausted, "no memory for JSON") }
  }

  // MARK: Making

  public static var null: JSON { JSON(owning: json_null()) }
  @inline(never)
  public static func bool(_ value: Bool) -> JSON {
    JSON(owning: value ? json_true() : json_false())
  }
  @inline(never)
  public static func int(_ value: Int64) -> JSON { JSON(owning: json_integer(value)) }
  public static func int(_ value: Int) -> JSON { JSON(owning: json_integer(Int64(value))) }
  public static func real(_ value: Double) -> JSON { JSON(owning: json_real(value)) }

  @inline(never)
  public static func string(_ value: String) -> JSON {
    var copy = value
    return copy.withUTF8 { string(UnsafeRawBufferPointer($0)) }
  }

  /// A string from UTF-8, for secrets that must not become a Swift String.
  public static func string(_ utf8: UnsafeRawBufferPointer) -> JSON {
    guard let start = utf8.baseAddress else { return JSON(owning: json_stringn("", 0)) }
    return JSON(owning: json_stringn(start.assumingMemoryBound(to: CChar.self), utf8.count))
  }

  @inline(never)
  public static func uuid(_ value: UUID) -> JSON {
    withUnsafeTemporaryAllocation(of: UInt8.self, capacity: UUID.length) { room in
      value.write(to: room)
      return string(UnsafeRawBufferPointer(room))
    }
  }

  @inline(never)
  public static func array(_ elements: [JSON]) -> JSON {
    let result = JSON(owning: json_array())
    for element in elements { result.append(element) }
    return result
  }

  @inline(never)
  public init(_ value: StaticCString) { self.init(owning: json_string(value.start)) }

  @inline(never)
  public init(_ value: String?) {
    if let value { self = .string(value) } else { self = .null }
  }

  @inline(never)
  public init(_ value: UUID?) {
    if let value { self = .uuid(value) } else { self = .null }
  }

  @inline(never)
  public init(_ value: Int64?) {
    if let value { self = .int(value) } else { self = .null }
  }

  /// Changes the value. Call this only while the value is being made, before it is shared.
  @inline(never)
  public func append(_ element: JSON) {
    json_array_append_new(raw, json_incref(element.raw))
  }

  /// Changes the value. Call this only while the value is being made, before it is shared.
  @inline(never)
  public func set(_ key: StaticCString, _ value: JSON) {
    json_object_set_new(raw, key.start, json_incref(value.raw))
  }

  /// Changes the value. Call this only while the value is being made, before it is shared.
  @inline(never)
  public func set(member key: String, _ value: JSON) {
    var copy = key
    copy.withUTF8 { bytes in
      guard let start = bytes.baseAddress else { return }
      start.withMemoryRebound(to: CChar.self, capacity: bytes.count) {
        _ = json_object_setn_new(raw, $0, bytes.count, json_incref(value.raw))
      }
    }
  }

  /// Changes the value. Call this only while the value is being made, before it is shared.
  public func remove(_ key: String) { json_object_del(raw, key) }

  /// Removes all members of an object but these. Call this only on a value that nothing else uses.
  public func keepMembers(_ names: [String]) {
    var at = json_object_iter(raw)
    while let iterator = at {
      at = json_object_iter_next(raw, iterator)
      guard let key = json_object_iter_key(iterator) else { continue }
      let size = strlen(key)
      let isNamed = names.contains { name in
        var name = name
        return name.withUTF8 { name in
          guard name.count == size, let start = name.baseAddress else { return size == name.count }
          return memcmp(start, key, size) == 0
        }
      }
      if !isNamed { json_object_del(raw, key) }
    }
  }

  /// A copy whose own members can be changed; their values are shared.
  public var shallowCopy: JSON { JSON(owning: json_copy(raw)) }

  // MARK: Reading

  public var isNull: Bool { kind == .null }

  public var string: String? { JSON.string(raw) }

  /// The text of a member; nil when it is absent or not a string. Makes no `JSON` value.
  public func string(_ key: StaticCString) -> String? {
    JSON.string(json_object_get(raw, key.start))
  }

  @inline(never)
  private static func string(_ raw: UnsafePointer<json_t>?) -> String? {
    text(raw).map { String(decoding: $0, as: UTF8.self) }
  }

  private static func text(_ raw: UnsafePointer<json_t>?) -> UnsafeRawBufferPointer? {
    json_string_value(raw).map {
      UnsafeRawBufferPointer(start: $0, count: json_string_length(raw))
    }
  }

  public var uuid: UUID? { JSON.uuid(raw) }

  /// The UUID of a member; nil when it is absent or not a UUID. Makes no `JSON` value.
  public func uuid(_ key: StaticCString) -> UUID? { JSON.uuid(json_object_get(raw, key.start)) }

  @inline(never)
  private static func uuid(_ raw: UnsafePointer<json_t>?) -> UUID? {
    text(raw).flatMap { UUID(utf8: $0) }
  }

  /// Calls `body` with the UTF-8 of a string, without making a Swift String; nil for other kinds.
  public func withUTF8<Result, Failed: Error>(
    _ body: (UnsafeRawBufferPointer) throws(Failed) -> Result
  ) throws(Failed) -> Result? {
    guard let text = JSON.text(raw) else { return nil }
    return try body(text)
  }

  @inline(never)
  public var int: Int64? { kind == .integer ? json_integer_value(raw) : nil }

  public func int(_ key: StaticCString) -> Int64? { self[key]?.int }

  /// The value of an integer, also of one that is written as 12.0, as JSON Schema defines it.
  @inline(never)
  public var wholeNumber: Int64? {
    kind == .real ? Int64(exactly: json_real_value(raw)) : int
  }

  /// The value of an integer or a real number.
  public var number: Double? {
    switch kind {
    case .integer: return Double(json_integer_value(raw))
    case .real: return json_real_value(raw)
    default: return nil
    }
  }

  public var bool: Bool? {
    kind == .boolean ? raw.pointee.type == JSON_TRUE : nil
  }

  public func bool(_ key: StaticCString) -> Bool? { self[key]?.bool }

  /// The number of members or elements; 0 for other kinds.
  public var count: Int {
    switch kind {
    case .object: return json_object_size(raw)
    case .array: return json_array_size(raw)
    default: return 0
    }
  }

  /// A member of an object; nil when it is absent. A member that is JSON null is present.
  @inline(never)
  public subscript(key: StaticCString) -> JSON? {
    guard let found = json_object_get(raw, key.start) else { return nil }
    return JSON(borrowing: found)
  }

  @inline(never)
  public subscript(member key: String) -> JSON? {
    var copy = key
    let found = copy.withUTF8 { bytes in
      UnsafeRawPointer(bytes.baseAddress).flatMap {
        json_object_getn(raw, $0.assumingMemoryBound(to: CChar.self), bytes.count)
      }
    }
    return found.map { JSON(borrowing: $0) }
  }

  /// The first name of a member that is not among `names`.
  public func firstMember(notAmong names: [StaticCString]) -> String? {
    var at = json_object_iter(raw)
    while let iterator = at {
      if let key = json_object_iter_key(iterator), !names.contains(where: { $0.equals(key) }) {
        return String(cString: key)
      }
      at = json_object_iter_next(raw, iterator)
    }
    return nil
  }

  /// The elements of an array; empty for other kinds.
  @inline(never)
  public var elements: [JSON] {
    var result: [JSON] = []
    guard kind == .array else { return result }
    result.reserveCapacity(count)
    for index in 0..<count {
      if let found = json_array_get(raw, index) { result.append(JSON(borrowing: found)) }
    }
    return result
  }

  /// The members of an object in their order; empty for other kinds.
  @inline(never)
  public var members: [(key: String, value: JSON)] {
    var result: [(key: String, value: JSON)] = []
    guard kind == .object else { return result }
    var at = json_object_iter(raw)
    while let iterator = at {
      if let name = json_object_iter_key(iterator), let value = json_object_iter_value(iterator) {
        result.append((String(cString: name), JSON(borrowing: value)))
      }
      at = json_object_iter_next(raw, iterator)
    }
    return result
  }

  public static func == (left: JSON, right: JSON) -> Bool { json_equal(left.raw, right.raw) == 1 }
}

extension JSON: ExpressibleByDictionaryLiteral, ExpressibleByArrayLiteral,
  ExpressibleByStringLiteral, ExpressibleByBooleanLiteral, ExpressibleByNilLiteral,
  ExpressibleByIntegerLiteral
{
  @inline(never)
  public init(dictionaryLiteral members: (StaticCString, JSON)...) {
    self.init(owning: json_object())
    for (key, value) in members { set(key, value) }
  }
  public init(arrayLiteral elements: JSON...) { self = .array(elements) }
  @inlinable
  public init(stringLiteral value: StaticString) { self.init(StaticCString(stringLiteral: value)) }
  public init(booleanLiteral value: Bool) { self = .bool(value) }
  public init(nilLiteral: ()) { self = .null }
  public init(integerLiteral value: Int64) { self = .int(value) }
}
