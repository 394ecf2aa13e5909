import Base
import Store
import Supabase
import TestSupport
import Testing
import Vault

@testable import Engine

/// The sealed blocks of the search index, in a cache with contacts of one organisation.
@Suite struct ContactBlocksTests {
  private let rig: Rig
  private let org: [UInt8]

  /// 600 contacts, numbered from 1, in three blocks.
  init() throws {
    rig = try Rig.atHome()
    org = CacheNames.org(orgA, try rig.session, try rig.core.keys())
    try store(1...600)
  }

  private func store(
    _ numbers: some Sequence<Int>, name: String = "Kari", updatedAt: String = second(1),
    deleted: Bool = false, in rig: Rig? = nil
  ) throws {
    let rig = rig ?? self.rig
    let body = numbers.map { number in
      contact(
        number, name: "\(name) \(number)", updatedAt: updatedAt, deleted: deleted)
    }
    // Only a first pull has no cursor.
    let entry = try rig.cache.open().datasets.read(.rows, of: org)
    let cursor = Cursor(updatedAt: second(0), id: id(0))
    let pull = RowPull(
      contacts(orgA), after: entry == nil ? nil : cursor, round: entry?.round ?? 0)
    rig.pulls.begin(pull)
    try rig.rowPuller.finish(
      pull, try response(200, "[" + body.joined(separator: ",") + "]"), rig.now)
    rig.pulls.restart()
  }

  private func total(_ query: StaticCString = "", in rig: Rig? = nil) throws -> Int64? {
    try (rig ?? self.rig).search.search(["query": JSON(query)]).int("total")
  }

  private func stamps() throws -> [Int64: Int64] {
    var found: [Int64: Int64] = [:]
    try rig.cache.open().blocks.each(of: org) { (number, stamp) throws(Failure) in
      found[number] = stamp
    }
    return found
  }

  private func other(backend: String = "") throws -> Rig {
    let other = try Rig(backend: backend, folder: rig.folder, keyStore: rig.keyStore)
    _ = try other.decider.assess(.navigate)
    other.hostView.arrive(isIn: true)
    return other
  }

  @Test func whatAnotherProcessWritesCostsTheReaderThatBlock() throws {
    // Given
    try expect(total(), equals: 600)
    let before = try stamps()
    let kept = try #require(rig.cache.index?.block(2, stamp: before[2] ?? 0))
    // When another process changes, adds and deletes
    let other = try other()
    try store([7], name: "Berit", updatedAt: second(2), in: other)
    try store([601], in: other)
    try store([8], updatedAt: second(2), deleted: true, in: other)
    // Then
    try expect(total(), equals: 600)
    try expect(total("berit"), equals: 1)
    expect(rig.cache.index?.block(1, stamp: before[1] ?? 0) != nil)
    expect(rig.cache.index?.block(2, stamp: before[2] ?? 0) == nil)
    expect(kept.count, equals: 100)
    try expect(total(in: other), equals: 600)
  }

  enum Harm: CaseIterable { case missing, flipped, swapped, cutOff, ofAnotherOrg, allMissing }

  @Test(arguments: Harm.allCases, [false, true])
  func aBlockThatCannotBeUsedIsMadeAgain(_ harm: Harm, _ isWrittenBefore: Bool) throws {
    // Given
    let tables = try rig.cache.open()
    let one = try #require(try tables.blocks.find(1, of: org))
    switch harm {
    case .missing: try tables.blocks.remove(1, of: org)
    case .flipped:
      var changed = one
      changed[200] ^= 1
      try tables.blocks.put(1, of: org, stamp: 1, sealed: changed)
    case .swapped:
      let zero = try #require(try tables.blocks.find(0, of: org))
      try tables.blocks.put(0, of: org, stamp: 1, sealed: one)
      try tables.blocks.put(1, of: org, stamp: 2, sealed: zero)
    case .cutOff: try tables.blocks.put(1, of: org, stamp: 1, sealed: Array(one.prefix(30)))
    case .ofAnotherOrg:
      let session = try rig.session
      let plain = try #require(
        try session.cacheKey.open(one, CacheNames.blockContext(1, of: org, session)))
      let sealed = try session.cacheKey.seal(
        plain.bytes, CacheNames.blockContext(1, of: [1], session))
      try tables.blocks.put(1, of: org, stamp: 1, sealed: sealed)
    case .allMissing: _ = try tables.blocks.removeAll(of: org)
    }
    // When a page changes a contact of the block before the next search, or none does
    if isWrittenBefore { try store([300], name: "Berit", updatedAt: second(2)) }
    // Then
    try expect(total(), equals: 600)
    try expect(total("berit"), equals: (isWrittenBefore ? 1 : 0))
    try expect(stamps().count, equals: 3)
    // And the next process finds the blocks
    let before = try stamps()
    try expect(total(in: try other()), equals: 600)
    try expect(stamps(), equals: before)
  }

  @Test func anIndexInMemoryDoesNotTakeABlockThatLacksRows() throws {
    // Given an index in use, and a block that is lost
    try expect(total(), equals: 600)
    try rig.cache.open().blocks.remove(1, of: org)
    // When
    try store([300], name: "Berit", updatedAt: second(2))
    // Then
    try expect(total(), equals: 600)
    try expect(total("berit"), equals: 1)
  }

  @Test func aRowThatDoesNotOpenIsNotFoundAndItsNeighboursAre() throws {
    // Given
    try expect(total(), equals: 600)
    try rig.cache.open().contacts.replace(
      number: 0, version: second(1), round: 0, sealed: [1, 2, 3])
    // When, then
    try expect(rig.search.search(["query": "", "limit": 200]).int("total"), equals: 599)
    let before = try stamps()
    try expect(total(), equals: 599)
    try expect(total(in: try other()), equals: 599)
    try expect(stamps(), equals: before)
    // And it is found again when the server sends it
    try store([1], updatedAt: second(2))
    try expect(total(), equals: 600)
  }

  @Test func aSearchOnADiskThatCannotBeWrittenFindsAll() throws {
    // Given blocks that are lost, and another process that writes
    let tables = try rig.cache.open()
    _ = try tables.blocks.removeAll(of: org)
    try tables.database.execute("PRAGMA query_only=ON")
    // When, then
    try expect(total(), equals: 600)
    try expect(total("kari 599"), equals: 1)
    try tables.database.execute("PRAGMA query_only=OFF")
    try expect(stamps().isEmpty)
  }

  @Test func aReconcileRemovesFromTheBlocks() throws {
    // Given
    try expect(total(), equals: 600)
    let tables = try rig.cache.open()
    for number in 100..<500 {
      let tag = CacheNames.contact(id(number), of: org, try rig.core.keys())
      try expect(tables.contacts.confirm(row: tag, in: org, version: nil, round: 1))
    }
    // When the last page of round 1 has come
    let entry = try #require(try tables.datasets.read(.rows, of: org))
    entry.round = 1
    try tables.datasets.write(.rows, of: org, entry)
    var pull = RowPull(contacts(orgA), after: Cursor(updatedAt: second(0), id: id(0)))
    pull.reconcile(round: 1, after: nil, since: rig.now.wallMS)
    rig.pulls.begin(pull)
    try rig.rowPuller.finish(pull, try response(200, "[]"), rig.now)
    // Then
    try expect(total(), equals: 400)
    try expect(total("kari 600"), equals: 0)
    try expect(total(in: try other()), equals: 400)
  }

  /// Random pages in two processes, and blocks that are lost now and then.
  @Test(arguments: 0..<sized(3, full: 12))
  func theIndexEqualsTheRows(_ seed: UInt64) throws {
    var chance = Chance(seed)
    let other = try other()
    var names: [Int: String] = [:]
    for number in 1...600 { names[number] = "Kari" }
    for turn in 1...12 {
      let rig = chance.below(2) == 0 ? self.rig : other
      let numbers = Set((0..<1 + chance.below(200)).map { _ in 1 + chance.below(900) })
      let deletes = chance.below(3) == 0
      let name = ["Anna", "Bo", "Cecilie"][chance.below(3)]
      try store(
        numbers.sorted(), name: name, updatedAt: second(1 + turn), deleted: deletes, in: rig)
      for number in numbers { names[number] = deletes ? nil : name }
      if chance.below(4) == 0 {
        try rig.cache.open().blocks.remove(Int64(chance.below(4)), of: org)
      }
      for rig in [self.rig, other] where chance.below(2) == 0 {
        for query in ["Anna", "Bo", "Cecilie", "Kari"] {
          let expected = names.filter { $0.value == query }.map { "\(query) \($0.key)" }
          let found = try rig.search.search(["query": .string(query), "limit": 200])
          expect(found.int("total"), equals: Int64(expected.count))
          let contacts = found["contacts"]?.elements.compactMap { $0.string("name") } ?? []
          expect(contacts, equals: Array(sorted(expected).prefix(200)))
        }
      }
    }
  }

  private func sorted(_ names: [String]) -> [String] {
    names.sorted { Array($0.lowercased().utf8).lexicographicallyPrecedes($1.lowercased().utf8) }
  }
}

/// A small generator with the same numbers in every run (SplitMix64).
struct Chance {
  private var state: UInt64

  init(_ seed: UInt64) { state = seed }

  /// 0 or more, less than `limit`.
  mutating func below(_ limit: Int) -> Int {
    state &+= 0x9E37_79B9_7F4A_7C15
    var z = state
    z = (z ^ (z >> 30)) &* 0xBF58_476D_1CE4_E5B9
    z = (z ^ (z >> 27)) &* 0x94D0_49BB_1331_11EB
    return Int((z ^ (z >> 31)) % UInt64(limit))
  }
}
