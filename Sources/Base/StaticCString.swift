/// Text of the source code, as jansson and SQLite take it: its address in the library, ended by a
/// NUL. Member names are such: a look-up needs no String and no memory, and the call that passes
/// one stays small.
public struct StaticCString: ExpressibleByStringLiteral, @unchecked Sendable {
  public let start: UnsafePointer<CChar>

  /// A literal's bytes end with a NUL, as `StaticString.utf8Start` says.
  @inlinable
  public init(stringLiteral text: StaticString) {
    start = UnsafeRawPointer(text.utf8Start).assumingMemoryBound(to: CChar.self)
  }

  /// How many bytes it has, without the NUL.
  public var count: Int {
    var count = 0
    while start[count] != 0 { count += 1 }
    return count
  }

  public var bytes: UnsafeRawBufferPointer { UnsafeRawBufferPointer(start: start, count: count) }

  func equals(_ text: UnsafePointer<CChar>) -> Bool {
    var at = 0
    while start[at] == text[at] {
      if start[at] == 0 { return true }
      at += 1
    }
    return false
  }

  @inline(never)
  public var string: String { String(cString: start) }
}
