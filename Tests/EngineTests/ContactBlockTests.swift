import Base
import TestSupport
import Testing
import Vault

@testable import Engine

@Suite struct ContactBlockTests {
  private func draft() throws -> ContactBlockDraft {
    try Vault.start()
    var draft = ContactBlockDraft()
    draft.add(id(1), name: "Øyvind Ås", municipality: "Bø")
    draft.add(id(2), name: "Anna", municipality: "")
    draft.addUnreadable(id(3))
    return draft
  }

  private func bytes() throws -> [UInt8] {
    let block = try #require(try draft().made(columns: 3))
    return withExtendedLifetime(block) { Array(block.sealable) }
  }

  private func block(_ bytes: [UInt8], columns: UInt8 = 3) throws -> ContactBlock? {
    ContactBlock(
      try bytes.withUnsafeBytes { try SecretBytes(copying: $0, room: .heap) }, columns: columns)
  }

  private func contents(_ block: ContactBlock) -> [String] {
    var found: [String] = []
    block.forEach { record in
      let ends = [0, record.keyCount, record.nameCount, record.placeCount, record.exactCount]
      let texts = (1...4).map { part in
        let start = ends[..<part].reduce(0, +)
        let text = UnsafeBufferPointer(start: record.texts + start, count: ends[part])
        return String(decoding: text, as: UTF8.self)
      }
      found.append(
        "\(record.tag.low & 0xFF)\(record.isReadable ? "" : "?")"
          + texts.map { "[\($0)]" }.joined())
    }
    return found
  }

  @Test func aBlockHoldsItsTextsInTheOrderOfNames() throws {
    let block = try #require(try block(try bytes()))
    expect(
      contents(block),
      equals: [
        "3?[][][][]", "2[ anna][ anna][][]",
        "1[ |yvind }s][ oyvind as][ bo][ øyvind a\u{1}\u{30A}s bø]",
      ])
    expect(block.count, equals: 3)
    expect(block.unreadable, equals: 1)
  }

  @Test func aBlockOfOtherColumnsOrOfAnotherFormIsNotUsed() throws {
    var bytes = try bytes()
    try expect(block(bytes, columns: 1) == nil)
    bytes[0] += 1
    try expect(block(bytes) == nil)
  }

  @Test func anEmptyDraftIsNoBlock() throws {
    var draft = try draft()
    for number in 1...3 { draft.remove(id(number)) }
    try expect(draft.made(columns: 3) == nil)
  }

  @Test func aBlockThatIsCutOffOrTooLongIsNotUsed() throws {
    let bytes = try bytes()
    for count in 0..<bytes.count { try expect(block(Array(bytes.prefix(count))) == nil) }
    try expect(block(bytes + [0]) == nil)
  }

  /// Whatever the numbers say, the texts lie inside the block.
  @Test func noNumberLeadsOutOfTheBlock() throws {
    let bytes = try bytes()
    let size = bytes.count
    var used = 0
    for at in 0..<8 + 3 * 36 {
      for value: UInt8 in [0, 1, 2, 3, 7, 127, 128, 200, 254, 255] {
        var changed = bytes
        changed[at] = value
        guard let block = try block(changed) else { continue }
        used += 1
        var sum = 8
        block.forEach { record in
          let counts = [record.keyCount, record.nameCount, record.placeCount, record.exactCount]
          expect(counts.allSatisfy { $0 >= 0 })
          sum += 36 + counts.reduce(0, +)
        }
        expect(sum, equals: size)
      }
    }
    expect(used > 0)
  }
}
