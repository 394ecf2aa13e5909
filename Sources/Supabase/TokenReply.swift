public import Base
public import Vault

/// A session as the auth service sends it, in the response to every grant.
public final class TokenReply {
  public let accessToken: SecretBytes
  public let refreshToken: SecretBytes
  /// The lifetime of the access token, 0 to ten years.
  public let expiresInS: Int64
  /// The expiry by the server's time, until the year 9999. Servers before 2023 do not send it.
  public let expiresAtS: Int64?
  public let userID: UUID

  /// Reads a session tolerantly: unknown members are ignored, numbers may have a fraction, and lifetimes may
  /// be texts, as redirects have them. Throws `session.invalid` with the member that is missing or malformed.
  /// `path` is the pointer of `json`.
  public static func read(_ json: JSON, at path: String = "") throws(Failure) -> TokenReply {
    try TokenReply(json, path)
  }

  private init(_ json: JSON, _ path: String) throws(Failure) {
    guard json.kind == .object else { throw TokenReply.invalid(path, "an object is expected") }
    accessToken = try TokenReply.token("access_token", in: json, path)
    refreshToken = try TokenReply.token("refresh_token", in: json, path)
    guard let lifetime = TokenReply.time(json["expires_in"], in: 0...315_360_000) else {
      throw TokenReply.invalid(path + "/expires_in", "a number of seconds is expected")
    }
    expiresInS = lifetime
    expiresAtS = TokenReply.time(json["expires_at"], in: TokenReply.instants)
    guard let user = json["user"], user.kind == .object else {
      throw TokenReply.invalid(path + "/user", "an object is expected")
    }
    guard let userID = user.uuid("id") else {
      throw TokenReply.invalid(path + "/user/id", "a UUID is expected")
    }
    self.userID = userID
    try TokenReply.checkClaims(of: accessToken, user: userID, path + "/access_token")
  }

  /// Times until the end of the year 9999, in seconds.
  private static var instants: ClosedRange<Int64> { 0...253_402_300_799 }
  /// A token is sent in a header, whose size servers limit.
  private static var maxTokenBytes: Int { 16_384 }

  /// Whether a token of this session is too long: claims that a hook has added, for instance.
  public static func hasLongToken(_ json: JSON) -> Bool {
    func isLong(_ name: StaticCString) -> Bool {
      json[name]?.withUTF8 { $0.count > maxTokenBytes } ?? false
    }
    return isLong("access_token") || isLong("refresh_token")
  }

  /// Reads a token. It is put into headers and JSON texts, so it must be visible ASCII.
  private static func token(
    _ name: StaticCString, in json: JSON, _ path: String
  ) throws(Failure) -> SecretBytes {
    guard let value = json[name], let token = try SecretBytes.text(of: value) else {
      throw invalid(path + "/" + name.string, "a string is expected")
    }
    guard token.count <= maxTokenBytes else {
      throw invalid(path + "/" + name.string, "at most \(maxTokenBytes) bytes are expected")
    }
    guard VisibleASCII.fills(token.bytes) else {
      throw invalid(path + "/" + name.string, "visible ASCII characters are expected")
    }
    return token
  }

  /// Checks the claims of the access token, not its signature.
  private static func checkClaims(
    of token: SecretBytes, user: UUID, _ field: String
  ) throws(Failure) {
    guard let claims = try JWT.claims(of: token) else {
      throw invalid(field, "a JSON Web Token is expected")
    }
    guard claims.uuid("sub") == user else {
      throw invalid(field, "the token belongs to another user")
    }
    guard end(claims) != nil else { throw invalid(field, "the token has no \"exp\"") }
  }

  /// The end that an access token names, in seconds.
  public static func end(of token: SecretBytes) throws(Failure) -> Int64? {
    try JWT.claims(of: token).flatMap { end($0) }
  }

  private static func end(_ claims: JSON) -> Int64? { whole(claims["exp"], in: instants) }

  /// The same as `whole`, also of a number that is written as a text.
  private static func time(_ value: JSON?, in range: ClosedRange<Int64>) -> Int64? {
    let text = value?.withUTF8 { try? JSON.parse($0, .tolerant, scalars: true) }
    return whole(text ?? value, in: range)
  }

  /// A number without its fraction; nil for other kinds and outside `range`.
  private static func whole(_ value: JSON?, in range: ClosedRange<Int64>) -> Int64? {
    guard let number = value?.number, let whole = Int64(exactly: number.rounded(.towardZero)),
      range.contains(whole)
    else { return nil }
    return whole
  }

  private static func invalid(_ field: String, _ message: String) -> Failure {
    Failure(.sessionInvalid, message, field: field)
  }
}
