import CHoldfast
import Foundation

/// A JSON value. Numbers keep what they are: whole ones up to `Int`, others as `Double`.
public enum JSON: Sendable, Hashable {
  case null
  case bool(Bool)
  case int(Int)
  case number(Double)
  case string(String)
  case array([JSON])
  case object([String: JSON])

  /// A member of an object; nil if there is none, or if this is no object.
  public subscript(key: String) -> JSON? {
    if case .object(let members) = self { members[key] } else { nil }
  }

  /// An element of an array; nil if there is none, or if this is no array.
  public subscript(index: Int) -> JSON? {
    guard case .array(let elements) = self, elements.indices.contains(index) else { return nil }
    return elements[index]
  }

  public var string: String? { if case .string(let text) = self { text } else { nil } }
  public var bool: Bool? { if case .bool(let value) = self { value } else { nil } }
  public var int: Int? { if case .int(let value) = self { value } else { nil } }

  /// The value of any number.
  public var double: Double? {
    switch self {
    case .int(let value): Double(value)
    case .number(let value): value
    default: nil
    }
  }
}

extension JSON: ExpressibleByNilLiteral, ExpressibleByBooleanLiteral, ExpressibleByIntegerLiteral,
  ExpressibleByFloatLiteral, ExpressibleByStringLiteral, ExpressibleByArrayLiteral,
  ExpressibleByDictionaryLiteral
{
  public init(nilLiteral: ()) { self = .null }
  public init(booleanLiteral value: Bool) { self = .bool(value) }
  public init(integerLiteral value: Int) { self = .int(value) }
  public init(floatLiteral value: Double) { self = .number(value) }
  public init(stringLiteral value: String) { self = .string(value) }
  public init(arrayLiteral elements: JSON...) { self = .array(elements) }

  /// Of a key that comes twice, the last value counts.
  public init(dictionaryLiteral elements: (String, JSON)...) {
    self = .object(Dictionary(elements) { _, last in last })
  }
}

extension JSON: Codable {
  public init(from decoder: any Decoder) throws {
    let value = try decoder.singleValueContainer()
    if value.decodeNil() {
      self = .null
    } else if let bool = try? value.decode(Bool.self) {
      self = .bool(bool)
    } else if let int = try? value.decode(Int.self) {
      self = .int(int)
    } else if let number = try? value.decode(Double.self) {
      self = .number(number)
    } else if let string = try? value.decode(String.self) {
      self = .string(string)
    } else if let array = try? value.decode([JSON].self) {
      self = .array(array)
    } else {
      self = .object(try value.decode([String: JSON].self))
    }
  }

  public func encode(to encoder: any Encoder) throws {
    var value = encoder.singleValueContainer()
    switch self {
    case .null: try value.encodeNil()
    case .bool(let bool): try value.encode(bool)
    case .int(let int): try value.encode(int)
    case .number(let number): try value.encode(number)
    case .string(let string): try value.encode(string)
    case .array(let array): try value.encode(array)
    case .object(let object): try value.encode(object)
    }
  }
}

/// A field that may be left out, or be null, which says something else: `.null`, or `.value(...)`.
public enum OrNull<Value: Encodable & Sendable & Hashable>: Encodable, Sendable, Hashable {
  case null
  case value(Value)

  public func encode(to encoder: any Encoder) throws {
    var single = encoder.singleValueContainer()
    switch self {
    case .null: try single.encodeNil()
    case .value(let value): try single.encode(value)
    }
  }
}

extension OrNull: ExpressibleByUnicodeScalarLiteral, ExpressibleByExtendedGraphemeClusterLiteral,
  ExpressibleByStringLiteral
where Value == String {
  public init(stringLiteral text: String) { self = .value(text) }
}

/// The fields of a request. One that is nil is left out.
struct Request: Encodable, Sendable, ExpressibleByDictionaryLiteral {
  typealias Value = (any Encodable & Sendable)?
  private let fields: [(name: String, value: Value)]

  init(dictionaryLiteral fields: (String, Value)...) { self.fields = fields }

  func encode(to encoder: any Encoder) throws {
    var values = encoder.container(keyedBy: AnyKey.self)
    for case (let name, let value?) in fields { try values.encode(value, forKey: AnyKey(name)) }
  }
}

extension Encodable {
  /// As JSON. Fails for a number that JSON does not have.
  var json: String {
    get throws(HoldfastError) {
      do { return String(decoding: try JSONEncoder().encode(self), as: UTF8.self) } catch {
        var path: [any CodingKey] = []
        if case EncodingError.invalidValue(_, let context) = error { path = context.codingPath }
        let field = path.map { key in
          let name = key.intValue.map(String.init) ?? key.stringValue
          return "/" + name.replacing("~", with: "~0").replacing("/", with: "~1")
        }
        throw HoldfastError(
          HOLDFAST_INVALID, .requestInvalidValue, "the value is none of JSON's",
          field: field.joined())
      }
    }
  }
}

/// A key that only a request or a reply names.
struct AnyKey: CodingKey {
  let stringValue: String
  var intValue: Int? { nil }

  init(_ name: String) { stringValue = name }
  init?(stringValue: String) { self.stringValue = stringValue }
  init?(intValue: Int) { nil }
}

extension KeyedDecodingContainer where Key == AnyKey {
  /// The members that have no field of their own.
  func others(than known: Set<String>) throws -> [String: JSON] {
    try allKeys.filter { !known.contains($0.stringValue) }.reduce(into: [:]) {
      $0[$1.stringValue] = try decode(JSON.self, forKey: $1)
    }
  }
}
