import Base
import Policy
import Store
import Supabase
import Vault

/// Signing in: methods, PKCE, and the exchange of a proof for a session.
struct SignIn: Rules {
  /// A sign-in without a response for this long is given up.
  private static var exchangeLimitMS: Int64 { 60_000 }

  let parts: Parts
  private var stored: StoredSignIns { StoredSignIns(core: core) }

  // MARK: Beginning

  func begin(_ request: JSON) throws(Failure) -> JSON {
    let fields = try Fields(request, known: ["method"])
    let id = try fields.string("method")
    let methods = core.configuration.methods
    guard let method = methods.first(where: { $0.id == id }) else {
      throw unknownMethod(id, methods)
    }
    switch method.flow {
    case .password: return ["needs": ["email", "password"]]
    case .idToken:
      let nonce = Digest.base64URL(Random.bytes(32))
      try stored.addNonce(nonce, provider: method.provider)
      return ["needs": ["id_token", "nonce"], "nonce": .string(nonce)]
    case .pkce: return try beginPKCE(method)
    }
  }

  /// PKCE (RFC 7636): the verifier stays here, sealed; the browser sees its digest. The server takes
  /// the code only with the verifier, which binds the answer to this device.
  private func beginPKCE(_ method: AuthMethod) throws(Failure) -> JSON {
    guard let redirectURL = core.configuration.redirectURL else {
      throw .defect("a sign-in in a browser without a redirect URL")
    }
    let verifier = JSON.string(Digest.base64URL(Random.bytes(32)))
    let challenge = verifier.withUTF8 { Digest.base64URL(Digest.sha256($0)) } ?? ""
    try stored.addVerifier(verifier, provider: method.provider)
    return [
      "url": .string(
        AuthRequests.authorizeURL(
          core.configuration.backend, provider: method.provider, redirectURL: redirectURL,
          challenge: challenge))
    ]
  }

  // MARK: Completing

  /// Take the proof from one of the three forms of the request; it is sent next.
  func complete(_ request: JSON) throws(Failure) -> JSON {
    try takeProof(request)
    return [:]
  }

  private func takeProof(_ request: JSON) throws(Failure) {
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
      let (token, nonce) = (
        try fields.text("id_token", maximum: 16_384), try fields.text("nonce", maximum: 1024)
      )
      // The nonce stays, so the same token works once there is a network.
      guard reachability.isOnline else {
        return try show(.signInOffline)
      }
      guard try stored.takeNonce(nonce.string) == method.provider else {
        throw fields.invalid("nonce", "it was made for another provider")
      }
      return try start(
        .idToken(provider: method.provider, token: token, nonce: nonce))
    }
    try refuse(["nonce"], in: fields)
    let (email, password) = (
      try fields.text("email", maximum: 320), try fields.text("password", maximum: 1024)
    )
    guard try method(fields, flow: .password) != nil else {
      throw Failure(.signInUnknownMethod, "no method with this flow", field: "/password")
    }
    return try start(.password(email: email, password: password))
  }

  private func method(_ fields: Fields, flow: AuthMethod.Flow) throws(Failure) -> AuthMethod? {
    let methods = core.configuration.methods.filter { $0.flow == flow }
    guard let id = try fields.string(ifPresent: "method") else { return methods.first }
    guard let found = methods.first(where: { $0.id == id }) else {
      throw unknownMethod(id, methods)
    }
    return found
  }

  private func unknownMethod(_ id: String, _ methods: [AuthMethod]) -> Failure {
    let advice = Suggestion.advice(id, among: methods.map { $0.id }, in: "auth_methods")
    return Failure(.signInUnknownMethod, "no such method; " + advice, field: "/method")
  }

  /// Refuse the fields of another form, because the intended form is unclear.
  private func refuse(_ names: [StaticCString], in fields: Fields) throws(Failure) {
    for name in names where fields.optional(name) != nil {
      throw fields.invalid(name, "this field belongs to another form of sign-in")
    }
  }

  /// A callback proves nothing until the server has taken its code with a verifier of this device. So
  /// it ends no sign-in: the verifiers stay until one succeeds, is cancelled or expires.
  private func completeInBrowser(_ fields: Fields) throws(Failure) {
    let providers = core.configuration.methods.filter { $0.flow == .pkce }.map { $0.provider }
    guard let redirectURL = core.configuration.redirectURL, !providers.isEmpty else {
      throw Failure(
        .signInUnknownMethod, "no method returns from a browser", field: "/callback_url")
    }
    let callback = try Callback.read(
      try fields.text("callback_url", maximum: 8192), redirectURL: redirectURL)
    switch callback {
    case .foreign:
      throw Failure(
        .signInForeignCallback, "this is not the redirect_url of this app, or has no code",
        field: "/callback_url")
    case .code(let code):
      let verifiers = try stored.verifiers(for: providers)
      return try start(.pkce(code: code, verifiers: verifiers))
    case .refused(let error, let code, let description):
      // Only what follows a sign-in that is under way counts.
      _ = try stored.verifiers(for: providers)
      if pendingSignIn.pending != nil { return try decider.show(Decision(.wait, .signingIn)) }
      let facts = ResponseFacts(
        status: 400, code: code, description: description, isServerJSON: true)
      var cause = AuthClassification.signInCause(facts)
      // The auth service sends each refusal of its own with status 403 as `access_denied`, too.
      let isRefused = error != "access_denied" || cause == .userBanned
      let message: MessageCode =
        code == "flow_state_expired"
        ? .signInExpired : isRefused ? .signInFailed : .signInCancelled
      if message != .signInFailed { cause = nil }
      if message != .signInCancelled { log(message, cause, ResponseFacts(status: 0, code: code)) }
      return try returns() ? decider.decide(.navigate) : show(message, cause: cause)
    }
  }

  /// Whether a callback that proves nothing leads back to another screen than the sign-in.
  private func returns() throws(Failure) -> Bool {
    if hostView.shown.isSigningIn { return pendingSignIn.pending?.returns ?? false }
    return try sessions.row().owner != nil && hostView.shown.screen != .signIn
  }

  private func start(
    _ proof: PendingSignIn.Proof
  ) throws(Failure) {
    _ = try core.signInKeys()
    var (isCallback, returns) = (false, false)
    if case .pkce = proof {
      isCallback = true
      returns = try self.returns()
    }
    if !reachability.isOnline {
      return try returns
        ? decider.decide(.navigate) : show(.signInOffline)
    }
    hostView.noteVisitor()
    let pending = PendingSignIn(
      proof, over: try sessions.row(), returns: returns,
      deadlineMS: core.clock.now().monotonicMS + SignIn.exchangeLimitMS)
    if isCallback { pendingSignIn.add(pending) } else { pendingSignIn.begin(pending) }
    return try decider.show(Decision(.wait, .signingIn))
  }

  /// Show why the sign-in ended at once. What the prompt could open before it can open now.
  private func show(
    _ message: MessageCode, cause: SignInCause? = nil
  ) throws(Failure) {
    try decider.show(
      Decision(.signIn, message, cause: cause, canUnlock: hostView.shown.canUnlock))
  }

  // MARK: Cancelling

  /// End the sign-in that is under way. Its callback is refused later, and its tokens are revoked.
  func cancel(_ request: JSON) throws(Failure) -> JSON {
    _ = try Fields(request, known: [])
    let inBrowser = try stored.cancelAll()
    try decider.decide(.navigate)
    let isCancelled = inBrowser || pendingSignIn.pending != nil
    pendingSignIn.end()
    return ["cancelled": .bool(isCancelled)]
  }

  // MARK: The exchange

  func send(_ pending: PendingSignIn, _ now: Instant) throws(Failure) {
    try inFlight.send(
      try pending.request(core.configuration.backend), .signIn(pending),
      generation: try sessions.row().generation, now)
  }

  /// Give up a sign-in that the server did not answer in time. After a sleep, the callbacks behind it
  /// have run out, too.
  func expire(_ now: Instant) throws(Failure) {
    while let pending = pendingSignIn.pending, pending.deadlineMS <= now.monotonicMS {
      let isAnswered = pending.cause.map { !$0.isSilence } ?? false
      try fail(
        isAnswered ? .signInFailed : .signInUnreachable, cause: pending.cause)
    }
  }

  /// The network may have gone: a sign-in that waits for an answer ends.
  func followNetwork() throws(Failure) {
    guard pendingSignIn.pending != nil, !reachability.isOnline else { return }
    pendingSignIn.dropWaiting()
    try fail(.signInOffline)
    try decider.followChange()
  }

  /// Process the response to the exchange. It counts only if nobody signed in, unlocked or logged
  /// out since its start; `row` is the stored session.
  func finish(
    _ pending: PendingSignIn, _ row: SessionRow, _ response: HTTPResponse, _ now: Instant
  ) throws(Failure) {
    let outcome = AuthClassification.signIn(response.facts)
    guard pendingSignIn.pending === pending else {
      // The sign-in was given up or replaced by another one: revoke the issued session.
      if outcome == .success, let reply = try response.tokens() {
        try revocations.add(reply, now)
      }
      return
    }
    if outcome != .success, outcome != .transient, row.owner != nil, !pending.isValid(over: row) {
      // Another session was stored meanwhile, perhaps with the same callback.
      return showSession()
    }
    switch outcome {
    case .success:
      guard let reply = try response.tokens() else {
        let cause = response.hasLongToken ? SignInCause.tokenTooLong : .notSupabase
        return try fail(.signInFailed, cause: cause, to: response.facts)
      }
      try adopt(reply, pending, row, now)
    case .foreign:
      if !pending.tryNextVerifier() { try fail(.signInForeign, to: response.facts) }
    case .notFound where pending.mayBeUsedUp:
      try fail(.signInFailed, cause: .answerLost, to: response.facts)
    // The server looks the code up before it compares verifiers, so another one would not help.
    case .expired, .notFound: try fail(.signInExpired, to: response.facts)
    case .rejected:
      let facts = response.facts
      try fail(.signInFailed, cause: AuthClassification.signInCause(facts), to: facts)
    case .transient:
      if response.error == .offline || response.error == .dns {
        pendingSignIn.dropWaiting()
        return try fail(.signInOffline, cause: response.silence)
      }
      if response.mayHaveBeenTaken { pending.mayBeUsedUp = true }
      pending.cause = response.silence ?? AuthClassification.signInCause(response.facts)
      try tell(pending.cause)
      try pauses.backOff(.signIn, response, now)
    }
  }

  /// The sign-in is tried again. Who waits learns why: a wrong address looks like bad weather else.
  private func tell(_ cause: SignInCause?) throws(Failure) {
    guard let cause, hostView.shown.isSigningIn, hostView.shown.decision?.cause != cause else {
      return
    }
    try decider.show(Decision(.wait, .signingIn, cause: cause))
    log(.signingIn, cause, .none)
  }

  private func adopt(
    _ reply: TokenReply, _ pending: PendingSignIn, _ row: SessionRow, _ now: Instant
  ) throws(Failure) {
    do throws(Failure) {
      if pending.isValid(over: row),
        try sessionStart.adopt(reply, ifGeneration: row.generation)
      {
        return hostView.expectDecision()
      }
    } catch {
      // The same proof again would make another session at the server, or none: the sign-in ends.
      guard error.code.status == .keyStore else { throw error }
      try revocations.add(reply, now)
      pendingSignIn.dropWaiting()
      return try fail(.signInFailed, cause: .keyStore)
    }
    try revocations.add(reply, now)
    if row.owner == nil { return try fail(.signInFailed) }
    // Another session was stored meanwhile.
    showSession()
  }

  /// End the sign-in; the next decision is about the session that is stored.
  private func showSession() {
    pendingSignIn.end()
    hostView.expectDecision()
  }

  /// End the sign-in without a session, or go on with a callback that waits. If showing that fails, keep
  /// the sign-in pending and retry.
  private func fail(
    _ message: MessageCode, cause: SignInCause? = nil, to facts: ResponseFacts = .none
  ) throws(Failure) {
    log(message, cause, facts)
    let failure = SignInFailure(message: message, cause: cause)
    if pendingSignIn.advance(after: failure) { return }
    guard let told = pendingSignIn.outcome(failure) else { return showSession() }
    // The user has gone on with the open session meanwhile, and stays there.
    if sessions.session != nil, !hostView.shown.isSigningIn { return showSession() }
    try show(told.message, cause: told.cause)
    pendingSignIn.end()
  }

  /// For developers: why it failed, as far as the server or the host's client tells, and where.
  private func log(_ message: MessageCode, _ cause: SignInCause?, _ facts: ResponseFacts) {
    var why = cause?.rawValue ?? facts.plainCode ?? message.rawValue
    if let cause, cause.isSilence, message != .signingIn {
      why = message.rawValue + ", " + cause.rawValue
    }
    if facts.status != 0 { why += ", status \(facts.status)" }
    let what: StaticCString = message == .signingIn ? "is tried again" : "failed"
    Log.line(
      .warning, "the sign-in \(what.string): \(why), host \(core.configuration.backend.host)")
  }
}

extension HTTPResponse {
  /// Whether the auth service may have handled the request, and this is not what it said.
  fileprivate var mayHaveBeenTaken: Bool {
    switch error {
    case .offline, .dns, .refused, .tls: false
    case .timeout, .cancelled: true
    case nil: !AuthClassification.isOwn(facts)
    }
  }
}
