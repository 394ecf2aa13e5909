import Base
import CPlatform
import Glibc
import Store
import TestSupport
import Testing

import class Foundation.FileManager

@testable import Engine

@Suite struct DataFolderTests {
  private func write(_ bytes: [UInt8], _ name: String, in folder: TemporaryFolder) {
    let isMade = FileManager.default.createFile(
      atPath: folder.path + "/" + name, contents: .init(bytes))
    expect(isMade)
  }

  private func asideNames(_ folder: TemporaryFolder) -> [String] {
    folder.names.filter { $0.hasPrefix("holdfast.db.") }
  }

  /// The folder of a user with two queued items. `keepsLog`: all of it is in the log.
  private func filled(
    keepsLog: Bool = false
  ) throws -> (folder: TemporaryFolder, keyStore: MemoryKeyStore) {
    let rig = try Rig.atHome()
    for number in 1...2 { try rig.add(id(number)) }
    rig.core.database.keepsLog = keepsLog
    rig.core.database.close()
    return (rig.folder, rig.keyStore)
  }

  @Test func aCopyOfTheProcessDoesNotKeepTheFolder() throws {
    let folder = try TemporaryFolder()
    let lock = platform_folder_lock(folder.path, true)
    // As a fork does
    let copy = dup(lock)
    defer { close(copy) }
    platform_folder_unlock(lock)
    let next = platform_folder_lock(folder.path, true)
    expect(next >= 0)
    platform_folder_unlock(next)
  }

  // MARK: Files without contents

  @Test func aFirstStartThatWasCutShortLeavesANewFile() throws {
    // Given what a process leaves that ends before its first commit
    let folder = try TemporaryFolder()
    write([], "holdfast.db", in: folder)
    write([], "holdfast.db-wal", in: folder)
    // When
    let opened = try DataFolder.openMain(in: folder.path, at: Rig.start)
    // Then
    expect(!opened.replaced)
    expect(asideNames(folder).isEmpty)
  }

  @Test func theLogOfAFileThatWasEmptiedIsKept() throws {
    // Given
    let (folder, keyStore) = try filled(keepsLog: true)
    let log = try #require(folder.bytes("holdfast.db-wal"))
    expect(!log.isEmpty)
    write([], "holdfast.db", in: folder)
    // When
    let rig = try Rig(folder: folder, keyStore: keyStore)
    _ = try rig.decider.assess(.navigate)
    // Then the log is set aside as it was, and what it holds is there
    expect(rig.recovery.hasRecovered)
    let aside = try #require(asideNames(folder).first { $0.hasSuffix("-wal") })
    expect(folder.bytes(aside), equals: log)
    try expect(
      (1...2).map { try rig.state(id($0)) }, equals: ["pending, attempts 1", "pending, attempts 1"])
  }

  // MARK: Newer versions

  /// Write a version into the header that no library has yet, and `damage` behind the first pages.
  private func raiseVersion(_ folder: TemporaryFolder, damages: Bool) throws {
    // A page that is no part of the schema: that must be readable.
    let database = try Database(path: folder.path + "/holdfast.db", .full)
    let sql: StaticCString = "SELECT rootpage FROM sqlite_master WHERE name = 'queue'"
    let root = try database.first(sql) { (row) throws(Failure) in Int(row.int(0)) } ?? 0
    database.close()
    var bytes = try #require(folder.bytes("holdfast.db"))
    // Both places where the version stands.
    for place in [60, 68] { bytes.replaceSubrange(place..<place + 4, with: [0, 1, 0, 0]) }
    if damages { for at in (root - 1) * 4096..<root * 4096 { bytes[at] = 0x5A } }
    write(bytes, "holdfast.db", in: folder)
  }

  @Test func aNewerLibrarysFileIsLeftAlone() throws {
    let (folder, _) = try filled()
    try raiseVersion(folder, damages: false)
    let before = folder.bytes("holdfast.db")
    let code = try refusal { try DataFolder.openMain(in: folder.path, at: Rig.start) }
    expect(code, equals: .storageNewer)
    expect(folder.bytes("holdfast.db"), equals: before)
    expect(asideNames(folder).isEmpty)
  }

  @Test func aDamagedFileThatOnlyLooksNewerIsSetAside() throws {
    let (folder, _) = try filled()
    try raiseVersion(folder, damages: true)
    let opened = try DataFolder.openMain(in: folder.path, at: Rig.start)
    expect(opened.replaced)
    expect(asideNames(folder).count, equals: 1)
  }

  // MARK: A recovery that was cut short

  /// How far the process came that found the damage.
  @Test(arguments: ["file renamed", "fresh file begun"])
  func aRecoveryThatWasCutShortIsCompleted(_ step: String) throws {
    // Given
    let (folder, keyStore) = try filled()
    try folder.damage("holdfast.db")
    try FileManager.default.moveItem(
      atPath: folder.path + "/holdfast.db", toPath: folder.path + "/holdfast.db.damaged")
    if step == "fresh file begun" { write([], "holdfast.db", in: folder) }
    // When
    let rig = try Rig(folder: folder, keyStore: keyStore)
    _ = try rig.decider.assess(.navigate)
    // Then nothing is lost
    let event = try #require(try rig.takeEvents().first)
    expect(event.int("carried"), equals: 2)
    expect(event.bool("unreadable"), equals: false)
    expect(event.bool("session"), equals: true)
    let aside = try #require(event.string("file"))
    expect(aside, equals: "holdfast.db.damaged-\(Rig.start.wallMS)")
    expect(asideNames(folder), equals: [aside])
  }

  @Test func aCacheThatCannotBeOpenedIsNotSetAside() throws {
    // Given
    let folder = try TemporaryFolder()
    try DataFolder.openCache(in: folder.path).close()
    let log = folder.path + "/cache.db-wal"
    try FileManager.default.createDirectory(atPath: log, withIntermediateDirectories: false)
    // When
    let code = try refusal { try DataFolder.replaceCache(nil, in: folder.path) }
    // Then
    expect(code, equals: .storageFailed)
    let names = folder.names.filter { $0.hasPrefix("cache") }.sorted()
    expect(names, equals: ["cache.db", "cache.db-wal"])
  }
}
