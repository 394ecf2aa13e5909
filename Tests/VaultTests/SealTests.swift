import Base
import CJansson
import CPlatform
import TestSupport
import Testing

@testable import Vault

@Suite struct SealTests {
  private let context = SealContext(table: "session", row: [1, 2], owner: [0xAA], column: "tokens")

  @Test(
    "What was sealed opens again", arguments: [0, 1, 15, 62, 63, 64, 65, 127, 128, 1_000, 262_144])
  func roundTrip(length: Int) throws {
    let key = try fixedKey()
    let plain = (0..<length).map { UInt8(truncatingIfNeeded: $0) }
    let sealed = try seal(plain, with: key, context)
    expect(bytes(of: try key.open(sealed, context)), equals: plain)
    expect(bytes(of: try key.open(sealed, context, room: .guarded)), equals: plain)
  }

  @Test(
    "Lengths are padded to multiples of 64 bytes, with at least one byte of padding",
    arguments: [(0, 64), (1, 64), (63, 64), (64, 128), (127, 128), (128, 192), (1_000, 1_024)])
  func padding(length: Int, padded: Int) throws {
    let sealed = try seal(Array(repeating: 0x80, count: length), with: try fixedKey(), context)
    expect(sealed.count, equals: 1 + 24 + padded + 16)
    expect(sealed[0], equals: 1)
  }

  @Test("A value that ends like padding stays unchanged")
  func ambiguousEnds() throws {
    let key = try fixedKey()
    for plain in [[0x80], [0x80, 0, 0], [0, 0, 0], Array(repeating: 0, count: 64)] as [[UInt8]] {
      expect(bytes(of: try key.open(try seal(plain, with: key, context), context)), equals: plain)
    }
  }

  @Test("A change of any bit is detected")
  func bitFlips() throws {
    let key = try fixedKey()
    let sealed = try seal(Array("hemmelig".utf8), with: key, context)
    for index in sealed.indices {
      for bit in 0..<8 {
        var damaged = sealed
        damaged[index] ^= 1 << UInt8(bit)
        try expect(key.open(damaged, context) == nil, "bit \(bit) of byte \(index)")
      }
    }
  }

  @Test("A truncated or extended value does not open")
  func lengths() throws {
    let key = try fixedKey()
    let sealed = try seal(Array("hemmelig".utf8), with: key, context)
    for count in 0..<sealed.count {
      try expect(key.open(Array(sealed[..<count]), context) == nil, "\(count) bytes")
    }
    try expect(key.open(sealed + [0], context) == nil)
  }

  @Test("A value opens only with its table, row, owner, column and key")
  func swaps() throws {
    let key = try fixedKey()
    let sealed = try seal(Array("hemmelig".utf8), with: key, context)
    let others = [
      SealContext(table: "sessions", row: [1, 2], owner: [0xAA], column: "tokens"),
      SealContext(table: "session", row: [1, 3], owner: [0xAA], column: "tokens"),
      SealContext(table: "session", row: [1], owner: [2, 0xAA], column: "tokens"),
      SealContext(table: "session", row: [1, 2], owner: [], column: "tokens"),
      SealContext(table: "session", row: [], owner: [1, 2, 0xAA], column: "tokens"),
      SealContext(table: "session", row: [1, 2], owner: [0xAA], column: "choice"),
      SealContext(table: "session", row: [1, 2], owner: [0xAA], column: ""),
      SealContext(table: "", row: [], owner: [], column: ""),
    ]
    for other in others { try expect(key.open(sealed, other) == nil) }
    try expect(fixedKey(1).open(sealed, context) == nil)
  }

  @Test("Parts of two values of the same place do not make a third")
  func splices() throws {
    let key = try fixedKey()
    let one = try seal(Array("hemmelig".utf8), with: key, context)
    let other = try seal(Array("offentlig".utf8), with: key, context)
    // The first byte, the version, is the same in both, and by chance the bytes after it and the last ones.
    for cut in 2..<one.count {
      let spliced = Array(one[..<cut] + other[cut...])
      let isThird = spliced != one && spliced != other
      try expect(!isThird || key.open(spliced, context) == nil, "cut at \(cut)")
    }
  }

  @Test("Sealing the same value twice gives different bytes")
  func nonces() throws {
    let key = try fixedKey()
    var seen = Set<[UInt8]>()
    for _ in 0..<200 { seen.insert(Array(try seal([1], with: key, context)[1...24])) }
    expect(seen.count, equals: 200)
  }

  @Test("The format is stable: opens a value that libsodium sealed without this library")
  func golden() throws {
    let sealed = hex(
      "016465666768696a6b6c6d6e6f707172737475767778797a7b07519892c51ff40287309d3fa66fbdc95bbb5271e4"
        + "2ccab08c5564a72b5e7810ab06437e2cb6f7c7ea06651c545608516ee5d01f9fb234a6cf0f0b48fb88be6c8f"
        + "ed7cd203eb324670b49be5c01decd9")
    try expect(
      fixedKey().openJSON(sealed, context).map { try $0.text().string }, equals: #"{"a":1}"#)
  }

  @Test("JSON values open unchanged; sealed bytes that are not JSON give nil")
  func json() throws {
    let key = try fixedKey()
    let value: JSON = [
      "navn": "Åse", "n": [1, .null, .real(0.1)],
      "note": .string(String(repeating: "x", count: 5_000)),
    ]
    for _ in 0..<100 {
      let opened = try #require(try key.openJSON(try key.seal(value, context), context))
      expect(opened == value)
    }
    try expect(key.openJSON(try seal(Array("{".utf8), with: key, context), context) == nil)
    try expect(key.openJSON([], context) == nil)
  }

  @Test("Without memory, a value is not taken for one that is not authentic")
  func memory() throws {
    let key = try fixedKey()
    let sealed = try key.seal(["a": 1] as JSON, context)
    platform_install_allocator()
    var allocate: json_malloc_t?
    json_get_alloc_funcs(&allocate, nil)
    // An allocation that fails is noted until the next call of the API.
    expect(allocate?(.max), equals: nil)
    var code: ErrorCode?
    do throws(Failure) { _ = try key.openJSON(sealed, context) } catch { code = error.code }
    platform_memory_begin()
    expect(code, equals: .memoryExhausted)
    let opened = try #require(try key.openJSON(sealed, context))
    expect(opened == ["a": 1])
  }

  @Test("A wrapped key unwraps; random bytes and other lengths do not become keys")
  func wrapping() throws {
    try Vault.start()
    let outer = try Key.random()
    let inner = try Key.random()
    let wrapped = try outer.wrap(inner, context)
    let unwrapped = try #require(try outer.unwrap(wrapped, context))
    expect(unwrapped.secret.equals(inner.secret))
    try expect(inner.unwrap(wrapped, context) == nil)
    for length in [0, 16, 31, 33, 64] {
      let other = try seal(Array(repeating: 7, count: length), with: outer, context)
      try expect(outer.unwrap(other, context) == nil, "\(length) bytes")
    }
  }
}
