import CJansson
import CPlatform

// Writing and reading JSON text.
//
// Writing: jansson writes into a growing buffer, which is zeroed when it grows and when it is
// released. Real numbers are shortened after that (`JSONReals.swift`).
//
// Reading: the nesting and the number of values are measured before jansson sees the text. Older
// versions recurse without a limit, and each value costs up to 300 bytes of memory, which is a
// hundred times its text for "{},{},...". jansson then parses; when it fails, `JSONPointer.locate` turns the byte offset
// of its error into the field that the host is told.

/// JSON as text, zeroed when released.
public final class JSONText {
  private var text: platform_text

  /// Takes the text over.
  fileprivate init(_ text: platform_text) { self.text = text }

  deinit { platform_text_free(&text) }

  var start: UnsafeMutableRawPointer { .init(text.start) }
  public var count: Int { text.count }

  /// Drop and zero the bytes from `size` on.
  func shrink(to size: Int) {
    platform_zero(start + size, count - size)
    text.count = size
  }

  public var bytes: UnsafeRawBufferPointer { UnsafeRawBufferPointer(start: start, count: count) }

  public var string: String { String(decoding: bytes, as: UTF8.self) }
}

extension JSON {
  public enum Order: Sendable {
    /// The order in which the members were set.
    case given
    /// The order of the keys: equal values give equal texts.
    case sorted
  }

  /// The value as compact text. Throws `memory.exhausted`.
  ///
  /// Every real number gets the smallest number of digits with which it reads back unchanged.
  /// jansson before 2.15 writes 17 digits, so 0.1 would become 0.10000000000000001, and a server
  /// that stores decimals would store that.
  public func text(_ order: Order = .given) throws(Failure) -> JSONText {
    var flags = JSON_COMPACT_FLAG | JSON_ENCODE_ANY_FLAG
    if order == .sorted { flags |= JSON_SORT_KEYS_FLAG }
    let text = try dumped(flags)
    if JSON.holdsReals(raw) {
      text.shortenReals()
      try JSON.checkMemory()
    }
    return text
  }

  private func dumped(_ flags: Int) throws(Failure) -> JSONText {
    var text = platform_text()
    let status = json_dump_callback(raw, platform_text_append, &text, flags)
    guard status == 0, !platform_memory_exhausted() else {
      platform_text_free(&text)
      throw Failure(.memoryExhausted, "a JSON text could not be written")
    }
    return JSONText(text)
  }

  /// How strictly text is read.
  public enum Dialect: Sendable {
    /// For texts of the host: duplicate keys are an error.
    case strict
    /// For payloads: as strict, and every real number is what was written. One that a double cannot
    /// hold so is refused (`queue.invalid_payload`), and one without decimals, such as 1e3, is read
    /// as an integer.
    case exact
    /// For texts of a server: the last of duplicate keys counts.
    case tolerant
  }

  /// Deeper nesting is an error. jansson before 2.15.1 has no limit of its own.
  public static var maxDepth: Int { 64 }

  /// A text with more values is an error. The largest payload has fewer.
  public static var maxValues: Int { 262_144 }

  /// Reads a JSON object or array of at most `most` values, or with `scalars` any value. Throws
  /// `request.*` with the field where reading stopped, or `memory.exhausted`.
  public static func parse(
    _ bytes: UnsafeRawBufferPointer, _ dialect: Dialect = .strict, most: Int = maxValues,
    scalars: Bool = false
  ) throws(Failure) -> JSON {
    let size = measure(bytes)
    guard size.depth <= maxDepth else {
      throw Failure(.requestTooDeep, "nested deeper than \(maxDepth)")
    }
    guard size.values <= most else {
      throw Failure(.requestTooManyValues, "more than \(most) values")
    }
    var problem = json_error_t()
    let flags =
      (dialect == .tolerant ? 0 : JSON_REJECT_DUPLICATES_FLAG)
      | (scalars ? JSON_DECODE_ANY_FLAG : 0)
    let start = bytes.baseAddress?.assumingMemoryBound(to: CChar.self)
    let read = start.flatMap { json_loadb($0, bytes.count, flags, &problem) }
    guard let raw = read, !platform_memory_exhausted() else {
      json_decref(read)
      try checkMemory()
      let duplicate = code(of: problem) == json_error_duplicate_key
      let field = JSONPointer.locate(at: Int(problem.position), in: bytes)
      throw Failure(
        duplicate ? .requestDuplicateKey : .requestNotJSON,
        duplicate ? "the same key twice" : explanation(code(of: problem)), field: field)
    }
    let json = JSON(owning: raw)
    if dialect == .exact, holdsReals(raw) {
      try makeExact(raw, bytes)
      try checkMemory()
    }
    return json
  }

  private static func code(of problem: json_error_t) -> json_error_code {
    withUnsafePointer(to: problem) { json_error_code($0) }
  }

  private static func explanation(_ code: json_error_code) -> String {
    switch code {
    case json_error_invalid_utf8: return "not valid UTF-8"
    case json_error_null_character, json_error_null_byte_in_key: return "a NUL character"
    case json_error_numeric_overflow: return "a number out of range"
    case json_error_premature_end_of_input: return "the text ends too early"
    case json_error_end_of_input_expected: return "text after the end of the object"
    default: return "not valid JSON"
    }
  }

  /// The deepest nesting and the number of values, by the marks outside strings. Each value but the
  /// first of an object or array follows a comma.
  private static func measure(_ bytes: UnsafeRawBufferPointer) -> (depth: Int, values: Int) {
    var depth = 0
    var deepest = 0
    var values = 1
    var place = 0
    while place < bytes.count {
      let byte = bytes[place]
      place += 1
      if byte == UInt8(ascii: "\"") {
        skipString(bytes, &place)
      } else if byte == UInt8(ascii: ",") {
        values += 1
      } else if byte == UInt8(ascii: "{") || byte == UInt8(ascii: "[") {
        values += 1
        depth += 1
        deepest = max(deepest, depth)
      } else if byte == UInt8(ascii: "}") || byte == UInt8(ascii: "]") {
        depth -= 1
      }
    }
    return (depth: deepest, values: values)
  }

  /// Moves `place` from the start of a string's text behind its closing quote: the first quote with an
  /// even number of backslashes before it. A token or an image is one long string, so the search is
  /// the C library's.
  private static func skipString(_ bytes: UnsafeRawBufferPointer, _ place: inout Int) {
    guard let base = bytes.baseAddress else { return }
    let start = place
    while place < bytes.count {
      guard let quote = memchr(base + place, Int32(UInt8(ascii: "\"")), bytes.count - place) else {
        place = bytes.count
        return
      }
      let at = UnsafeRawPointer(quote) - base
      place = at + 1
      var first = at
      while first > start, bytes[first - 1] == UInt8(ascii: "\\") { first -= 1 }
      if (at - first) % 2 == 0 { return }
    }
  }
}

// The flags of jansson are macros with casts, which Swift does not import.
private var JSON_COMPACT_FLAG: Int { 0x20 }
private var JSON_SORT_KEYS_FLAG: Int { 0x80 }
private var JSON_ENCODE_ANY_FLAG: Int { 0x200 }
private var JSON_REJECT_DUPLICATES_FLAG: Int { 0x1 }
private var JSON_DECODE_ANY_FLAG: Int { 0x4 }
