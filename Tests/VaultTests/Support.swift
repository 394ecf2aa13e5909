import Base
import Glibc
import Testing

@testable import Vault

/// A key whose bytes are the same in every run.
func fixedKey(_ first: UInt8 = 0) throws -> Key {
  let bytes = (0..<32).map { first &+ UInt8($0) }
  return try #require(Key(try secret(bytes)))
}

func secret(_ bytes: [UInt8]) throws(Failure) -> SecretBytes {
  try Vault.start()
  let result = try SecretBytes.written(capacity: bytes.count) { room in
    room.copyBytes(from: bytes)
    return bytes.count
  }
  return result
}

func bytes(of secret: SecretBytes?) -> [UInt8]? {
  guard let secret else { return nil }
  return withExtendedLifetime(secret) { Array(secret.bytes) }
}

func seal(_ plain: [UInt8], with key: Key, _ context: SealContext) throws -> [UInt8] {
  let room = try secret(plain)
  return try withExtendedLifetime(room) { try key.seal(room.bytes, context) }
}

func hex(_ text: String) -> [UInt8] {
  let digits = text.utf8.compactMap { Hex.value($0) }
  return stride(from: 0, to: digits.count - 1, by: 2).map { digits[$0] << 4 | digits[$0 + 1] }
}

func hexText(of bytes: some Sequence<UInt8>) -> String {
  String(decoding: bytes.flatMap { [Hex.digit($0 >> 4), Hex.digit($0 & 0xF)] }, as: UTF8.self)
}

extension SecretBytes {
  func equals(_ other: SecretBytes) -> Bool {
    withExtendedLifetime((self, other)) { Array(bytes) == Array(other.bytes) }
  }
}

/// Runs `body` with a new folder, which is removed afterwards.
func withFolder(_ body: (String) throws -> Void) throws {
  try Vault.start()
  var template = Array("/tmp/holdfast-vault-XXXXXX".utf8CString)
  let folder = try #require(mkdtemp(&template)).withMemoryRebound(to: CChar.self, capacity: 1) {
    String(cString: $0)
  }
  defer {
    for name in ["keys/device.key", "keys/biometric.key", "keys", ""] {
      _ = remove(folder + "/" + name)
    }
  }
  try body(folder)
}
