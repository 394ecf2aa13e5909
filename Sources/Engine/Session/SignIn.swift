import Base
import Policy
import Store
import Supabase
import Vault

/// A proof of identity that waits for its exchange. It is in memory only, because it is used once
/// and soon.
final class PendingSignIn {
  enum Proof {
    case pkce(code: SecretBytes, verifier: SecretBytes)
    case idToken(provider: String, token: JSON, nonce: JSON)
    case password(email: JSON, password: JSON)
  }

  let proof: Proof
  /// When the sign-in is given up, by the monotonic clock.
  let deadlineMS: Int64
  /// The session that was stored when the sign-in began: its user, and when that user was last
  /// authenticated.
  private let owner: [UInt8]?
  private let authenticatedMS: Int64

  init(_ proof: Proof, over row: SessionRow, deadlineMS: Int64) {
    self.proof = proof
    self.deadlineMS = deadlineMS
    owner = row.owner
    authenticatedMS = row.authenticatedMS
  }

  /// Whether nobody signed in, unlocked or logged out since the sign-in began.
  func isValid(over row: SessionRow) -> Bool {
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

/// The pending sign-in, if any.
final class PendingSignInState {
  private let revision: Revision
  private(set) var pending: PendingSignIn? { didSet { revision.advance() } }

  init(_ revision: Revision) { self.revision = revision }

  func begin(_ pending: PendingSignIn) { self.pending = pending }

  func end() { pending = nil }
}

/// Signing in: methods, PKCE, and the exchange of a proof for a session.
final class SignIn {
  /// How long a sign-in may stay open in the browser. The server's own limit (300 s at least) is
  /// usually shorter. The server's expiry error has its own reason.
  private static var browserLimitMS: Int64 { 900_000 }
  /// A sign-in without a response for this long is given up.
  private static var exchangeLimitMS: Int64 { 60_000 }

  private let core: Core
  private let sessions: SessionStore
  private let sessionStart: SessionStart
  private let state: PendingSignInState
  private let revocations: Revocation
  private let pauses: ServicePauses
  private let reachability: Reachability
  private let hostView: HostView
  private let inFlight: InFlight

  init(
    _ core: Core, _ sessions: SessionStore, sessionStart: SessionStart, state: PendingSignInState,
    revocations: Revocation, pauses: ServicePauses, reachability: Reachability, hostView: HostView,
    inFlight: InFlight
  ) {
    self.core = core
    self.sessions = sessions
    self.sessionStart = sessionStart
    self.state = state
    self.revocations = revocations
    self.pauses = pauses
    self.reachability = reachability
    self.hostView = hostView
    self.inFlight = inFlight
  }

  private static func context(_ state: [UInt8]) -> SealContext {
    SealContext(table: "sign_in", row: state, column: "sealed")
  }

  // MARK: Beginning

  func begin(_ request: JSON) throws(Failure) -> JSON {
    let fields = try Fields(request, known: ["method"])
    let id = try fields.string("method")
    let methods = core.configuration.methods
    guard let method = methods.first(where: { $0.id == id }) else {
      let near = Suggestion.nearest(to: id, among: methods.map { $0.id })
      throw Failure(
        .signInUnknownMethod,
        near.map { "no such method; did you mean \"\($0)\"?" } ?? "no such method",
        field: "/method")
    }
    switch method.flow {
    case .password: return ["needs": ["email", "password"]]
    case .idToken:
      let nonce = Digest.base64URL(Random.bytes(32))
      try store(nonce, ["provider": .string(method.provider)])
      return ["needs": ["id_token", "nonce"], "nonce": .string(nonce)]
    case .pkce: return try beginPKCE(method)
    }
  }

  /// PKCE (RFC 7636): the verifier stays here, sealed; the browser sees its digest.
  private func beginPKCE(_ method: AuthMethod) throws(Failure) -> JSON {
    let state = Digest.base64URL(Random.bytes(32))
    let verifier = JSON.string(Digest.base64URL(Random.bytes(32)))
    let challenge = verifier.withUTF8 { Digest.base64URL(Digest.sha256($0)) } ?? ""
    try store(state, ["verifier": verifier, "provider": .string(method.provider)])
    return [
      "url": .string(
        AuthRequests.authorizeURL(
          core.configuration.backend, provider: method.provider,
          redirectURL: core.configuration.redirectURL, challenge: challenge, state: state)),
      "state": .string(state),
    ]
  }

  /// Keep what belongs to a `state` or `nonce`, sealed, for the one completion that brings it back.
  private func store(_ state: String, _ value: JSON) throws(Failure) {
    let keys = try core.keys()
    let now = core.clock.now()
    let tag = keys.lookup.tag("state", Array(state.utf8))
    let sealed = try keys.signIns.seal(value, SignIn.context(tag))
    try core.database.transaction { () throws(Failure) in
      let begun = try core.steadyToStore(now)
      try core.signIns.removeOlder(than: begun - SignIn.browserLimitMS)
      try core.signIns.add(state: tag, sealed: sealed, now: begun)
    }
  }

  // MARK: Completing

  /// Take the proof from one of the three forms of the request; the next poll sends it.
  func complete(_ request: JSON, _ decider: Decider) throws(Failure) -> JSON {
    let fields = try Fields(
      request, known: ["callback_url", "id_token", "nonce", "email", "password", "method"])
    if fields.optional("callback_url") != nil {
      try refuse(["id_token", "nonce", "email", "password", "method"], in: fields)
      return try completeInBrowser(fields, decider)
    }
    if fields.optional("id_token") != nil {
      try refuse(["email", "password"], in: fields)
      guard let method = try method(fields, flow: .idToken) else {
        throw Failure(.signInUnknownMethod, "no method with this flow", field: "/id_token")
      }
      let (token, nonce) = (
        try fields.text("id_token", maximum: 16_384), try fields.text("nonce", maximum: 1024)
      )
      // The nonce stays, so the same token works once there is a network.
      if let refusal = try refusalOffline(decider) { return refusal }
      let stored = try take(nonce.string, field: "/nonce")
      guard stored.string("provider") == method.provider else {
        throw fields.invalid("nonce", "it was made for another provider")
      }
      return try start(
        .idToken(provider: method.provider, token: token, nonce: nonce), decider)
    }
    try refuse(["nonce"], in: fields)
    if fields.optional("method") != nil { _ = try method(fields, flow: .password) }
    return try start(
      .password(
        email: try fields.text("email", maximum: 320),
        password: try fields.text("password", maximum: 1024)), decider)
  }

  private func method(_ fields: Fields, flow: AuthMethod.Flow) throws(Failure) -> AuthMethod? {
    let methods = core.configuration.methods
    guard let id = try fields.string(ifPresent: "method") else {
      return methods.first { $0.flow == flow }
    }
    guard let found = methods.first(where: { $0.id == id && $0.flow == flow }) else {
      throw Failure(.signInUnknownMethod, "no such method", field: fields.pointer("method"))
    }
    return found
  }

  /// Refuse the fields of another form, because the intended form is unclear.
  private func refuse(_ names: [StaticCString], in fields: Fields) throws(Failure) {
    for name in names where fields.optional(name) != nil {
      throw fields.invalid(name, "this field belongs to another form of sign-in")
    }
  }

  private func completeInBrowser(
    _ fields: Fields, _ decider: Decider
  ) throws(Failure) -> JSON {
    let callback = try Callback.read(
      try fields.text("callback_url", maximum: 8192),
      redirectURL: core.configuration.redirectURL)
    switch callback {
    case .foreign:
      throw Failure(
        .signInForeignCallback, "this is not the redirect_url of this app", field: "/callback_url")
    case .code(let code, let state):
      // The verifier stays, so the same callback works once there is a network.
      if let refusal = try refusalOffline(decider) { return refusal }
      return try start(.pkce(code: code, verifier: try takeVerifier(for: state)), decider)
    case .refused(let error, let code, _, let state):
      // Only a callback with the right state can end a sign-in.
      _ = try takeVerifier(for: state)
      let reason: Reason =
        code == "flow_state_expired"
        ? .signInExpired : error == "access_denied" ? .signInCancelled : .signInFailed
      return try decider.show(Decision(.signIn, reason))
    }
  }

  /// The sealed verifier of a state; it can be taken once.
  private func takeVerifier(for state: String?) throws(Failure) -> SecretBytes {
    let stored = try take(state, field: "/callback_url")
    guard let sealed = stored["verifier"], let verifier = try SecretBytes.text(of: sealed) else {
      throw Failure(
        .signInStateMismatch, "no sign-in with this state is under way", field: "/callback_url")
    }
    return verifier
  }

  /// What was stored for a `state` or `nonce`; it can be taken once.
  private func take(_ state: String?, field: String) throws(Failure) -> JSON {
    let keys = try core.keys()
    let now = core.clock.now()
    let tag = keys.lookup.tag("state", Array((state ?? "").utf8))
    return try core.database.transaction { () throws(Failure) in
      guard let found = try core.signIns.find(state: tag), try core.signIns.remove(state: tag)
      else {
        throw Failure(
          .signInStateMismatch, "no sign-in with this value is under way", field: field)
      }
      guard !found.sealed.isEmpty else {
        throw Failure(
          .signInCancelled, "this sign-in was cancelled", field: field)
      }
      guard abs(try core.steady(now) - found.created) <= SignIn.browserLimitMS else {
        throw Failure(.signInExpired, "the sign-in took too long", field: field)
      }
      guard let json = try keys.signIns.openJSON(found.sealed, SignIn.context(tag)) else {
        throw Failure(
          .storageDamaged, "the stored sign-in is unreadable; call holdfast_sign_in_begin again")
      }
      return json
    }
  }

  private func start(
    _ proof: PendingSignIn.Proof, _ decider: Decider
  ) throws(Failure) -> JSON {
    _ = try core.keys()
    if let refusal = try refusalOffline(decider) { return refusal }
    hostView.noteVisitor()
    state.begin(
      PendingSignIn(
        proof, over: try sessions.row(),
        deadlineMS: core.clock.now().monotonicMS + SignIn.exchangeLimitMS))
    return try decider.show(Decision(.wait, .signingIn))
  }

  /// Without a network a sign-in is answered at once; nil when there is one.
  private func refusalOffline(_ decider: Decider) throws(Failure) -> JSON? {
    if reachability.isOnline { return nil }
    return try decider.show(Decision(.signIn, .signInOffline))
  }

  // MARK: Cancelling

  /// End the sign-in that is under way. Its callback is refused later, and its tokens are revoked.
  func cancel(_ request: JSON, _ decider: Decider) throws(Failure) -> JSON {
    _ = try Fields(request, known: [])
    let now = core.clock.now()
    let inBrowser = try core.database.transaction { () throws(Failure) in
      try core.signIns.removeOlder(than: try core.steady(now) - SignIn.browserLimitMS)
      return try core.signIns.cancelAll()
    }
    let decision = try decider.decide(.navigate)
    let isCancelled = inBrowser > 0 || state.pending != nil
    state.end()
    return ["cancelled": .bool(isCancelled), "decision": decision]
  }

  // MARK: The exchange

  func send(_ pending: PendingSignIn, _ now: Instant) throws(Failure) {
    try inFlight.send(
      try pending.request(core.configuration.backend), .signIn(pending),
      generation: try sessions.row().generation, now)
  }

  /// Give up a sign-in that the server did not answer in time.
  func expire(_ now: Instant, _ decider: Decider) throws(Failure) {
    guard let pending = state.pending, pending.deadlineMS <= now.monotonicMS else { return }
    try fail(.signInUnreachable, decider)
  }

  /// The network may have gone: a sign-in that waits for an answer ends.
  func followNetwork(_ decider: Decider) throws(Failure) {
    guard state.pending != nil, !reachability.isOnline else { return }
    try fail(.signInOffline, decider)
  }

  /// Process the response to the exchange. It counts only if nobody signed in, unlocked or logged
  /// out since its start; `row` is the stored session.
  func finish(
    _ pending: PendingSignIn, _ row: SessionRow, _ response: HTTPResponse, _ now: Instant,
    _ decider: Decider
  ) throws(Failure) {
    let outcome = AuthClassification.signIn(response.facts)
    guard state.pending === pending else {
      // The sign-in was given up or replaced by another one: revoke the issued session.
      if outcome == .success, let reply = try response.tokens() {
        try revocations.add(reply, now)
      }
      return
    }
    switch outcome {
    case .success:
      guard let reply = try response.tokens() else { return try fail(.signInFailed, decider) }
      try adopt(reply, pending, row, now, decider)
    case .expired, .notFound: try fail(.signInExpired, decider)
    case .rejected: try fail(.signInFailed, decider)
    case .transient:
      if response.error == .offline || response.error == .dns {
        return try fail(.signInOffline, decider)
      }
      try pauses.backOff(.signIn, response, now)
    }
  }

  private func adopt(
    _ reply: TokenReply, _ pending: PendingSignIn, _ row: SessionRow, _ now: Instant,
    _ decider: Decider
  ) throws(Failure) {
    if pending.isValid(over: row),
      try sessionStart.adopt(reply, ifGeneration: row.generation)
    {
      return hostView.expectDecision()
    }
    try revocations.add(reply, now)
    if row.owner == nil { return try fail(.signInFailed, decider) }
    // Another session was stored meanwhile: the next decision is about that one.
    state.end()
    hostView.expectDecision()
  }

  /// End the sign-in without a session. If emitting fails, keep the sign-in pending and retry.
  private func fail(_ reason: Reason, _ decider: Decider) throws(Failure) {
    try decider.emit(Decision(.signIn, reason))
    state.end()
  }
}
