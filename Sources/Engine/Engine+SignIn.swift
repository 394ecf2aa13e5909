public import Base
import Policy
import Store
import Supabase
import Vault

/// What is exchanged for a session, in memory only: it is used once and soon.
final class Exchange {
  enum Proof {
    case pkce(code: SecretBytes, verifier: SecretBytes)
    case idToken(provider: String, token: JSON, nonce: JSON)
    case password(email: JSON, password: JSON)
  }

  let proof: Proof
  /// When it is given up, by the monotonic clock.
  let deadlineMS: Int64
  /// Whose session it was begun over, and when that user was last seen.
  let owner: [UInt8]?
  let authenticatedMS: Int64

  init(_ proof: Proof, over row: SessionRow, deadlineMS: Int64) {
    self.proof = proof
    self.deadlineMS = deadlineMS
    owner = row.owner
    authenticatedMS = row.authenticatedMS
  }

  /// Whether nobody has signed in, unlocked or logged out since.
  func counts(over row: SessionRow) -> Bool {
    row.owner == owner && row.authenticatedMS == authenticatedMS
  }

  func request(_ backend: Backend) throws(Failure) -> Request {
    switch proof {
    case .pkce(let code, let verifier):
      return try AuthRequests.pkce(backend, code: code, verifier: verifier)
    case .idToken(let provider, let token, let nonce):
      return try AuthRequests.idToken(backend, provider: provider, idToken: token, nonce: nonce)
    case .password(let email, let password):
      return try AuthRequests.password(backend, email: email, password: password)
    }
  }
}

extension Engine {
  /// How long a sign-in may stay open in the browser here. The server's own limit (300 s at least) is
  /// usually shorter, and its answer is told apart.
  private static var signInLifetimeMS: Int64 { 900_000 }
  /// The server unreachable for so long, the sign-in is given up.
  private static var exchangeLifetimeMS: Int64 { 60_000 }

  private static func signInContext(_ state: [UInt8]) -> SealContext {
    SealContext(table: "sign_in", row: state, column: "sealed")
  }

  private func method(_ fields: Fields, flow: AuthMethod.Flow) throws(Failure) -> AuthMethod? {
    guard let id = try fields.string(ifPresent: "method") else {
      return configuration.methods.first { $0.flow == flow }
    }
    guard let found = configuration.methods.first(where: { $0.id == id && $0.flow == flow }) else {
      throw Failure(.signInUnknownMethod, "no such method", field: fields.pointer("method"))
    }
    return found
  }

  public func signInBegin(_ request: JSON) throws(Failure) -> JSON {
    let fields = try Fields(request, known: ["method"])
    let id = try fields.string("method")
    guard let method = configuration.methods.first(where: { $0.id == id }) else {
      let near = Suggestion.nearest(to: id, among: configuration.methods.map { $0.id })
      throw Failure(
        .signInUnknownMethod,
        near.map { "no such method; did you mean \"\($0)\"?" }
          ?? "no such method", field: "/method")
    }
    switch method.flow {
    case .password: return ["needs": ["email", "password"]]
    case .idToken:
      return [
        "needs": ["id_token", "nonce"], "nonce": .string(Digest.base64URL(Random.bytes(32))),
      ]
    case .pkce: return try beginPKCE(method)
    }
  }

  /// PKCE (RFC 7636): the verifier stays here, sealed; the browser sees its digest.
  private func beginPKCE(_ method: AuthMethod) throws(Failure) -> JSON {
    let keys = try keys()
    let now = clock.now()
    let state = Digest.base64URL(Random.bytes(32))
    let verifier = JSON.string(Digest.base64URL(Random.bytes(32)))
    let challenge = verifier.withUTF8 { Digest.base64URL(Digest.sha256($0)) } ?? ""
    let tag = keys.lookup.tag("state", Array(state.utf8))
    let sealed = try keys.signIns.seal(
      ["verifier": verifier, "provider": .string(method.provider)], Engine.signInContext(tag))
    try main.transaction { () throws(Failure) in
      try signIns.removeOlder(than: now.wallMS - Engine.signInLifetimeMS)
      try signIns.add(state: tag, sealed: sealed, now: now.wallMS)
    }
    return [
      "url": .string(
        AuthRequests.authorizeURL(
          configuration.backend, provider: method.provider,
          redirectURL: configuration.redirectURL, challenge: challenge, state: state)),
      "state": .string(state),
    ]
  }

  public func signInComplete(_ request: JSON) throws(Failure) -> JSON {
    let fields = try Fields(
      request, known: ["callback_url", "id_token", "nonce", "email", "password", "method"])
    if fields.optional("callback_url") != nil {
      try refuse(["id_token", "nonce", "email", "password", "method"], in: fields)
      return try completeInBrowser(fields)
    }
    if fields.optional("id_token") != nil {
      try refuse(["email", "password"], in: fields)
      guard let method = try method(fields, flow: .idToken) else {
        throw Failure(.signInUnknownMethod, "no method with this flow", field: "/id_token")
      }
      return try begin(
        .idToken(
          provider: method.provider, token: try fields.text("id_token", maximum: 16_384),
          nonce: try fields.text("nonce", maximum: 1024)))
    }
    try refuse(["nonce"], in: fields)
    if fields.optional("method") != nil { _ = try method(fields, flow: .password) }
    return try begin(
      .password(
        email: try fields.text("email", maximum: 320),
        password: try fields.text("password", maximum: 1024)))
  }

  /// The fields of another form: what is meant would be a guess.
  private func refuse(_ names: [StaticCString], in fields: Fields) throws(Failure) {
    for name in names where fields.optional(name) != nil {
      throw fields.invalid(name, "this field belongs to another form of sign-in")
    }
  }

  private func completeInBrowser(_ fields: Fields) throws(Failure) -> JSON {
    let callback = try Callback.read(
      try fields.text("callback_url", maximum: 8192), redirectURL: configuration.redirectURL)
    switch callback {
    case .foreign:
      throw Failure(
        .signInForeignCallback, "this is not the redirect_url of this app", field: "/callback_url")
    case .code(let code, let state):
      let verifier = try verifier(for: state)
      return try begin(.pkce(code: code, verifier: verifier))
    case .refused(let error, let code, _, let state):
      // Somebody who does not know the state cannot end a sign-in either.
      _ = try verifier(for: state)
      if code == "flow_state_expired" { return try show(Decision(.signIn, .signInExpired)) }
      return try show(
        Decision(.signIn, error == "access_denied" ? .signInCancelled : .signInFailed))
    }
  }

  /// The sealed verifier of a state: it can be had once.
  private func verifier(for state: String?) throws(Failure) -> SecretBytes {
    let keys = try keys()
    let now = clock.now()
    let tag = keys.lookup.tag("state", Array((state ?? "").utf8))
    return try main.transaction { () throws(Failure) in
      guard let found = try signIns.find(state: tag), try signIns.remove(state: tag) else {
        throw Failure(
          .signInStateMismatch, "no sign-in with this state is under way", field: "/callback_url")
      }
      guard abs(now.wallMS - found.createdMS) <= Engine.signInLifetimeMS else {
        throw Failure(.signInExpired, "the sign-in took too long", field: "/callback_url")
      }
      guard let json = try keys.signIns.openJSON(found.sealed, Engine.signInContext(tag)),
        let verifier = try json["verifier"].map({ (value) throws(Failure) in
          try SecretBytes.text(of: value)
        }) ?? nil
      else { throw Failure(.storageDamaged, "unreadable; begin anew") }
      return verifier
    }
  }

  private func begin(_ proof: Exchange.Proof) throws(Failure) -> JSON {
    _ = try keys()
    exchange = Exchange(
      proof, over: try sessions.read(),
      deadlineMS: clock.now().monotonicMS + Engine.exchangeLifetimeMS)
    return try show(Decision(.wait, .signingIn))
  }

  /// A sign-in that the server did not answer in time.
  func expireExchange(_ now: Instant) throws(Failure) {
    guard let exchange, exchange.deadlineMS <= now.monotonicMS else { return }
    try tellSignIn(.serverUnreachable)
  }

  /// The answer to the exchange. It counts only for the session that it was begun over, `row` being
  /// the one that is stored now.
  func signedIn(
    _ exchange: Exchange, _ row: SessionRow, _ reply: HTTPResponse, _ now: Instant
  ) throws(Failure) {
    let verdict = AuthClassification.signIn(reply.facts)
    guard self.exchange === exchange else {
      // Given up, or somebody else is signed in: nobody will use this session.
      if verdict == .success, let tokens = try readTokens(reply) { try decline(tokens, now) }
      return
    }
    switch verdict {
    case .success:
      guard let tokens = try readTokens(reply) else { return try tellSignIn(.signInFailed) }
      if exchange.counts(over: row), try adopt(tokens, expecting: row.generation) {
        shown.awaits = true
      } else {
        try decline(tokens, now)
        // Whoever waits is told what is stored now.
        if row.owner == nil { return try tellSignIn(.signInFailed) }
        self.exchange = nil
        shown.awaits = true
      }
    case .expired, .notFound: try tellSignIn(.signInExpired)
    case .rejected: try tellSignIn(.signInFailed)
    case .transient: try backOff(.auth, reply, now)
    }
  }

  /// Give a session that came too late back to the server.
  private func decline(_ tokens: TokenReply, _ now: Instant) throws(Failure) {
    try addRevocation(
      access: tokens.accessToken, refresh: tokens.refreshToken,
      expiresMS: try expiry(of: tokens, now), try keys())
  }

  /// The sign-in has ended without a session. It has not while that could not be told.
  private func tellSignIn(_ reason: Reason) throws(Failure) {
    let before = shown
    try tell(try show(Decision(.signIn, reason)), over: before)
    exchange = nil
  }
}
