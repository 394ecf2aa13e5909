public import Base
import CPlatform
import CSQLite

/// One SQLite file: write-ahead log, prepared statements, transactions.
///
/// Used by one thread at a time, which the handle's lock ensures.
public final class Database {
  public enum Durability: Sendable {
    /// A commit is on the disk when the call returns.
    case full
    /// A power cut may lose the last commits, but does not damage the file.
    case normal
  }

  public let path: String
  private(set) var connection: OpaquePointer?
  /// Prepared statements, found by the address of their text.
  private var statements: [(sql: UnsafePointer<CChar>, made: OpaquePointer)] = []
  var readCache: ReadCache?
  /// The last version of which it is known whether others have committed (`takeForeignCommits`).
  var knownVersion: FileVersion?
  /// The tables that the file has to have; nil: they are not compared.
  var schema: Schema?
  /// The schema's number and the file's version when the schema was last compared.
  var checkedSchema: (number: Int64, version: FileVersion?)?
  /// The row that is being read has a number that the library cannot have stored.
  var sawStrangeNumber = false
  /// Statements that are being stepped. While there are any, the connection reads the file as it
  /// was when the first of them began.
  private(set) var openStatements = 0
  /// The reads of the calls on the handle; nil: each statement reads by itself.
  public var call: CallReads?
  var runningCall: CallReads? { call.flatMap { $0.isRunning ? $0 : nil } }
  /// What the call has read.
  var reads = Reads()
  private var depth = 0
  private var changesBefore: Int32 = 0
  /// Within `transaction`.
  var isInTransaction: Bool { depth > 0 }
  private var needsRollback = false
  private var hasTriggers = false
  /// Names the file, also after it was renamed.
  public let fileID: UInt64
  /// SQLite has reported that the file is damaged.
  public private(set) var isDamaged = false
  /// The disk has failed under this connection. SQLite keeps the state that it opened then, for
  /// example a read-only log, so a new connection may work where this one fails.
  public private(set) var isSuspect = false
  public var isOpen: Bool { connection != nil }
  /// How many rows this connection has changed; may wrap around.
  public var changes: Int32 { connection.map { sqlite3_total_changes($0) } ?? 0 }
  /// Closing the last connection leaves the log as it is.
  public var keepsLog = false {
    didSet { if isOpen { sqlite3_keep_log(connection, keepsLog ? 1 : 0) } }
  }

  /// The disk was full, and the reserve is gone: transactions must be small.
  public var isTight = false
  /// The log could not be copied into the file, because the disk is full.
  public internal(set) var isLogStuck = false

  /// Open or create (mode 0600). The path contains no links. The file is not trusted: somebody else
  /// may have written it (`csqlite_distrust`; `Schema` compares the tables). Throws
  /// `storage.*`; never deletes or recreates a file.
  public init(path: String, _ durability: Durability) throws(Failure) {
    // Earlier versions run no TEMP trigger where the file's own triggers are switched off.
    guard sqlite3_libversion_number() >= 3_035_000 else {
      throw Failure(.storageFailed, "SQLite 3.35 or later is needed")
    }
    try Database.refuseFolders(path)
    var file: UInt64 = 0
    let size = platform_size_and_id(path, &file)
    try Database.checkEmpty(path, size: size)
    // A new file's directory entry must be durable before rows are stored in the file.
    if size <= 0 {
      let problem = platform_create(path)
      guard problem == 0 || Int(problem) == PLATFORM_EXISTS else {
        throw Database.failure(ofSystem: Int(problem), "a data file could not be made")
      }
      file = platform_file_id(path)
    }
    self.path = path
    fileID = file
    var opened: OpaquePointer?
    let flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_NOFOLLOW
    var result = path.withCString { sqlite3_open_v2($0, &opened, flags, nil) }
    if result == SQLITE_OK { result = csqlite_distrust(opened) }
    guard let opened, result == SQLITE_OK else {
      let failure = Database.failure(ofOpening: opened, result)
      sqlite3_close_v2(opened)
      guard opened != nil else { throw Failure(.memoryExhausted, "no memory for a database") }
      throw failure
    }
    connection = opened
    sqlite3_extended_result_codes(connection, 1)
    do throws(Failure) {
      // SQLite opens a file without write permission as read-only, and every write fails later.
      guard isWritable else { throw Database.failure(SQLITE_READONLY, "") }
      try configure(durability)
    } catch {
      // `deinit` closes too, so `connection` must be nil then.
      close()
      throw error
    }
  }

  /// SQLite does not tell which of its files it cannot open.
  static func refuseFolders(_ path: String) throws(Failure) {
    for suffix in ["", "-wal", "-shm"] where platform_is_folder(path + suffix) {
      throw failure(
        ofSystem: PLATFORM_IS_FOLDER, "a folder has the name of a data file: remove it",
        fileName(path + suffix))
    }
  }

  public static func fileName(_ path: String) -> String {
    let start = path.utf8.lastIndex(of: UInt8(ascii: "/")).map { path.utf8.index(after: $0) }
    return String(path[(start ?? path.startIndex)...])
  }

  /// SQLite takes a file of at most one byte for a new one, and deletes its log. The library leaves no
  /// file of one byte.
  private static func checkEmpty(_ path: String, size: Int64) throws(Failure) {
    guard size <= 1, size == 1 || platform_size(path + "-wal") > 0 else { return }
    // A file whose size is unknown may not be empty.
    throw Failure(
      size < -1 ? .storageFailed : .storageDamaged, "the data file is empty, and its log is not")
  }

  var isWritable: Bool { sqlite3_db_readonly(connection, "main") != 1 }

  deinit { close() }

  /// Close the file; every later call fails.
  public func close() {
    for statement in statements { sqlite3_finalize(statement.made) }
    statements = []
    guard isOpen else { return }
    reads = Reads()
    sqlite3_close_v2(connection)
    connection = nil
  }

  /// Close a connection that a fork has copied into this process. It changes no file, and the parent keeps its
  /// locks. As long as the copy is open, SQLite takes the parent's locks for this process's own: a new
  /// connection takes none then, and another process deletes the log under it.
  public func closeCopy() {
    keepsLog = true
    close()
  }

  private func configure(_ durability: Durability) throws(Failure) {
    var tries: Int32 = 0
    var mayBeDamaged = false
    while true {
      // Another process may be recovering the log. SQLite's busy handler does not cover that, so it is
      // installed later.
      let result = sqlite3_exec(connection, "PRAGMA journal_mode=WAL", nil, nil, nil)
      if result == SQLITE_OK { break }
      // Where the disk fails while SQLite reads the schema, SQLite calls the file damaged, too.
      if result & 0xFF == SQLITE_CORRUPT, !mayBeDamaged {
        mayBeDamaged = true
        continue
      }
      guard result & 0xFF == SQLITE_BUSY, platform_patience_wait(tries) else {
        // The statement is correct: SQLite does not know the format that the header names.
        throw Database.failure(
          ofOpening: connection, result == SQLITE_ERROR ? SQLITE_CORRUPT : result)
      }
      tries += 1
    }
    // Not SQLite's own limit, which is one for each lock: a call may meet several.
    sqlite3_busy_handler(connection, { _, tries in platform_patience_wait(tries) ? 1 : 0 }, nil)
    switch durability {
    case .full: try execute("PRAGMA synchronous=FULL")
    case .normal: try execute("PRAGMA synchronous=NORMAL")
    }
    if platform_syncs_fully() {
      try execute("PRAGMA fullfsync=ON; PRAGMA checkpoint_fullfsync=ON")
    }
    checkpointAfterCommits()
    try execute(
      """
      PRAGMA secure_delete=ON; PRAGMA temp_store=MEMORY; PRAGMA cache_size=-1024;
      PRAGMA cell_size_check=ON
      """
    )
  }

  /// Several statements without arguments.
  public func execute(_ sql: String) throws(Failure) {
    if depth == 0 { pauseReads() }
    try require(sql.withCString { result(of: $0) })
  }

  /// The connection's triggers are made with its first write, because that takes as long as half of an
  /// open. A rollback undoes it.
  private func makeTriggers() throws(Failure) {
    guard !hasTriggers, let schema else { return }
    try require(result(of: schema.triggers.start))
    hasTriggers = true
  }

  private func result(of sql: UnsafePointer<CChar>) -> Int32 {
    sqlite3_exec(connection, sql, nil, nil, nil)
  }

  private func require(_ result: Int32) throws(Failure) {
    guard result == SQLITE_OK else {
      throw failure(result == SQLITE_ERROR ? SQLITE_CORRUPT : result)
    }
  }

  @inline(never)
  private func prepared(_ sql: StaticCString) throws(Failure) -> OpaquePointer {
    guard let connection else { throw Failure(.storageFailed, "the data file is closed") }
    for at in statements.indices where statements[at].sql == sql.start {
      let made = statements[at].made
      // Those that are used often move to the front.
      if at > 0 { statements.swapAt(at, at / 2) }
      return made
    }
    var made: OpaquePointer?
    let result = sqlite3_prepare_v3(
      connection, sql.start, -1, UInt32(SQLITE_PREPARE_PERSISTENT), &made, nil)
    // The statements are correct for the schema, so a syntax or name error means that the file's
    // schema is not the one of its version.
    guard result == SQLITE_OK, let made else {
      throw failure(result == SQLITE_ERROR ? SQLITE_CORRUPT : result)
    }
    statements.append((sql.start, made))
    return made
  }

  @inline(never)
  private func bind(_ values: [Value], to statement: OpaquePointer) throws(Failure) {
    for (index, value) in values.enumerated() {
      let at = Int32(index + 1)
      let transient = unsafeBitCast(-1, to: sqlite3_destructor_type.self)
      let result: Int32
      switch value {
      case .null: result = sqlite3_bind_null(statement, at)
      case .int(let number): result = sqlite3_bind_int64(statement, at, number)
      case .blob(let bytes) where bytes.isEmpty: result = sqlite3_bind_zeroblob(statement, at, 0)
      case .blob(let bytes):
        result = sqlite3_bind_blob(statement, at, bytes, Int32(bytes.count), transient)
      case .text(let text):
        result = text.withCString { sqlite3_bind_text(statement, at, $0, -1, transient) }
      case .literal(let text): result = sqlite3_bind_text(statement, at, text.start, -1, nil)
      }
      guard result == SQLITE_OK else { throw failure(result) }
    }
  }

  /// Run a statement, with `body` for each row; it returns false to stop early.
  @inline(never)
  public func each(
    _ sql: StaticCString, _ values: [Value], _ body: (Row) throws(Failure) -> Bool
  ) throws(Failure) {
    if needsRollback { try finishRollback() }
    let statement = try prepared(sql)
    if depth == 0 {
      let isWrite = sqlite3_stmt_readonly(statement) == 0
      if let call = runningCall {
        if isWrite {
          return try transaction { () throws(Failure) in try each(sql, values, body) }
        }
        try beginReads(call)
      } else if isWrite {
        try makeTriggers()
      }
    }
    try step(statement, sql, values, body)
  }

  private func step(
    _ statement: OpaquePointer, _ sql: StaticCString, _ values: [Value],
    _ body: (Row) throws(Failure) -> Bool
  ) throws(Failure) {
    openStatements += 1
    defer {
      openStatements -= 1
      sqlite3_reset(statement)
      sqlite3_clear_bindings(statement)
    }
    try bind(values, to: statement)
    while true {
      let result = sqlite3_step(statement)
      if reads.isNew, let call = runningCall, result == SQLITE_DONE || result == SQLITE_ROW {
        try confirmReads(call)
      }
      if result == SQLITE_DONE { return }
      guard result == SQLITE_ROW else {
        throw failure(isStrange(result) && !fitsSchema(sql) ? SQLITE_CORRUPT : result)
      }
      let goesOn = try body(Row(statement: statement, database: self))
      if sawStrangeNumber {
        sawStrangeNumber = false
        throw damage("a number of a data file is damaged")
      }
      if !goesOn { return }
    }
  }

  /// Run a statement; returns the number of changed rows.
  @discardableResult
  @inline(never)
  public func run(_ sql: StaticCString, _ values: Value...) throws(Failure) -> Int {
    try each(sql, values) { (_) throws(Failure) -> Bool in true }
    return Int(sqlite3_changes(connection))
  }

  /// The first row, read by `body`.
  public func first<Result>(
    _ sql: StaticCString, _ values: Value..., read body: (Row) throws(Failure) -> Result
  ) throws(Failure) -> Result? {
    var found: Result?
    try each(sql, values) { (row) throws(Failure) -> Bool in
      found = try body(row)
      return false
    }
    return found
  }

  /// Whether there is any row.
  public func exists(_ sql: StaticCString, _ values: Value...) throws(Failure) -> Bool {
    var found = false
    try each(sql, values) { (_) throws(Failure) -> Bool in
      found = true
      return false
    }
    return found
  }

  /// All rows, read by `body`.
  public func all<Result>(
    _ sql: StaticCString, _ values: Value..., read body: (Row) throws(Failure) -> Result
  ) throws(Failure) -> [Result] {
    var found: [Result] = []
    try each(sql, values) { (row) throws(Failure) -> Bool in
      found.append(try body(row))
      return true
    }
    return found
  }

  /// Whether the path still names this file. False when another process has set the file aside.
  public var isCurrent: Bool { platform_file_id(path) == fileID }

  /// Copy the log into the file and truncate it, so that deleted data is gone from the disk. A
  /// reader in another process can prevent that; a later checkpoint then completes it.
  public func flush() throws(Failure) {
    let isUnchanged = reads.version == lastCommit
    try execute("PRAGMA wal_checkpoint(TRUNCATE)")
    // The log begins anew, which changes the version and nothing that was read.
    if isUnchanged { reads.version = lastCommit }
  }

  /// Commit all of `body`'s changes or none. A nested call joins the outermost transaction.
  public func transaction<Result>(
    _ body: () throws(Failure) -> Result
  ) throws(Failure) -> Result {
    try begin()
    do throws(Failure) {
      let result = try body()
      try commit()
      return result
    } catch {
      rollBack()
      throw error
    }
  }

  /// Run a statement that begins or ends a transaction.
  func control(_ sql: StaticCString) throws(Failure) {
    if needsRollback { try finishRollback() }
    try step(try prepared(sql), sql, []) { (_) throws(Failure) -> Bool in true }
  }

  @inline(never)
  private func begin() throws(Failure) {
    if depth == 0 {
      if isLogStuck { reuseLog() }
      if reads.transaction == .write {
        reads.transaction = .none
        reads.isNew = false
      } else {
        pauseReads()
        try control("BEGIN IMMEDIATE")
      }
      try requireCurrent()
      do throws(Failure) { try makeTriggers() } catch {
        abandon()
        throw error
      }
      changesBefore = sqlite3_total_changes(connection)
      dropOutdatedReadCache()
    }
    depth += 1
    guard depth == 1, let call = runningCall else { return }
    do throws(Failure) { try compareReads(call) } catch {
      rollBack()
      throw error
    }
  }

  /// The write lock is held, so nobody else can set the file aside now (`holdingWriteLock`). If somebody
  /// has before, a commit would be lost: the call runs again, on the file that has the name now.
  private func requireCurrent() throws(Failure) {
    guard !isCurrent else { return }
    isSuspect = true
    abandon()
    throw runningCall?.outdated() ?? Failure(.storageBusy, "the file was set aside meanwhile")
  }

  @inline(never)
  private func commit() throws(Failure) {
    try JSON.checkMemory()
    if depth == 1 { try control("COMMIT") }
    depth -= 1
    // A transaction without changes commits nothing, so a new version is another connection's.
    if depth == 0, sqlite3_total_changes(connection) != changesBefore {
      reads.version = nil
      call?.noteCommit()
      followOwnCommit()
    }
  }

  /// Called also after a failed COMMIT: with a full disk, the transaction stays open.
  @inline(never)
  private func rollBack() {
    depth -= 1
    guard depth == 0 else { return }
    // Also where SQLite has rolled back by itself.
    hasTriggers = false
    if sqlite3_get_autocommit(connection) == 0 { abandon() }
  }

  /// Roll back; `needsRollback`: that must be tried again.
  func abandon() {
    hasTriggers = false
    do throws(Failure) { try control("ROLLBACK") } catch {}
    needsRollback = sqlite3_get_autocommit(connection) == 0
  }

  /// Roll back a transaction whose ROLLBACK failed for lack of memory, before the next statement
  /// can become a part of it. `depth` is 0 here, because a transaction begins with a statement.
  private func finishRollback() throws(Failure) {
    let result = sqlite3_exec(connection, "ROLLBACK", nil, nil, nil)
    guard sqlite3_get_autocommit(connection) != 0 else { throw failure(result) }
    needsRollback = false
  }

  // MARK: Failures

  /// The file opens and is not what this library writes.
  public func damage(_ message: String) -> Failure {
    isDamaged = true
    return Failure(.storageDamaged, message)
  }

  func failure(_ result: Int32) -> Failure {
    let isRefused = csqlite_read_was_refused(connection, result) != 0
    let known = isRefused ? SQLITE_IOERR : isFull(result) ? SQLITE_FULL : result
    let failure = Database.failure(known, "a data file could not be read or written")
    switch failure.code {
    case .storageDamaged: isDamaged = true
    case .storageFailed, .storageReadOnly, .storageBusy: isSuspect = true
    default: break
    }
    return failure
  }

  /// A file that could not be opened: the system's number says whether descriptors are missing.
  static func failure(ofOpening connection: OpaquePointer?, _ result: Int32) -> Failure {
    let problem = Int(sqlite3_system_errno(connection))
    let message = "a data file could not be opened"
    return isOutOfFiles(problem)
      ? failure(ofSystem: problem, message)
      : failure(isFull(result, problem) ? SQLITE_FULL : result, message)
  }

  /// Whether the last call of SQLite, which returned this, found the disk full.
  func isFull(_ result: Int32) -> Bool {
    Database.isFull(result, Int(sqlite3_system_errno(connection)))
      || Database.isFull(result, Int(csqlite_log_errno(connection, result)))
  }

  /// SQLite takes one number of the system, of a write, for a full disk. A used-up quota, a file that may
  /// not grow, and what only the sync tells are the same here.
  private static func isFull(_ result: Int32, _ problem: Int) -> Bool {
    let kind = result & 0xFF
    return kind == SQLITE_FULL
      || (kind == SQLITE_IOERR || kind == SQLITE_CANTOPEN) && platform_is_full(Int32(problem))
  }

  /// The process or the system has no descriptor left.
  public static func isOutOfFiles(_ problem: Int) -> Bool {
    problem == PLATFORM_PROCESS_FILES || problem == PLATFORM_SYSTEM_FILES
  }

  static func failure(_ result: Int32, _ message: String) -> Failure {
    let detail: JSON = ["sqlite": .int(Int64(result))]
    switch result & 0xFF {
    case SQLITE_FULL: return Failure(.storageFull, "the disk is full", detail: detail)
    case SQLITE_READONLY, SQLITE_PERM:
      return Failure(.storageReadOnly, "the data folder cannot be written", detail: detail)
    case SQLITE_BUSY, SQLITE_LOCKED:
      return Failure(.storageBusy, "another process is writing", detail: detail)
    // No value of the library is too large for SQLite.
    case SQLITE_CORRUPT, SQLITE_NOTADB, SQLITE_TOOBIG:
      return Failure(.storageDamaged, "a data file is damaged", detail: detail)
    case SQLITE_NOMEM: return Failure(.memoryExhausted, "no memory for a statement")
    default: return Failure(.storageFailed, message, detail: detail)
    }
  }

  /// `file`: the name of the file that had the problem.
  public static func failure(
    ofSystem problem: Int, _ message: String, _ file: String? = nil
  ) -> Failure {
    if let reason = PrivateFile.Reason(problem) {
      let name = file ?? "a file of the data folder"
      let message: String = name + " " + reason.advice.string
      return Failure(
        .storageNotPrivate, message,
        detail: ["file": JSON(file), "reason": JSON(reason.word)])
    }
    let detail: JSON =
      file.map { ["errno": .int(problem), "file": .string($0)] } ?? ["errno": .int(problem)]
    if platform_is_full(Int32(problem)) {
      return Failure(.storageFull, "the disk is full", detail: detail)
    }
    switch problem {
    case PLATFORM_BUSY:
      return Failure(.storageBusy, "another process holds the data folder", detail: detail)
    case PLATFORM_READ_ONLY, PLATFORM_NO_ACCESS:
      return Failure(.storageReadOnly, "the data folder cannot be written", detail: detail)
    default: return Failure(.storageFailed, message, detail: detail)
    }
  }
}
