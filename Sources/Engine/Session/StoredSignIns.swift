import Base
import Store
import Supabase
import Vault

/// What outlives the process while a sign-in is under way elsewhere: the verifiers of sign-ins in a
/// browser, and nonces. All of it is sealed. While the files' keys are lost, no other process can open it
/// (`Core.signInKeys`).
struct StoredSignIns {
  /// How long a sign-in may stay open in the browser. The server's own limit (300 s at least) is
  /// usually shorter. The server's expiry error has its own reason.
  private static var limitMS: Int64 { 900_000 }
  /// How many are kept. A code is tried with one verifier after the other, and the server counts tries.
  private static var most: Int { 8 }

  let core: Core

  private static func context(_ state: [UInt8]) -> SealContext {
    SealContext(table: "sign_in", row: state, column: "sealed")
  }

  // MARK: Verifiers

  func addVerifier(_ verifier: JSON, provider: String) throws(Failure) {
    try add(Random.bytes(32), ["verifier": verifier, "provider": .string(provider)])
  }

  /// The verifiers of the sign-ins under way with these providers, the newest first. Throws when there
  /// is none.
  func verifiers(for providers: [String]) throws(Failure) -> [SecretBytes] {
    let keys = try core.signInKeys()
    let now = try core.steady(core.clock.now())
    var result: [SecretBytes] = []
    var newestFailure: Failure?
    for (state, sealed, created) in try core.signIns.all() {
      if abs(now - created) > StoredSignIns.limitMS {
        newestFailure = newestFailure ?? expired("/callback_url")
      } else if sealed.isEmpty {
        newestFailure = newestFailure ?? cancelled("/callback_url")
      } else if let json = try keys.signIns.openJSON(sealed, StoredSignIns.context(state)) {
        guard let text = json["verifier"], let verifier = try SecretBytes.text(of: text),
          let provider = json.string("provider"), providers.contains(provider)
        else { continue }
        result.append(verifier)
      } else {
        // Of a process that had no key of the files.
        newestFailure = newestFailure ?? expired("/callback_url")
      }
    }
    guard result.isEmpty else { return result }
    throw newestFailure
      ?? Failure(
        .signInStateMismatch, "no sign-in in a browser is under way", field: "/callback_url")
  }

  // MARK: Nonces

  func addNonce(_ nonce: String, provider: String) throws(Failure) {
    try add(try tag(nonce), ["provider": .string(provider)])
  }

  /// The provider that a nonce was made for; it can be taken once.
  func takeNonce(_ nonce: String?) throws(Failure) -> String? {
    let keys = try core.signInKeys()
    let now = core.clock.now()
    let tag = try tag(nonce ?? "")
    return try core.database.transaction { () throws(Failure) in
      guard let found = try core.signIns.find(state: tag), try core.signIns.remove(state: tag)
      else {
        throw Failure(
          .signInStateMismatch, "no sign-in with this value is under way", field: "/nonce")
      }
      guard !found.sealed.isEmpty else { throw cancelled("/nonce") }
      guard abs(try core.steady(now) - found.created) <= StoredSignIns.limitMS else {
        throw expired("/nonce")
      }
      guard let json = try keys.signIns.openJSON(found.sealed, StoredSignIns.context(tag)) else {
        throw expired("/nonce")
      }
      return json.string("provider")
    }
  }

  private func tag(_ nonce: String) throws(Failure) -> [UInt8] {
    try core.signInKeys().lookup.tag("state", Array(nonce.utf8))
  }

  // MARK: Both

  private func add(_ state: [UInt8], _ value: JSON) throws(Failure) {
    let sealed = try core.signInKeys().signIns.seal(value, StoredSignIns.context(state))
    let now = core.clock.now()
    try core.database.transaction { () throws(Failure) in
      let begun = try core.steadyToStore(now)
      try core.signIns.removeOlder(than: begun - StoredSignIns.limitMS)
      try core.signIns.keepNewest(StoredSignIns.most - 1)
      try core.signIns.add(state: state, sealed: sealed, now: begun)
    }
  }

  /// Erase all of them; for a while it stays known that they were cancelled. Returns whether there were
  /// any.
  func cancelAll() throws(Failure) -> Bool {
    let now = core.clock.now()
    return try core.database.transaction { () throws(Failure) in
      try core.signIns.removeOlder(than: try core.steady(now) - StoredSignIns.limitMS)
      return try core.signIns.cancelAll() > 0
    }
  }

  private func cancelled(_ field: String) -> Failure {
    Failure(.signInCancelled, "this sign-in was cancelled", field: field)
  }

  private func expired(_ field: String) -> Failure {
    Failure(.signInExpired, "the sign-in took too long", field: field)
  }
}
