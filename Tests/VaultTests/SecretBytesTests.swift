import Base
import Glibc
import TestSupport
import Testing

@testable import Vault

@Suite struct SecretBytesTests {
  @Test("Bytes are copied, in both kinds of memory", arguments: [SecretBytes.Room.guarded, .heap])
  func copying(room: SecretBytes.Room) throws {
    try Vault.start()
    for count in [0, 1, 16, 4_095, 4_096, 4_097] {
      let plain = (0..<count).map { UInt8(truncatingIfNeeded: $0) }
      let copy = try plain.withUnsafeBytes { try SecretBytes(copying: $0, room: room) }
      expect(copy.count, equals: count)
      expect(bytes(of: copy), equals: plain)
    }
  }

  @Test("Secrets share pages but no bytes; released memory is zero")
  func sharing() throws {
    try Vault.start()
    var held: [(SecretBytes, [UInt8])] = []
    for round in 0..<200 {
      let count = [32, 1, 64, 65, 700, 4_096, 0, 5_000][round % 8]
      let plain = (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 7 &+ round) }
      held.append((try plain.withUnsafeBytes { try SecretBytes(copying: $0) }, plain))
      if round % 3 == 2 { held.remove(at: round % held.count) }
    }
    for (secret, plain) in held { expect(bytes(of: secret), equals: plain) }
    let regions = Set(held.filter { $0.1.count <= 64 }.map { UInt(bitPattern: $0.0.start) >> 12 })
    expect(regions.count < held.count / 2)
    let first = try #require(held.firstIndex { $0.1.count > 0 && $0.1.count <= 4_096 })
    let (place, count) = (held[first].0.start, held[first].1.count)
    held.remove(at: first)
    expect(UnsafeRawBufferPointer(start: place, count: count).allSatisfy { $0 == 0 })
  }

  @Test("A secret that is too large for a shared page gives its pages back")
  func leaks() throws {
    try Vault.start()
    func mapped() throws -> Int {
      let file = try #require(fopen("/proc/self/statm", "r"))
      defer { fclose(file) }
      var pages = 0
      while let digit = ASCII.digit(UInt8(truncatingIfNeeded: fgetc(file))) {
        pages = 10 * pages + digit
      }
      return pages
    }
    let before = try mapped()
    for _ in 0..<1_000 { _ = try SecretBytes(count: 50_000, room: .guarded) }
    // 16 pages each, with the guard pages; other tests run at the same time.
    try expect(mapped() < before + 8_000)
  }

  @Test("The text of a JSON string and back; other kinds have no text")
  func json() throws {
    try Vault.start()
    let text = try #require(try SecretBytes.text(of: "tøken"))
    expect(bytes(of: text), equals: Array("tøken".utf8))
    expect(text.json.string, equals: "tøken")
    try expect(SecretBytes.text(of: "")?.count, equals: 0)
    for other in [7, nil, true, [:], []] as [JSON] {
      try expect(SecretBytes.text(of: other) == nil)
    }
  }

  @Test("The length that a writer returns is limited to its buffer")
  func writing() throws {
    try Vault.start()
    func written(_ answer: Int) throws -> [UInt8]? {
      bytes(
        of: try SecretBytes.written(capacity: 4) { room in
          room.copyBytes(from: [1, 2, 3, 4] as [UInt8])
          return answer
        })
    }
    try expect(written(3), equals: [1, 2, 3])
    try expect(written(0), equals: [])
    try expect(written(-1), equals: [])
    try expect(written(.max), equals: [1, 2, 3, 4])
  }

  @Test("Random bytes differ and have the requested length")
  func random() throws {
    try Vault.start()
    try expect(SecretBytes.random(count: 32).count, equals: 32)
    expect(Set((0..<100).map { _ in Random.word() }).count, equals: 100)
    expect(Random.bytes(0).isEmpty && Random.bytes(33).count == 33)
    expect(Random.bytes(32) != Random.bytes(32))
  }

  @Test("Random UUIDs have version 7 and the given time")
  func uuids() throws {
    let id = Random.uuid(at: 0x017F_22E2_79B0)
    expect(id.text.hasPrefix("017f22e2-79b0-7"))
    expect(id != Random.uuid(at: 0x017F_22E2_79B0))
    expect(id.low >> 62, equals: 2)
  }
}
