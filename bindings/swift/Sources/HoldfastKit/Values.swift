import Foundation

/// A word of the library that later versions may know more of: a screen, a code. An unknown one is a value, too.
public protocol OpenCode: RawRepresentable, Codable, Sendable, Hashable, CustomStringConvertible,
  ExpressibleByStringLiteral
where RawValue == String, StringLiteralType == String {
  init(rawValue: String)
}

extension OpenCode {
  public init(stringLiteral text: String) { self.init(rawValue: text) }

  public var description: String { rawValue }
}

/// A moment: milliseconds since 1970 in UTC, not seconds.
public struct Instant: Codable, Sendable, Hashable, Comparable, ExpressibleByIntegerLiteral {
  public var milliseconds: Int

  public init(milliseconds: Int) { self.milliseconds = milliseconds }
  public init(integerLiteral value: Int) { milliseconds = value }

  /// The nearest millisecond; for a date that no `Int` holds, the last or the first one.
  public init(_ date: Date) {
    let exact = (date.timeIntervalSince1970 * 1000).rounded()
    milliseconds = Int(exactly: exact) ?? (exact > 0 ? .max : .min)
  }

  public var date: Date { Date(timeIntervalSince1970: Double(milliseconds) / 1000) }

  public init(from decoder: any Decoder) throws {
    milliseconds = try decoder.singleValueContainer().decode(Int.self)
  }

  public func encode(to encoder: any Encoder) throws {
    var value = encoder.singleValueContainer()
    try value.encode(milliseconds)
  }

  public static func < (left: Instant, right: Instant) -> Bool {
    left.milliseconds < right.milliseconds
  }
}
