import Base
import TestSupport
import Testing
import Vault

@testable import Engine

@Suite struct ContactIndexTests {
  private typealias Contact = (name: String, municipality: String)

  /// An index of these contacts, numbered from 0, in blocks of `size`.
  private func index(_ contacts: [Contact], blocksOf size: Int = 250) throws -> ContactIndex {
    try Vault.start()
    let index = ContactIndex(org: [1], version: nil)
    for start in stride(from: 0, to: contacts.count, by: size) {
      var draft = ContactBlockDraft()
      for number in start..<min(start + size, contacts.count) {
        let contact = contacts[number]
        draft.add(id(number), name: contact.name, municipality: contact.municipality)
      }
      try append(draft, Int64(start / size), to: index)
    }
    return index
  }

  private func append(
    _ draft: ContactBlockDraft, _ number: Int64, to index: ContactIndex, stamp: Int64 = 1
  ) throws {
    index.append(
      ContactIndex.Change(number: number, stamp: stamp, block: try draft.made(columns: 3)))
  }

  private func numbers(_ index: ContactIndex, _ query: String, limit: Int = 50) -> [Int] {
    index.search(query, limit: limit).tags.map { Int($0.low & 0xFFFF) }
  }

  /// FIX-29: what only folds to the query comes last, wherever it stands.
  @Test func theExactLetterComesFirst() throws {
    let index = try index([
      ("Åse", ""), ("Håkon", ""), ("Bo", "Ås"), ("Aa", ""), ("Ærlend", ""), ("E\u{30A}a", ""),
    ])
    for query in ["å", "Å", "a\u{30A}"] {
      expect(numbers(index, query), equals: [0, 1, 2, 3, 4, 5], "\(query)")
    }
    expect(numbers(index, "a"), equals: [3, 5, 4, 0, 1, 2])
    expect(numbers(index, "aa", limit: 1), equals: [3])
    expect(numbers(index, "æ", limit: 1), equals: [4])
    expect(index.search("å", limit: 2).total, equals: 6)
  }

  @Test func aMatchDoesNotSpanTwoContactsOrNameAndMunicipality() throws {
    let index = try index([("Ab", "Cd"), ("Ef", "Gh")])
    for query in ["bcd", "bc", "de", "def", "fgh"] {
      expect(numbers(index, query).isEmpty, "\(query)")
    }
  }

  @Test func aChangedBlockStandsBesideOneThatIsKept() throws {
    // Given two blocks
    let index = try index([("Anna", "Oslo"), ("Bo", "Oslo"), ("Dag", "Oslo")], blocksOf: 2)
    let kept = try #require(index.block(1, stamp: 1))
    // When one changes
    var draft = ContactBlockDraft(index.block(0, stamp: 1))
    draft.remove(id(0))
    draft.add(id(0), name: "Cecilie", municipality: "Bergen")
    draft.add(id(7), name: "Arne", municipality: "Oslo")
    draft.remove(id(77))
    let next = ContactIndex(org: [1], version: nil)
    try append(draft, 0, to: next, stamp: 2)
    next.append(ContactIndex.Change(number: 1, stamp: 1, block: kept))
    // Then the old texts are gone, the order is kept, and each block is found by its stamp
    expect(numbers(next, "anna").isEmpty)
    expect(numbers(next, ""), equals: [7, 1, 0, 2])
    expect(next.count, equals: 4)
    expect(next.block(0, stamp: 1) == nil && next.block(0, stamp: 2) != nil)
    expect(next.block(1, stamp: 1) === kept)
    expect(next.block(2, stamp: 1) == nil)
    // And of a block without contacts nothing is left
    var last = ContactBlockDraft(kept)
    last.remove(id(2))
    try expect(last.made(columns: 3) == nil)
  }

  @Test func aRowThatCouldNotBeReadIsCountedAndNotFound() throws {
    var draft = ContactBlockDraft()
    draft.addUnreadable(id(1))
    let index = ContactIndex(org: [1], version: nil)
    try append(draft, 0, to: index)
    expect(index.count, equals: 1)
    expect(index.isEmpty)
    expect(index.search("", limit: 5).total, equals: 0)
    // It can be read again
    draft = ContactBlockDraft(index.block(0, stamp: 1))
    draft.remove(id(1))
    draft.add(id(1), name: "Anna", municipality: "")
    let next = ContactIndex(org: [1], version: nil)
    try append(draft, 0, to: next)
    expect(!next.isEmpty)
    expect(numbers(next, ""), equals: [1])
  }

  /// Against the plain rule: fold all, look for each word, sort.
  @Test(arguments: 0..<sized(10, full: 40))
  func aSearchOfBlocksFindsWhatTheRuleSays(_ seed: UInt64) throws {
    var chance = Chance(seed)
    let parts = [
      "Åse", "Ås", "aas", "Bø", "Bo", "bo", "Zoë", "Æ", "Ola-Bo", "O'Bo", "x", "", "bobo",
    ]
    let contacts: [Contact] = (0..<chance.below(300)).map { _ in
      (
        (0..<1 + chance.below(3)).map { _ in parts[chance.below(parts.count)] }
          .joined(separator: " "), parts[chance.below(parts.count)]
      )
    }
    let index = try index(contacts, blocksOf: 1 + chance.below(60))
    for query in ["", "bo", "o", "as", "bo as", "æ", "x bo", "ola bo", "zoe", "-", "nobody"] {
      let limit = 1 + chance.below(200)
      let found = index.search(query, limit: limit)
      let expected = Oracle.search(contacts, query)
      expect(found.total, equals: expected.count, "\(query)")
      expect(
        found.tags.map { Int($0.low & 0xFFFF) }, equals: Array(expected.prefix(limit)), "\(query)")
    }
  }

  @Test func moreWordsThanCanBeRankedAreIgnored() throws {
    let index = try index([("Anna", "")])
    let query = [String](repeating: "anna", count: 32).joined(separator: " ")
    expect(numbers(index, query), equals: [0])
    expect(numbers(index, query + " nobody"), equals: [0])
    expect(numbers(index, "nobody " + query).isEmpty)
  }
}

/// Searches without an index.
private enum Oracle {
  static func search(_ contacts: [(name: String, municipality: String)], _ query: String) -> [Int] {
    let wanted = words(query)
    if wanted.isEmpty, query.contains(where: { $0 != " " }) { return [] }
    var found: [(rank: Int, key: [UInt8], number: Int)] = []
    for (number, contact) in contacts.enumerated() {
      let (name, place) = (words(contact.name), words(contact.municipality))
      let written = exact(contact.name) + exact(contact.municipality)
      var rank = 0
      for word in exact(query) where !written.contains(where: { holds($0, word) }) { rank += 256 }
      let fits = wanted.allSatisfy { word in
        if name.contains(where: { $0.starts(with: word) }) {
          if word == wanted[0], !(name[0].starts(with: word)) { rank += 1 }
        } else if name.contains(where: { holds($0, word) }) {
          rank += 2
        } else if place.contains(where: { $0.starts(with: word) }) {
          rank += 4
        } else if place.contains(where: { holds($0, word) }) {
          rank += 6
        } else {
          return false
        }
        return true
      }
      var key: [UInt8] = []
      Folding.appendSortKey(of: contact.name, to: &key)
      if fits { found.append((rank, key, number)) }
    }
    found.sort {
      if $0.rank != $1.rank { return $0.rank < $1.rank }
      if $0.key != $1.key { return $0.key.lexicographicallyPrecedes($1.key) }
      return $0.number < $1.number
    }
    return found.map(\.number)
  }

  private static func words(_ text: String) -> [[UInt8]] {
    var folded: [UInt8] = []
    Folding.append(text, to: &folded)
    return folded.split(separator: Folding.wordStart).map { Array($0) }
  }

  /// The words as they are written: letters, each with its marks.
  private static func exact(_ text: String) -> [[String]] {
    var written: [UInt8] = []
    Folding.appendExact(text, to: &written)
    return written.split(separator: Folding.wordStart).map { word in
      String(decoding: word.filter { $0 != Folding.markStart }, as: UTF8.self).map { String($0) }
    }
  }

  private static func holds<Letter: Equatable>(_ text: [Letter], _ part: [Letter]) -> Bool {
    part.count <= text.count
      && (0...text.count - part.count).contains { text[$0..<$0 + part.count].elementsEqual(part) }
  }
}
