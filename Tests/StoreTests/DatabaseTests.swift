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

@Suite struct SessionTableTests {
  @Test func aWriteOverAnotherGenerationChangesNothing() throws {
    let folder = try TemporaryFolder()
    let table = SessionTable(try folder.open())
    let row = try table.read()
    row.generation = 1
    row.tokens = [1]
    #expect(try table.write(row, expecting: 0))
    let late = row
    late.generation = 1
    late.tokens = [9]
    #expect(try !table.write(late, expecting: 0))
    #expect(try table.read().tokens == [1])
  }

  @Test func everyColumnComesBack() throws {
    let folder = try TemporaryFolder()
    let table = SessionTable(try folder.open())
    let row = SessionRow()
    row.generation = 3
    row.owner = [1]
    row.ended = "x"
    row.wrapDevice = [2]
    row.wrapBiometric = [3]
    row.tokens = [4]
    row.choice = [5]
    row.memberships = [6]
    row.authenticatedMS = 7
    row.validatedMS = 8
    row.expiresMS = 9
    row.membershipsMS = 10
    row.locked = true
    row.rejections = 11
    row.intentMS = 12
    row.backgroundWallMS = 13
    row.backgroundMonotonicMS = 14
    row.backgroundBoot = "boot"
    row.seenWallMS = 15
    #expect(try table.write(row, expecting: 0))
    #expect("\(try table.read())" == "\(row)")
  }
}

@Suite struct LeaseTableTests {
  @Test func aLeaseHoldsUntilItsEndAndOnlyAgainstOthers() throws {
    let folder = try TemporaryFolder()
    let table = LeaseTable(try folder.open())
    try table.take("refresh", holder: [1], until: 1000)
    #expect(try table.holder("refresh", notBy: [2], now: 999) == [1])
    #expect(try table.holder("refresh", notBy: [1], now: 999) == nil)
    #expect(try table.holder("refresh", notBy: [2], now: 1000) == nil)
    // Written under a clock that was far ahead: it must not hold for days.
    try table.take("refresh", holder: [1], until: 100_000_000)
    #expect(try table.holder("refresh", notBy: [2], now: 1000) == nil)
    try table.take("refresh", holder: [1], until: 2000)
    try table.release("refresh", holder: [2])
    #expect(try table.holder("refresh", notBy: [2], now: 1000) == [1])
    try table.release("refresh", holder: [1])
    #expect(try table.holder("refresh", notBy: [2], now: 1000) == nil)
  }
}
