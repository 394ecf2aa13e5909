import Base
import Policy
import Store
import Supabase
import Vault

/// The session row, and its readable mirror in memory.
///
/// A change of what identifies the session (user, tokens, wraps, choice) raises the row's
/// generation. Times, counters, the intent of a refresh and the list of memberships change without
/// that. A write that follows a response compares the generation first, so a late response can
/// neither revive a session nor touch the next one.
///
/// Other parts keep values in memory for a session. `reset` drops them, by scope.
struct SessionStore: Rules {
  /// What ends.
  enum Scope {
    /// The mirror is absent or has another generation than the row, which is read again.
    case mirror
    /// The row has another user than the mirror, or none.
    case user
    /// The user chose another organisation.
    case organisation
    /// The session was locked or has ended, or its wraps were removed.
    case session
    /// The files were set aside because their device key is gone.
    case keylessFiles
    /// The main file was damaged and set aside.
    case damagedFile
    /// Another process set the main file aside, or the handle closes.
    case file
  }

  struct Mirror {
    /// The readable session, or nil. It mirrors the row of its generation.
    fileprivate(set) var session: OpenSession?
    /// The user whose state is in memory, also while the session is closed.
    fileprivate var owner: [UInt8]?
    /// The generation of a row that did not open.
    fileprivate var corruptGeneration: Int64?
    /// `ready` unless the key store gave no answer, or had no key, when the mirror was last brought up to date.
    fileprivate(set) var keyState = Situation.Keys.ready
  }

  let parts: Parts
  var keys: SessionKeys { parts.sessionKeys }
  var session: OpenSession? { parts.mirror.session }
  var keyState: Situation.Keys { parts.mirror.keyState }
  /// The generation of the row that was last brought into the mirror, and is judged. 0: none was.
  var judgedGeneration: Int64 { session?.generation ?? parts.mirror.corruptGeneration ?? 0 }

  // MARK: The row

  func row() throws(Failure) -> SessionRow { try core.sessionTable.read() }

  /// Change the row and raise its generation in one step. Changes nothing and returns false when the
  /// generation is no longer `expected`.
  func update(
    ifGeneration expected: Int64, _ edit: (SessionRow) throws(Failure) -> Void
  ) throws(Failure) -> Bool {
    try core.database.transaction { () throws(Failure) in
      let row = try row()
      guard row.generation == expected else { return false }
      row.generation += 1
      row.seenWallMS = core.clock.now().wallMS
      try edit(row)
      return try core.sessionTable.write(row, expecting: expected)
    }
  }

  /// Change what does not identify the session, such as times; the generation stays. Changes nothing
  /// when `expected` is given and is no longer the generation.
  func patch(
    ifGeneration expected: Int64? = nil, _ edit: (SessionRow) throws(Failure) -> Void
  ) throws(Failure) {
    try core.database.transaction { () throws(Failure) in
      let row = try row()
      if let expected, row.generation != expected { return }
      try edit(row)
      _ = try core.sessionTable.write(row, expecting: row.generation)
    }
  }

  /// Store the choice and raise the generation in one step: late responses for the previous
  /// organisation change nothing. Returns false when another process changed the session meanwhile.
  func choose(_ id: UUID, _ session: OpenSession) throws(Failure) -> Bool {
    let sealed = try session.vault.seal(
      ["org_id": .uuid(id)], SessionKeys.context("choice", session.owner))
    if core.configuration.limits.eraseOnSwitch, let left = session.choice {
      try cache.erase([CacheNames.org(left, session, try core.keys())])
    }
    let isStored = try update(ifGeneration: session.generation) {
      (row) throws(Failure) in row.choice = sealed
    }
    guard isStored else { return false }
    reset(.organisation)
    _ = try reload(try row())
    return true
  }

  /// After a sign-in over the open session failed, or its user is back and it could not be wrapped. Tried again by every
  /// call until it succeeds or the session is closed.
  func keepUsable() throws(Failure) {
    if keys.isInDoubt { return try wrapAgain() }
    // `endAbsence` has found that no lock is due.
    if keys.isOnlyHeld, hostView.isOnScreen, try row().backgroundWallMS == nil { try wrapAgain() }
  }

  /// Wrap the open session by a key that the key store has. The vault is the same, so other processes need not open
  /// it again.
  func wrapAgain() throws(Failure) {
    var wrap: [UInt8]?
    try patch { (row) throws(Failure) in
      wrap = try keys.wrapAgain(row)
      if let wrap { row.wrapSession = wrap }
    }
    keys.settled(wrap)
    if !keys.isHolding { reset(.mirror) }
  }

  // MARK: The mirror

  /// Before a call: another handle may have written, and may have locked or owe an erasure.
  func followNeighbours() {
    guard core.database.takeForeignCommits() else { return }
    core.neighbours.urgesLook = true
    keys.erasures.lookForOwed()
    keys.doubtVault()
  }

  /// Close the session in memory if another handle locked it, whatever the files say now.
  func confirmVault() throws(Failure) {
    if try !keys.confirm() { reset(.mirror) }
  }

  /// Bring the mirror up to date with `row`; returns the state of the row. If the key store does not
  /// answer or has no key (`keyState`), the row counts as sealed, and the next call asks the store again.
  func reload(_ row: SessionRow) throws(Failure) -> Situation.Record {
    parts.mirror.keyState = .ready
    if let session, session.mirrors(row) { return .open }
    if let owner = parts.mirror.owner, owner != row.owner { reset(.user) }
    reset(.mirror)
    parts.mirror.owner = row.owner
    if row.wrapSession == nil { keys.forgetVault() }
    if let closed = closedRecord(row) { return closed }
    switch try keys.open(row) {
    case .locked: return .sealed
    case .missing:
      parts.mirror.keyState = core.keyRing.miss(.session)
      return .sealed
    case .refused(let refusal):
      parts.mirror.keyState = refusal == .locked ? .locked : .failed
      core.keyRing.forget()
      return .sealed
    case .open(let vault):
      guard let session = try open(row, with: vault) else {
        parts.mirror.corruptGeneration = row.generation
        return .corrupt
      }
      parts.mirror.session = session
      // Another process signed the same user in again: the server has not answered for this session.
      if session.memberships == nil, check.isConfirmed { check.reset() }
      return .open
    }
  }

  /// The state of the row, without changing the mirror; nil if only `reload` can tell.
  func record(_ row: SessionRow) -> Situation.Record? {
    if let session { return session.mirrors(row) ? .open : nil }
    return parts.mirror.corruptGeneration == row.generation ? .corrupt : closedRecord(row)
  }

  /// The state of a row that has nothing to open; nil if it may open.
  private func closedRecord(_ row: SessionRow) -> Situation.Record? {
    guard row.owner != nil else { return row.ended == nil ? .missing : .ended }
    return keys.isLocked(row) || core.keyRing.keys == nil ? .sealed : nil
  }

  /// Returns nil when a part does not open.
  private func open(_ row: SessionRow, with vault: Key) throws(Failure) -> OpenSession? {
    guard let keys = core.keyRing.keys, let owner = row.owner, let sealed = row.tokens,
      let json = try vault.openJSON(sealed, SessionKeys.context("tokens", owner)),
      let tokens = try Tokens(json), let sealedKey = row.cacheKey,
      let cacheKey = try vault.unwrap(sealedKey, SessionKeys.context("cache_key", owner))
    else { return nil }
    // An app without organisations leaves what an earlier version stored as it is.
    let hasOrganisations = core.configuration.backend.hasOrganisations
    var choice: UUID?
    if hasOrganisations, let sealed = row.choice {
      guard let json = try vault.openJSON(sealed, SessionKeys.context("choice", owner)),
        let id = json.uuid("org_id")
      else { return nil }
      choice = id
    }
    var memberships: [Membership]?
    if hasOrganisations, let sealed = row.memberships {
      guard let json = try vault.openJSON(sealed, SessionKeys.context("memberships", owner)),
        let list = json["memberships"]
      else { return nil }
      var read: [Membership] = []
      for element in list.elements {
        guard let membership = Membership(sealed: element) else { return nil }
        read.append(membership)
      }
      memberships = read
    }
    return OpenSession(
      row: row, owner: owner, tokens: tokens, vault: vault, cacheKey: cacheKey,
      queueKey: try keys.queues.derived(for: owner), choice: choice, memberships: memberships)
  }

  // MARK: The end of what is in memory

  /// Drop from memory what ends with `scope`.
  func reset(_ scope: Scope) {
    switch scope {
    case .mirror:
      dropMirror()
      tokens.forgetRefusal()
    case .user:
      pulls.forgetAll()
      withdrawContacts()
      problems.forgetAll()
      // A host that waits keeps its deadline: `reset` keeps the start of the check.
      check.reset()
    case .organisation:
      cache.dropIndex()
      pulls.restart()
      withdrawContacts()
    case .session:
      dropMirror()
      keys.forgetVault()
      tokens.forgetEnd()
      withdrawContacts()
      check.reset()
    case .keylessFiles:
      reset(.session)
      cache.close()
      // The sign-in that has led here goes on.
      inFlight.keepSignIn()
      notices.forgetGiven()
      core.keyRing.forget()
    case .damagedFile:
      dropMirror()
      inFlight.removeAll()
      uploads.readBacks = []
      notices.forgetGiven()
      core.keyRing.forget()
    case .file:
      reset(.damagedFile)
      keys.forgetVault()
    }
  }

  /// The user may no longer see contacts that were asked for: each request is answered without one.
  private func withdrawContacts() {
    live.end(.contactWithdrawn)
    news.withdrawContacts(core.message(.contactWithdrawn))
  }

  private func dropMirror() {
    parts.mirror.session = nil
    parts.mirror.corruptGeneration = nil
    cache.dropIndex()
  }
}
