public import Base
public import Vault

/// An HTTP request as a value, which the host sends.
public final class Request {
  public let purpose: Purpose
  public let method: JSON
  public let url: String
  /// An object of strings.
  public let headers: JSON
  /// The access token of the user. Nothing else is ever sent as `Authorization`.
  public let bearer: SecretBytes?
  public let body: JSON?
  public let timeoutMS: Int64

  init(
    _ purpose: Purpose, _ method: JSON, _ url: String, headers: JSON, bearer: SecretBytes? = nil,
    body: JSON? = nil,
    timeoutMS: Int64
  ) {
    self.purpose = purpose
    self.method = method
    self.url = url
    self.headers = headers
    self.bearer = bearer
    self.body = body
    self.timeoutMS = timeoutMS
  }

  /// The request in the reply of `holdfast_next`. The token is copied only within memory that is
  /// zeroed when it is released.
  public func rendered(id: Int64) throws(Failure) -> JSON {
    let fields = headers.shallowCopy
    if let bearer { fields.set("Authorization", try Request.authorization(bearer)) }
    var text = JSON.null
    if let body {
      fields.set("Content-Type", "application/json")
      text = try Request.text(of: body)
    }
    return [
      "id": .int(id), "purpose": .string(purpose.rawValue), "method": method,
      "url": .string(url), "headers": fields, "body": text, "timeout_ms": .int(timeoutMS),
    ]
  }

  private static func authorization(_ token: SecretBytes) throws(Failure) -> JSON {
    guard VisibleASCII.fills(token.bytes) else {
      throw .defect("an access token is not a valid header value")
    }
    let scheme: StaticString = "Bearer "
    let length = scheme.utf8CodeUnitCount
    let value = try SecretBytes.written(capacity: length + token.count, room: .heap) { room in
      scheme.withUTF8Buffer { room.copyBytes(from: $0) }
      UnsafeMutableRawBufferPointer(rebasing: room[length...]).copyMemory(from: token.bytes)
      return room.count
    }
    return try present(value.json)
  }

  private static func text(of body: JSON) throws(Failure) -> JSON {
    let text = try body.text()
    defer { withExtendedLifetime(text) {} }
    return try present(.string(text.bytes))
  }

  /// jansson returns null when there is no memory.
  private static func present(_ value: JSON) throws(Failure) -> JSON {
    guard !value.isNull else { throw Failure(.memoryExhausted, "no memory for a request") }
    return value
  }
}

/// The characters that a header value, a URL or a token may hold: ASCII without spaces and control
/// characters.
enum VisibleASCII {
  static func contains(_ byte: UInt8) -> Bool { byte > 0x20 && byte < 0x7F }

  /// Whether the bytes are not empty and all of them are visible ASCII.
  static func fills(_ bytes: some Sequence<UInt8>) -> Bool {
    var isEmpty = true
    for byte in bytes {
      guard contains(byte) else { return false }
      isEmpty = false
    }
    return !isEmpty
  }
}
