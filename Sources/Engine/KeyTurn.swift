import Base
import Policy
import Store

/// The right to change keys in a key store that answers later.
///
/// A key store that answers at once is changed under the file's write lock. That lock cannot wait for a
/// host, so a lease takes its place: of several handles and processes one makes, saves or erases keys,
/// and the others wait. Otherwise two of them could save different keys under one name, and the key of
/// the stored session would be gone.
final class KeyTurn {
  enum Answer {
    /// Since now: others may have changed keys before.
    case taken
    case held
    /// Another handle has it.
    case refused
  }

  /// As long as the host may take for an operation, and its check.
  private static var leaseMS: Int64 { 3 * RequestedKeys.timeoutMS }
  private static var name: String { "keys" }

  /// When it was last taken, by the monotonic clock.
  private var takenMS: Int64?
  /// The file may have the lease, also one that was taken within a transaction.
  private var mayHold = false
  /// It was refused: try again soon.
  private(set) var isAwaited = false {
    didSet { if isAwaited != oldValue { revision.advance() } }
  }
  private let revision: Revision

  init(_ revision: Revision) { self.revision = revision }

  func take(_ core: Core) throws(Failure) -> Answer {
    let now = core.clock.now()
    if let takenMS, now.monotonicMS - takenMS < KeyTurn.leaseMS / 2 { return .held }
    let answer = try core.database.transaction { () throws(Failure) -> Answer in
      let steady = try core.steadyToStore(now)
      if let other = try core.leases.holder(
        KeyTurn.name, notBy: core.holder.bytes, now: steady),
        Holder.isAlive(other, bootID: now.bootID)
      {
        return .refused
      }
      try core.leases.take(
        KeyTurn.name, holder: core.holder.bytes, until: steady + KeyTurn.leaseMS)
      return takenMS == nil ? .taken : .held
    }
    if case .refused = answer {
      isAwaited = true
      takenMS = nil
      return .refused
    }
    isAwaited = false
    mayHold = true
    // What a transaction has just stored may be rolled back.
    if core.database.version != nil { takenMS = now.monotonicMS }
    return answer
  }

  /// The lease is in a file that is no longer used.
  func forget() {
    takenMS = nil
    mayHold = false
  }

  /// Nothing is changed any more: let others go on.
  func giveBack(_ core: Core) throws(Failure) {
    isAwaited = false
    guard mayHold else { return }
    try core.leases.release(KeyTurn.name, holder: core.holder.bytes)
    takenMS = nil
    mayHold = false
  }
}

extension Core {
  /// The state of the device key; loads or makes it at first use.
  func keyState() throws(Failure) -> Situation.Keys {
    try keyRing.state(for: database) { () throws(Failure) in try takeKeyTurn() }
  }

  private func takeKeyTurn() throws(Failure) -> KeyTurn.Answer {
    guard keyRing.requested != nil else { return .held }
    return try keyTurn.take(self)
  }

  /// Throws `keystore.pending` while another handle changes keys.
  func requireKeyTurn() throws(Failure) {
    if case .refused = try takeKeyTurn() { throw Core.keyPending }
  }

  /// Let others change keys, unless this handle still does.
  func endKeyTurn() throws(Failure) {
    guard let requested = keyRing.requested, !requested.isChanging, !keyRing.isMaking else {
      return
    }
    try keyTurn.giveBack(self)
  }

  /// What a step fails with whose key the host has not given yet.
  static var keyPending: Failure {
    Failure(.keyStorePending, "the host was asked for a key and has not answered yet")
  }
}
