public import Base

/// A value to bind to a statement.
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
}
