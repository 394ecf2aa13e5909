import Policy
import Base
import Testing
import Vault

@testable import Supabase

func json(_ text: String, _ dialect: JSON.Dialect = .strict) throws(Failure) -> JSON {
  let bytes = Array(text.utf8)
  var result = Result<JSON, Failure>.failure(.defect("not read"))
  bytes.withUnsafeBytes { bytes in
    do throws(Failure) { result = .success(try JSON.parse(bytes, dialect)) } catch {
      result = .failure(error)
    }
  }
  return try result.get()
}

func secret(_ text: String) throws(Failure) -> SecretBytes {
  try secretBytes(Array(text.utf8))
}

func secretBytes(_ bytes: [UInt8]) throws(Failure) -> SecretBytes {
  try Vault.start()
  return try SecretBytes.written(capacity: bytes.count) { room in
    room.copyBytes(from: bytes)
    return room.count
  }
}

func text(_ secret: SecretBytes?) -> String? {
  guard let secret else { return nil }
  return withExtendedLifetime(secret) { String(decoding: secret.bytes, as: UTF8.self) }
}

/// Code and field of the failure that `body` throws, as "code field"; nil when it succeeds.
func refusal<Value>(_ body: () throws(Failure) -> Value) -> String? {
  do throws(Failure) {
    _ = try body()
    return nil
  } catch { return "\(error.code.rawValue) \(error.field ?? "-")" }
}

func backend(
  _ rest: String = "", url: String = "https://x.supabase.co", key: String = "sb_publishable_k"
) throws(Failure) -> Backend {
  let config = try json(
    #"{"template":"volunteers","backend":{"url":"\#(url)","api_key":"\#(key)"\#(rest)}}"#)
  return try Backend.read(in: try Fields(config, known: ["backend", "template"]))
}

func contacts(_ rest: String = "") throws -> RowSource {
  .contacts(try backend(rest), org: try uuid(orgText))
}

func rendered(_ request: Request, id: Int64 = 1) throws -> String {
  try request.rendered(id: id).text().string
}

func uuid(_ text: String) throws -> UUID { try #require(UUID(text)) }

let orgText = "aaaaaaaa-0000-4000-8000-000000000001"
let idText = "61cb3aa1-44d2-492e-ad46-586330418eac"
let otherText = "e4acfe78-de17-4358-800e-ecca2e1259f3"
let userText = "11111111-1111-4111-8111-111111111111"

/// A token with these claims and an invalid signature.
func token(claims: String) -> String {
  let parts = [#"{"alg":"HS256","typ":"JWT"}"#, claims].map { Digest.base64URL(Array($0.utf8)) }
  return parts.joined(separator: ".") + ".c2lnbmF0dXJl"
}

/// The response to a grant, in the form that GoTrue v2 sends.
func tokenReply(access: String? = nil) -> String {
  let access =
    access
    ?? token(
      claims: #"{"iss":"https://x.supabase.co/auth/v1","sub":"\#(userText)","aud":"authenticated","#
        + #""exp":1732172400,"iat":1732168800,"email":"a@example.org","phone":"","#
        + #""app_metadata":{"provider":"email","providers":["email"]},"user_metadata":{},"#
        + #""role":"authenticated","aal":"aal1","amr":[{"method":"password","timestamp":1732168800}],"#
        + #""session_id":"0b5c0e5e-7f2c-4e53-9a3d-1f1d0c9c2a11","is_anonymous":false}"#)
  return #"{"access_token":"\#(access)","token_type":"bearer","expires_in":3600,"#
    + #""expires_at":1732172400,"refresh_token":"v3sbnbprgt4x","user":{"id":"\#(userText)","#
    + #""aud":"authenticated","role":"authenticated","email":"a@example.org","phone":"","#
    + #""last_sign_in_at":"2024-11-21T06:00:00.123456789Z","identities":[],"#
    + #""is_anonymous":false},"weak_password":null}"#
}

extension ResponseFacts: Equatable {
  public static func == (left: ResponseFacts, right: ResponseFacts) -> Bool {
    left.status == right.status && left.code == right.code && left.oauthError == right.oauthError
      && left.description == right.description && left.isServerJSON == right.isServerJSON
  }
}

/// The array of a response's body, read as that of a response is; nil when it is none.
func answer(_ body: String, most: Int = JSON.maxValues) throws(Failure) -> ResponseRows? {
  let complete: JSON = ["status": 200, "body": .string(body)]
  return try HTTPResponse.read(
    try Fields(complete, known: ["status", "body"]), nowMS: 0, most: most
  ).rows
}
