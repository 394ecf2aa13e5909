import Base
import TestSupport
import Testing

@testable import Vault

@Suite struct KeyTests {
  private func text(_ key: Key) -> String {
    withExtendedLifetime(key) { hexText(of: key.secret.bytes) }
  }

  @Test("A key has 32 bytes")
  func size() throws {
    for count in [0, 16, 31, 33] {
      expect(Key(try secret(Array(repeating: 1, count: count))) == nil)
    }
    try expect(fixedKey().secret.count, equals: Key.size)
  }

  @Test("Random keys differ")
  func random() throws {
    try Vault.start()
    try expect(Set((0..<100).map { _ in text(try Key.random()) }).count, equals: 100)
  }

  @Test(
    "Derived keys equal those of BLAKE2b without this library",
    arguments: [
      (.lookup, "4447f284862a793df3c20dd5b02638d0b218b1ef04eac19e18329a17c86b25d6"),
      (.notices, "2d4609c460e76598ccd4b69a709bb5709d90d3935707a239feb4ae10cabe8079"),
      (.signIns, "8e4b53ba9f2b8bb810ce6823f3fd2764a48ee148edf2c5bb37050948ad306dcf"),
      (.revocations, "927882eb6e333f045a1b4ce50119396f559c7006346d26f5fc4a72afd73042e7"),
      (.queues, "3e9e030abdd862428b9365ebf6cab42466dbe1059e1e30e6c7905a44961e4771"),
    ] as [(Key.Purpose, String)])
  func derivation(purpose: Key.Purpose, expected: String) throws {
    expect(text(try fixedKey().derived(purpose)), equals: expected)
  }

  @Test("Keys for values equal those of BLAKE2b without this library")
  func values() throws {
    expect(
      text(try fixedKey().derived(for: Array("user".utf8))),
      equals: "6681b0c8ed963d441a7783ade99e1f2455fd42cda509de13c990e73e9b7e86b2")
    expect(text(try fixedKey().derived(for: [])) != text(try fixedKey().derived(for: [0])))
    expect(text(try fixedKey().derived(for: [1])) != text(try fixedKey(1).derived(for: [1])))
  }

  @Test("Look-up tags equal those of BLAKE2b without this library")
  func tags() throws {
    let key = try fixedKey()
    expect(hexText(of: key.tag("org", Array(0..<16))), equals: "f5f95430b8a3f045936efc229860ce99")
    expect(hexText(of: key.tag("d", [], [0x78])), equals: "b99b9926adbeef8f4893b0903fb1caa2")
  }

  @Test("Tags differ by key, domain and the limits between parts")
  func tagParts() throws {
    let key = try fixedKey()
    let tags = [
      key.tag("a"), key.tag("a", []), key.tag("a", [], []), key.tag("ab"), key.tag("a", [0x62]),
      key.tag("a", [1, 2], [3]), key.tag("a", [1], [2, 3]), key.tag("a", [1, 2, 3]), key.tag(""),
      try fixedKey(1).tag("a"),
    ]
    expect(Set(tags).count, equals: tags.count)
    expect(tags.allSatisfy { $0.count == Key.tagLength })
    expect(key.tag("a", [1]), equals: key.tag("a", [1]))
  }
}
