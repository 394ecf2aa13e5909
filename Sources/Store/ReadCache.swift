import Base

/// What was read while the file had one version: the session row, the pauses, single numbers, and
/// that the states of the items are known.
///
/// A read uses the cache if the file's version is still the same, and starts an empty one
/// otherwise. A writer of a cached row drops the cache. Other commits of this connection move the
/// cache to the new version if exactly one commit was made since, which is then its own.
final class ReadCache {
  var version: FileVersion
  var session: SessionRow?
  var pauses: [PauseTable.Entry]?
  /// All items of this owner have states of ours.
  var ownerOfKnownStates: [UInt8]?
  /// Numbers of the meta table, by the address of their name.
  private var numbers: [(name: UnsafePointer<CChar>, value: Int64?)] = []

  init(_ version: FileVersion) { self.version = version }

  func number(_ name: StaticCString, _ read: () throws(Failure) -> Int64?) throws(Failure) -> Int64?
  {
    for cached in numbers where cached.name == name.start { return cached.value }
    let value = try read()
    numbers.append((name.start, value))
    return value
  }
}

extension Database {
  /// Called when the write lock has been taken: drop what was read from another version.
  func dropOutdatedReadCache() {
    if let readCache, readCache.version != lastCommit { self.readCache = nil }
  }

  /// Called after a commit on this connection. Writers drop the cached rows that they change, and the
  /// schema has not changed. So what was known stays so, if nobody else has committed in between.
  func followOwnCommit() {
    guard let version = lastCommit else { return }
    func isNext(_ known: FileVersion?) -> Bool {
      known.map { version.commits == $0.commits &+ 1 } ?? false
    }
    if let readCache, isNext(readCache.version) { readCache.version = version }
    if isNext(knownVersion) { knownVersion = version }
    if isNext(checkedSchema?.version) { checkedSchema?.version = version }
  }

  /// Whether another connection, in any process, has committed since this was last asked, or since the file
  /// was opened. It may have, where SQLite does not tell.
  public func takeForeignCommits() -> Bool {
    guard let version else { return true }
    defer { knownVersion = version }
    return hasForeignCommits
  }

  /// This connection takes the place of another one, which knows what others had committed.
  public func follow(_ other: Database) {
    knownVersion = other.knownVersion
    isTight = other.isTight
  }

  /// The same, to be asked again.
  public var hasForeignCommits: Bool {
    guard let knownVersion, let version else { return false }
    return knownVersion != version
  }

  /// The cache for the file as it is now; nil where the version cannot be told.
  var currentReadCache: ReadCache? {
    guard openStatements == 0, let version else { return nil }
    if let readCache, readCache.version == version { return readCache }
    readCache = ReadCache(version)
    return readCache
  }
}
