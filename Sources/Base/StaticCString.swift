import CPlatform

/// A string literal as a C string: the address of its bytes in the library, ended by a NUL.
///
/// Names of JSON members and SQL texts are passed in this form: jansson and SQLite take it as it
/// is, so a look-up makes no `String` and allocates nothing.
public struct StaticCString: ExpressibleByStringLiteral, @unchecked Sendable {
  public let start: UnsafePointer<CChar>

  /// The bytes of a literal end with a NUL (`StaticString.utf8Start`).
  @inlinable
  public init(stringLiteral text: StaticString) {
    start = UnsafeRawPointer(text.utf8Start).assumingMemoryBound(to: CChar.self)
  }

  /// The number of bytes, without the NUL.
  public var count: Int { Int(strlen(start)) }

  public var bytes: UnsafeRawBufferPointer { UnsafeRawBufferPointer(start: start, count: count) }

  public func equals(_ text: UnsafePointer<CChar>) -> Bool { strcmp(start, text) == 0 }

  public var string: String { String(cString: start) }
}
