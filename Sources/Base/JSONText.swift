import CJansson
import CPlatform

// Writing and reading JSON text.
//
// Writing: jansson writes into a growing buffer, which is zeroed when it grows and when it is
// released. Real numbers are shortened after that (`JSONReals.swift`).
//
// Reading: nesting, values and cost are measured before jansson sees the text (`JSONMeasure.swift`),
// and a long text among the members of a request is taken out of it (`JSONLongText.swift`). jansson
// then parses; when it fails, `JSONPointer.locate` turns the byte offset of its error into the field
// that the host is told.

/// JSON as text, zeroed when released.
public final class JSONText {
  private var text: platform_text

  /// Takes the text over.
  fileprivate init(_ text: platform_text) { self.text = text }

  /// Copies bytes, without those of `cut`, into a block of their size.
  init(_ bytes: UnsafeRawBufferPointer, without cut: Range<Int> = 0..<0) throws(Failure) {
    text = platform_text()
    guard let start = bytes.baseAddress?.assumingMemoryBound(to: CChar.self) else { return }
    let after = start + cut.upperBound
    guard
      platform_text_reserve(bytes.count - cut.count, &text) == 0,
      platform_text_append(start, cut.lowerBound, &text) == 0,
      platform_text_append(after, bytes.count - cut.upperBound, &text) == 0
    else {
      platform_text_free(&text)
      throw Failure(.memoryExhausted, "no memory for a JSON text")
    }
  }

  /// Empty, with room for so many bytes.
  init(room: Int) throws(Failure) {
    text = platform_text()
    guard platform_text_reserve(room, &text) == 0 else {
      throw Failure(.memoryExhausted, "no memory for a JSON text")
    }
  }

  deinit { platform_text_free(&text) }

  func append(_ bytes: UnsafeRawBufferPointer) throws(Failure) {
    guard let start = bytes.baseAddress?.assumingMemoryBound(to: CChar.self) else { return }
    guard platform_text_append(start, bytes.count, &text) == 0 else {
      throw Failure(.memoryExhausted, "no memory for a JSON text")
    }
  }

  func append(_ bytes: StaticString) throws(Failure) {
    try append(UnsafeRawBufferPointer(start: bytes.utf8Start, count: bytes.utf8CodeUnitCount))
  }

  var start: UnsafeMutableRawPointer { .init(text.start) }
  public var count: Int { text.count }

  /// Drop and zero the bytes from `size` on.
  func shrink(to size: Int) {
    platform_zero(start + size, count - size)
    text.count = size
  }

  /// Give back the room that it does not use. Without memory it keeps it.
  public func fit() {
    if text.capacity > count { _ = platform_text_reserve(count, &text) }
  }

  public var bytes: UnsafeRawBufferPointer { UnsafeRawBufferPointer(start: start, count: count) }

  public var string: String { String(decoding: bytes, as: UTF8.self) }
}

extension JSON {
  /// The value as compact text. Throws `memory.exhausted`.
  ///
  /// Every real number gets the smallest number of digits with which it reads back unchanged.
  /// jansson before 2.15 writes 17 digits, so 0.1 would become 0.10000000000000001, and a server
  /// that stores decimals would store that.
  public func text() throws(Failure) -> JSONText {
    let text = try dumped()
    if JSON.holdsReals(raw) {
      text.shortenReals()
      try JSON.checkMemory()
    }
    return text
  }

  private func dumped() throws(Failure) -> JSONText {
    var text = platform_text()
    let flags = JSON_COMPACT_FLAG | JSON_ENCODE_ANY_FLAG
    let status = json_dump_callback(raw, platform_text_append, &text, flags)
    guard status == 0, !platform_memory_exhausted() else {
      platform_text_free(&text)
      throw Failure(.memoryExhausted, "a JSON text could not be written")
    }
    return JSONText(text)
  }

  /// How strictly text is read.
  public enum Dialect: Sendable {
    /// For texts of the host, and refusals of a server: duplicate keys are an error.
    case strict
    /// For payloads: as strict, and every real number is what was written. One that a double cannot
    /// hold so is refused (`queue.invalid_payload`), and one without decimals, such as 1e3, is read
    /// as an integer.
    case exact
    /// For other texts of a server: the last of duplicate keys counts.
    case tolerant
  }

  /// Deeper nesting is an error. jansson before 2.15.1 has no limit of its own.
  public static var maxDepth: Int { 64 }

  /// A text with more values is an error. The largest payload has fewer.
  public static var maxValues: Int { 262_144 }

  /// Reads a JSON object or array of at most `most` values, or with `scalars` any value. Throws
  /// `request.*` with the field where reading stopped, or `memory.exhausted`. A text that might cost
  /// more than `mostBytes` of memory counts as one of too many values.
  public static func parse(
    _ bytes: UnsafeRawBufferPointer, _ dialect: Dialect = .strict, most: Int = maxValues,
    bytes mostBytes: Int = .max, scalars: Bool = false
  ) throws(Failure) -> JSON {
    let size = JSONMeasure(bytes)
    guard size.depth <= maxDepth else {
      throw Failure(
        .requestTooDeep, "nested deeper than \(maxDepth)",
        // A server's text is read on without its deep parts; nobody is told where they are.
        field: dialect == .tolerant ? nil : JSONPointer.locate(at: size.tooDeepAt, in: bytes))
    }
    guard size.values <= most, size.bytes <= mostBytes else {
      throw Failure(.requestTooManyValues, "more than \(most) values")
    }
    let json =
      dialect != .tolerant && size.longest.count >= longText
      ? try parse(bytes, without: size, dialect, scalars)
      : try build(bytes, dialect, scalars, longest: size.longestToken)
    if dialect == .exact, holdsReals(json.raw) {
      try makeExact(json.raw, bytes)
      try checkMemory()
    }
    return json
  }

  /// Lets jansson parse. `longest`: at least the size of the longest token. `cut`: this many bytes of
  /// `whole` are missing in `bytes`, at this place.
  static func build(
    _ bytes: UnsafeRawBufferPointer, _ dialect: Dialect, _ scalars: Bool, longest: Int,
    of whole: UnsafeRawBufferPointer? = nil, cut: Range<Int> = 0..<0
  ) throws(Failure) -> JSON {
    // Memory that was refused before explains nothing about this text.
    try checkMemory()
    var problem = json_error_t()
    let flags =
      (dialect == .tolerant ? 0 : JSON_REJECT_DUPLICATES_FLAG)
      | (scalars ? JSON_DECODE_ANY_FLAG : 0)
    let start = bytes.baseAddress?.assumingMemoryBound(to: CChar.self)
    let read = start.flatMap { platform_read_json($0, bytes.count, longest, flags, &problem) }
    guard let raw = read?.assumingMemoryBound(to: json_t.self) else {
      try checkMemory()
      let duplicate = code(of: problem) == json_error_duplicate_key
      let place = Int(problem.position)
      let field = JSONPointer.locate(
        at: place > cut.lowerBound ? place + cut.count : place, in: whole ?? bytes)
      throw Failure(
        duplicate ? .requestDuplicateKey : .requestNotJSON,
        duplicate ? "the same key twice" : explanation(code(of: problem)), field: field)
    }
    return JSON(owning: raw)
  }

  private static func code(of problem: json_error_t) -> json_error_code {
    withUnsafePointer(to: problem) { json_error_code($0) }
  }

  static func explanation(_ code: json_error_code) -> String {
    switch code {
    case json_error_invalid_utf8: return "not valid UTF-8"
    case json_error_null_character, json_error_null_byte_in_key: return "a NUL character"
    case json_error_numeric_overflow: return "a number out of range"
    case json_error_premature_end_of_input: return "the text ends too early"
    case json_error_end_of_input_expected: return "text after the end of the object"
    default: return "not valid JSON"
    }
  }
}

// The flags of jansson are macros with casts, which Swift does not import.
private var JSON_COMPACT_FLAG: Int { 0x20 }
var JSON_ENCODE_ANY_FLAG: Int { 0x200 }
private var JSON_REJECT_DUPLICATES_FLAG: Int { 0x1 }
var JSON_DECODE_ANY_FLAG: Int { 0x4 }
