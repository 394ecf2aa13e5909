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

  /// The folder of a user with two queued items.
  private func filled() throws -> TemporaryFolder {
    let rig = try Rig.atHome()
    for number in 1...2 { try rig.add(id(number)) }
    rig.core.database.close()
    return rig.folder
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

  // MARK: Newer versions

  /// Write a version into the header that no library has yet, and noise into the page of the queue.
  private func raiseVersion(_ folder: TemporaryFolder) throws {
    // A page that is no part of the schema: that must be readable.
    let database = try Database(path: folder.path + "/holdfast.db", .full)
    let sql: StaticCString = "SELECT rootpage FROM sqlite_master WHERE name = 'queue'"
    let root = try database.first(sql) { (row) throws(Failure) in Int(row.int(0)) } ?? 0
    database.close()
    var bytes = try #require(folder.bytes("holdfast.db"))
    // Both places where the version stands.
    for place in [60, 68] { bytes.replaceSubrange(place..<place + 4, with: [0, 1, 0, 0]) }
    for at in (root - 1) * 4096..<root * 4096 { bytes[at] = 0x5A }
    write(bytes, "holdfast.db", in: folder)
  }

  @Test func aDamagedFileThatOnlyLooksNewerIsSetAside() throws {
    let folder = try filled()
    try raiseVersion(folder)
    let opened = try DataFolder.openMain(in: folder.path, at: Rig.start)
    expect(opened.replaced)
    expect(asideNames(folder).count, equals: 1)
  }
}
