import Base
import Store
import TestSupport
import Testing

import class Foundation.FileManager

@testable import Engine

@Suite struct CacheFileTests {
  private func make(_ names: String..., in rig: Rig) {
    for name in names {
      let path = rig.folder.path + "/" + name
      let isMade = FileManager.default.createFile(atPath: path, contents: nil)
      expect(isMade)
    }
  }

  @Test func aCacheThatCannotBeOpenedIsLeftWhereItIs() throws {
    // Given something at its place that is no file: only the disk is at fault
    let rig = try Rig.atHome()
    rig.cache.close()
    let path = DataFolder.cachePath(in: rig.folder.path)
    for suffix in ["", "-wal", "-shm"] {
      try? FileManager.default.removeItem(atPath: path + suffix)
    }
    try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: false)
    // When
    let code = try refusal { try rig.cache.open() }
    // Then
    expect(code, equals: .storageFailed)
    expect(rig.folder.names.filter { $0.hasPrefix("cache") }, equals: ["cache.db"])
    // And it is used again as soon as it can be
    try FileManager.default.removeItem(atPath: path)
    _ = try rig.cache.open()
  }

  @Test func aLossIsToldOnceHoweverManyProcessesFindIt() throws {
    // Given two processes with a cache
    let rig = try Rig.atHome()
    _ = try rig.cache.open()
    let other = try Rig(folder: rig.folder, keyStore: rig.keyStore)
    _ = try other.decider.assess(.navigate)
    _ = try other.cache.open()
    // When one replaces the damaged file, and the other one finds the damage too
    try rig.cache.replace()
    try other.cache.replace()
    // Then
    try expect(rig.takeEventTypes(), equals: ["storage_recovered"])
    expect(rig.folder.names.filter { $0 == "cache.db.damaged" }.count, equals: 1)
    // Both pull again
    expect(rig.pulls.needsContacts && other.pulls.needsContacts)
  }

  @Test(arguments: ["all", "an organisation", "an organisation without rows"])
  func whatIsErasedStaysNeitherInMemoryNorInAFileThatWasSetAside(_ what: String) throws {
    // Given names in memory, rows of an organisation, and a damaged file that was set aside
    let rig = try Rig.atHome()
    let org: [UInt8] = [7, 7, 7]
    if what != "an organisation without rows" {
      try rig.cache.open().datasets.write(.summary, of: org, DatasetTable.Entry())
    }
    rig.cache.use(ContactIndex(org: org, version: nil))
    make("cache.db.damaged", "cache.db.damaged-wal", "cache.db.damaged-shm", in: rig)
    // When
    if what == "all" { rig.cache.erase() } else { try rig.cache.erase([org]) }
    // Then
    expect(!rig.folder.names.contains { $0.hasPrefix("cache.db.damaged") })
    try expect(rig.cache.open().datasets.read(.summary, of: org) == nil)
    if what != "an organisation without rows" { expect(rig.cache.index == nil) }
  }

  @Test func anErasureWhoseLogIsNotCopiedIsOwed() throws {
    // Given rows of an organisation, and a transaction, in which no log can be copied
    let rig = try Rig.atHome()
    let org = [UInt8](repeating: 7, count: 16)
    let tables = try rig.cache.open()
    try tables.datasets.write(.summary, of: org, DatasetTable.Entry())
    try tables.database.transaction { () throws(Failure) in
      try rig.cache.eraseOrOwe([org])
    }
    try expect(rig.core.meta.blob(.owedCacheErasures), equals: org)
    expect(rig.folder.bytes("cache.db-wal")?.isEmpty == false)
    // When
    try rig.cache.eraseOrOwe([])
    // Then
    try expect(rig.core.meta.blob(.owedCacheErasures) ?? [], equals: [])
    expect(rig.folder.bytes("cache.db-wal")?.isEmpty != false)
  }

  @Test func nothingIsNotedWhileNothingIsOwed() throws {
    let rig = try Rig.atHome()
    _ = try rig.cache.open()
    let before = rig.core.database.changes
    try rig.cache.eraseOrOwe([[UInt8](repeating: 7, count: 16)])
    expect(rig.core.database.changes, equals: before)
  }
}
