public import Base
public import Vault

/// Requests to the auth service. Source: supabase/auth `openapi.yaml`.
public enum AuthRequests {
  private static var timeoutMS: Int64 { 15_000 }

  /// `purpose` is `revoke` for the refresh that comes before a logout with an expired access token.
  public static func refresh(
    _ backend: Backend, token: SecretBytes, purpose: Purpose = .refresh
  ) throws(Failure) -> Request {
    try grant(backend, "refresh_token", purpose, ["refresh_token": token.json])
  }

  public static func user(_ backend: Backend, bearer: SecretBytes) throws(Failure) -> Request {
    Request(
      .validate, "GET", backend.auth("user"), headers: headers(backend), bearer: bearer,
      timeoutMS: timeoutMS)
  }

  /// Which sessions of the user a logout ends: the bearer's, all, or all but the bearer's.
  public enum LogoutScope: String, Sendable { case local, global, others }

  public static func logout(
    _ backend: Backend, bearer: SecretBytes, _ scope: LogoutScope
  ) throws(Failure) -> Request {
    Request(
      .revoke, "POST", backend.auth("logout?scope=") + scope.rawValue,
      headers: headers(backend), bearer: bearer, timeoutMS: timeoutMS)
  }

  public static func password(
    _ backend: Backend, email: JSON, password: JSON
  ) throws(Failure) -> Request {
    try grant(backend, "password", .signIn, ["email": email, "password": password])
  }

  public static func pkce(
    _ backend: Backend, code: SecretBytes, verifier: SecretBytes
  ) throws(Failure) -> Request {
    try grant(
      backend, "pkce", .signIn, ["auth_code": code.json, "code_verifier": verifier.json])
  }

  /// `nonce` is the raw nonce; the identity token holds its SHA-256 in hex.
  public static func idToken(
    _ backend: Backend, provider: String, idToken: JSON, nonce: JSON
  ) throws(Failure) -> Request {
    try grant(
      backend, "id_token", .signIn,
      ["provider": .string(provider), "id_token": idToken, "nonce": nonce])
  }

  /// The page that a browser opens. The redirect URL is sent as it is configured, because the service
  /// compares it with the project's list of redirect URLs (RFC 9700, section 2.1: exactly) and goes to
  /// the project's site URL when it is not there.
  public static func authorizeURL(
    _ backend: Backend, provider: String, redirectURL: String, challenge: String
  ) -> String {
    backend.auth("authorize?provider=") + Percent.encode(provider)
      + "&redirect_to=" + Percent.encode(redirectURL)
      + "&code_challenge=" + Percent.encode(challenge) + "&code_challenge_method=s256"
  }

  private static func grant(
    _ backend: Backend, _ type: String, _ purpose: Purpose, _ body: JSON
  ) throws(Failure) -> Request {
    for (_, value) in body.members where value.kind != .string {
      throw .defect("a credential is not a string")
    }
    return Request(
      purpose, "POST", backend.auth("token?grant_type=") + type, headers: headers(backend),
      body: body, timeoutMS: timeoutMS)
  }

  /// The API version selects error bodies with a string as `code`. Without it, errors of hooks come
  /// in yet another form.
  private static func headers(_ backend: Backend) -> JSON {
    let headers = backend.headers
    headers.set("X-Supabase-Api-Version", "2024-01-01")
    return headers
  }
}

extension Backend {
  func auth(_ path: String) -> String { url + "/auth/v1/" + path }

  func rest(_ path: String) -> String { url + "/rest/v1/" + path }

  /// The headers of every request.
  var headers: JSON {
    [
      "apikey": .string(apiKey), "Accept": "application/json",
      "X-Client-Info": .string("holdfast/" + Version.text.description),
    ]
  }
}
