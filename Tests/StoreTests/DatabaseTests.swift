import Base
import Foundation
import Testing

@testable import Store

@Suite struct DatabaseTests {
  @Test func aFileIsMade0600AndKeepsItsLogBesideIt() throws {
    let folder = try TemporaryFolder()
    let database = try folder.open()
    let mode = try FileManager.default.attributesOfItem(atPath: database.path)[.posixPermissions]
    #expect(mode as? Int == 0o600)
    #expect(FileManager.default.fileExists(atPath: database.path + "-wal"))
  }

  @Test func aFailedTransactionLeavesNothing() throws {
    let folder = try TemporaryFolder()
    let database = try folder.open()
    let meta = MetaTable(database)
    #expect(throws: Failure.self) {
      try database.transaction { () throws(Failure) in
        try meta.set(.retryGroup, .int(5))
        try database.transaction { () throws(Failure) in try meta.set(.lastSyncRun, .int(6)) }
        throw Failure(.internalDefect, "on purpose")
      }
    }
    #expect(try meta.int(.retryGroup) == nil)
    #expect(try meta.int(.lastSyncRun) == nil)
    try database.transaction { () throws(Failure) in try meta.set(.retryGroup, .int(1)) }
    #expect(try meta.int(.retryGroup) == 1)
  }

  @Test func aFileOfANewerLibraryIsRefusedAndKept() throws {
    let folder = try TemporaryFolder()
    try folder.open().execute("PRAGMA user_version=99")
    do {
      _ = try folder.open()
      Issue.record("it was opened")
    } catch let failure as Failure {
      #expect(failure.code == .storageNewer)
    }
    #expect(FileManager.default.fileExists(atPath: folder.path + "/test.db"))
  }

  @Test func noiseIsDamageAndNotTouched() throws {
    let folder = try TemporaryFolder()
    let noise = Data((0..<8192).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ 7) })
    try noise.write(to: URL(fileURLWithPath: folder.path + "/test.db"))
    do {
      _ = try folder.open()
      Issue.record("it was opened")
    } catch let failure as Failure {
      #expect(failure.code == .storageDamaged)
    }
    #expect(try Data(contentsOf: URL(fileURLWithPath: folder.path + "/test.db")) == noise)
  }

  @Test func whatAnotherProcessSetAsideIsNoticed() throws {
    let folder = try TemporaryFolder()
    let database = try folder.open()
    #expect(database.isCurrent)
    try FileManager.default.moveItem(
      atPath: database.path, toPath: database.path + ".damaged-1")
    #expect(!database.isCurrent)
  }
}
