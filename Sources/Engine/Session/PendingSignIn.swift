import Base
import Policy
import Store
import Supabase
import Vault

/// A proof of identity that waits for its exchange. It is in memory only, because it is used once
/// and soon.
final class PendingSignIn {
  enum Proof {
    /// The code of a callback, and the verifiers of the sign-ins under way, the newest first. The code
    /// does not tell which of them it belongs to.
    case pkce(code: SecretBytes, verifiers: [SecretBytes])
    case idToken(provider: String, token: JSON, nonce: JSON)
    case password(email: JSON, password: JSON)
  }

  private(set) var proof: Proof
  /// When the sign-in is given up, by the monotonic clock.
  let deadlineMS: Int64
  /// A callback came while the host showed another screen than the sign-in: it may be anybody's, so a
  /// failure that proves nothing leads back there.
  let returns: Bool
  /// Why the last response was of no use, or none came; nil: it did not tell.
  var cause: SignInCause?
  /// A request with the present proof was sent, and no answer came that tells whether the server took it.
  var mayBeUsedUp = false
  /// The session that was stored when the sign-in began: its user, and when that user was last
  /// authenticated.
  private let owner: [UInt8]?
  private let authenticatedMS: Int64

  init(_ proof: Proof, over row: SessionRow, returns: Bool = false, deadlineMS: Int64) {
    self.proof = proof
    self.returns = returns
    self.deadlineMS = deadlineMS
    owner = row.owner
    authenticatedMS = row.authenticatedMS
  }

  /// Whether nobody signed in, unlocked or logged out since the sign-in began.
  func isValid(over row: SessionRow) -> Bool {
    row.owner == owner && row.authenticatedMS == authenticatedMS
  }

  /// Go on to the next verifier; returns false when there is none.
  func tryNextVerifier() -> Bool {
    guard case .pkce(let code, let verifiers) = proof, verifiers.count > 1 else { return false }
    proof = .pkce(code: code, verifiers: Array(verifiers.dropFirst()))
    return true
  }

  /// Whether both are callbacks with the same code.
  func repeats(_ other: PendingSignIn) -> Bool {
    guard case .pkce(let ours, _) = proof, case .pkce(let theirs, _) = other.proof else {
      return false
    }
    return ours.bytes.elementsEqual(theirs.bytes)
  }

  func request(_ backend: Backend) throws(Failure) -> Request {
    switch proof {
    case .pkce(let code, let verifiers):
      guard let verifier = verifiers.first else { throw .defect("a callback without a verifier") }
      return try AuthRequests.pkce(backend, code: code, verifier: verifier)
    case .idToken(let provider, let token, let nonce):
      return try AuthRequests.idToken(backend, provider: provider, idToken: token, nonce: nonce)
    case .password(let email, let password):
      return try AuthRequests.password(backend, email: email, password: password)
    }
  }
}

/// How a sign-in failed.
struct SignInFailure: Equatable {
  let message: MessageCode
  /// Why, if the server or the host's client told.
  var cause: SignInCause?
}

/// The pending sign-in, if any, and the callbacks that came meanwhile.
///
/// Any app can send a callback. So a callback does not replace a pending sign-in: it waits until that
/// one has failed, and a success ends it.
final class PendingSignInState {
  /// More callbacks than this do not wait: the oldest of them is dropped.
  private static var mostWaiting: Int { 4 }

  private var state = State()

  private struct State {
    var pending: PendingSignIn?
    var waiting: [PendingSignIn] = []
    /// Why an earlier one failed, for the user.
    var earlier: SignInFailure?
  }

  var pending: PendingSignIn? { state.pending }

  /// When the last of them is given up, by the monotonic clock.
  var deadlineMS: Int64? {
    pending.map { state.waiting.reduce($0.deadlineMS) { max($0, $1.deadlineMS) } }
  }

  /// The user chose this sign-in in the app: it replaces all others.
  func begin(_ pending: PendingSignIn) { state = State(pending: pending) }

  /// A callback came; it replaces none, and one that came before is not repeated.
  func add(_ callback: PendingSignIn) {
    guard let pending else { return begin(callback) }
    if pending.repeats(callback) || state.waiting.contains(where: { $0.repeats(callback) }) {
      return
    }
    if state.waiting.count == PendingSignInState.mostWaiting { state.waiting.removeFirst() }
    state.waiting.append(callback)
  }

  /// The pending one failed: go on to the next callback. Returns false when none waits.
  func advance(after failure: SignInFailure) -> Bool {
    guard let next = state.waiting.first else { return false }
    let rest = Array(state.waiting.dropFirst())
    state = State(pending: next, waiting: rest, earlier: outcome(failure))
    return true
  }

  /// What the user is told when the last one has failed; nil: what was shown before is shown again. The
  /// server compares the verifier before it refuses for another reason, so only its own refusal, as
  /// `signInFailed`, proves that the callback was this device's.
  func outcome(_ failure: SignInFailure) -> SignInFailure? {
    if failure.message == .signInFailed, failure.cause?.isOfAuthService ?? true { return failure }
    if pending?.returns == true { return state.earlier }
    return failure.message == .signInForeign ? state.earlier ?? failure : failure
  }

  /// No callback waits any longer.
  func dropWaiting() { state.waiting = [] }

  func end() { state = State() }
}
