public import Base
import CSQLite

/// The reads of one call: over all its statements it sees one state of each file.
///
/// 1. The first statement of a call begins a read transaction, which the end of the call ends. What
///    the call takes from `ReadCache` counts as read: the version that it was read under is the one
///    that the transaction must have.
/// 2. A write transaction takes the place of the read transaction. If another connection has
///    committed since the call's first read, the call has decided on what is no longer true. It has
///    changed nothing yet, so it runs again (`mustRunAgain`).
/// 3. After a commit the call cannot run again. What it reads from then on is a new state, and each
///    further write transaction reads what it depends on.
///
/// A call that met others' commits again and again takes the write lock with its first read
/// (`isAlone`).
///
/// One object is shared by all files of a handle. Outside a call, each statement reads by itself.
public final class CallReads {
  /// Between `begin` and `end`.
  private(set) var isRunning = false
  /// A transaction of this call has committed changes, so the call must not run again.
  private(set) var hasCommitted = false
  /// Another connection committed between two reads of the call.
  private var isOutdated = false
  /// No other connection may commit before this call has.
  private(set) var isAlone = false
  /// Connections with something to end.
  private var connections: [Database] = []

  public init() {}

  /// The call has read two states and has changed nothing: run it again.
  public var mustRunAgain: Bool { isOutdated && !hasCommitted }

  /// A call begins. `mayRunAgain` false: it goes on with what it then finds, whatever it has read
  /// before.
  public func begin(mayRunAgain: Bool = true, isAlone: Bool = false) {
    end()
    isRunning = true
    hasCommitted = !mayRunAgain
    isOutdated = false
    self.isAlone = isAlone
  }

  /// The call is over; what is read from now on may be another state.
  public func end() {
    isRunning = false
    for connection in connections { connection.endReads() }
    connections.removeAll(keepingCapacity: true)
  }

  func noteCommit() { hasCommitted = true }

  func note(_ connection: Database) {
    if !connections.contains(where: { $0 === connection }) { connections.append(connection) }
  }

  /// The failure of a call that runs again. Where something on the way takes it for an ordinary
  /// failure, it is one that may pass.
  func outdated() -> Failure {
    isOutdated = true
    return Failure(.storageBusy, "another process has written meanwhile")
  }
}

extension Database {
  /// What the reads of the present call see.
  struct Reads {
    enum Transaction {
      case none
      case read
      /// A write transaction that the next `transaction` of the call uses.
      case write
    }

    var transaction = Transaction.none
    /// The file's version at the first read; nil: nothing was read, or the version is unknown.
    var version: FileVersion?
    /// The transaction has not read anything yet, so its state is not fixed.
    var isNew = false
  }

  /// Begin the read transaction, if there is none. The statement that runs next fixes the state.
  func beginReads(_ call: CallReads) throws(Failure) {
    guard reads.transaction == .none, sqlite3_get_autocommit(connection) != 0 else { return }
    call.note(self)
    if call.isAlone {
      // The lock keeps others from writing, so what they wrote before counts.
      try control("BEGIN IMMEDIATE")
      if reads.version == nil { reads.version = lastCommit }
      reads.transaction = .write
    } else {
      if reads.version == nil { reads.version = lastCommit }
      try control("BEGIN")
      reads.transaction = .read
    }
    reads.isNew = true
  }

  /// The first statement of the transaction was stepped, which fixed the state.
  func confirmReads(_ call: CallReads) throws(Failure) {
    reads.isNew = false
    guard reads.version != lastCommit else { return }
    guard call.hasCommitted else { throw call.outdated() }
    // A commit came between the look at the version and the read.
    reads.version = nil
  }

  /// A write transaction has begun: whether what the call has read before still holds.
  func compareReads(_ call: CallReads) throws(Failure) {
    let version = lastCommit
    if let read = reads.version, read != version, !call.hasCommitted { throw call.outdated() }
    reads.version = version
    call.note(self)
  }

  /// What the call has read in another file belongs to what it reads here: nobody has committed here since.
  /// Otherwise the call runs again.
  public func requireUnchanged() throws(Failure) {
    guard let call = runningCall, !call.hasCommitted, let version = reads.version else { return }
    if version != lastCommit { throw call.outdated() }
  }

  /// The version that the call reads; nil: unknown.
  func versionOfReads(_ call: CallReads) -> FileVersion? {
    if reads.transaction == .none, reads.version == nil {
      reads.version = lastCommit
      call.note(self)
    }
    return reads.version
  }

  /// End the transaction of the call's reads, but remember their version.
  func pauseReads() {
    guard reads.transaction != .none else { return }
    reads.transaction = .none
    reads.isNew = false
    // A failure may have ended it.
    guard sqlite3_get_autocommit(connection) == 0 else { return }
    do throws(Failure) { try control("COMMIT") } catch { abandon() }
  }

  /// Forget what the call has read.
  func endReads() {
    pauseReads()
    reads.version = nil
  }
}
