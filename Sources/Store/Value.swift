public import Base

/// A value to bind to a statement, or a column of a salvaged record.
public enum Value {
  case null
  case int(Int64)
  case blob([UInt8])
  case text(String)
  case literal(StaticCString)

  public static func int(_ value: Int) -> Value { .int(Int64(value)) }

  public init(_ value: Int64?) { self = value.map { .int($0) } ?? .null }
  public init(_ value: [UInt8]?) { self = value.map { .blob($0) } ?? .null }
  public init(_ value: String?) { self = value.map { .text($0) } ?? .null }

  public var isNull: Bool { if case .null = self { true } else { false } }
  /// A number that the library can have stored (`Row.times`).
  public var int: Int64? {
    guard case .int(let value) = self, Row.times.contains(value) else { return nil }
    return value
  }
  /// The same of a count (`Row.counts`).
  public var count: Int64? {
    guard case .int(let value) = self, Row.counts.contains(value) else { return nil }
    return value
  }
  public var blob: [UInt8]? { if case .blob(let value) = self { value } else { nil } }
  public var text: String? { if case .text(let value) = self { value } else { nil } }
}
