import Base
import Glibc
import TestSupport
import Testing

@testable import Vault

@Suite struct FileKeyStoreTests {
  private func refusal(_ body: () throws(KeyRefusal) -> Void) -> KeyRefusal? {
    do throws(KeyRefusal) {
      try body()
      return nil
    } catch { return error }
  }

  private func load(_ store: FileKeyStore, _ name: KeyName) -> KeyRefusal? {
    refusal { () throws(KeyRefusal) in _ = try store.load(name) }
  }

  private func mode(_ path: String) -> UInt32 {
    var status = stat()
    return stat(path, &status) == 0 ? status.st_mode & 0o777 : 0
  }

  @Test("A saved key can be loaded, also by another store, until it is erased")
  func lifeOfAKey() throws {
    try withFolder { folder in
      let store = FileKeyStore(folder: folder + "/keys")
      expect(load(store, .device), equals: .notFound)
      let key = try fixedKey()
      try store.save(key, .device)
      try expect(store.load(.device).secret.equals(key.secret))
      try expect(FileKeyStore(folder: folder + "/keys").load(.device).secret.equals(key.secret))
      expect(load(store, .biometric), equals: .notFound)
      let other = try Key.random()
      try store.save(other, .device)
      try expect(store.load(.device).secret.equals(other.secret))
      try store.erase(.device)
      try store.erase(.device)
      expect(load(store, .device), equals: .notFound)
    }
  }

  // That the umask changes nothing is tested in Tests/abi/test_folders.py: it is one for all tests of a process.
  @Test("The file has mode 0600 and its folder 0700")
  func permissions() throws {
    try withFolder { folder in
      let store = FileKeyStore(folder: folder + "/keys")
      try store.save(try fixedKey(), .device)
      expect(mode(folder + "/keys/device.key"), equals: 0o600)
      expect(mode(folder + "/keys"), equals: 0o700)
      try store.save(try fixedKey(1), .device)
      expect(mode(folder + "/keys/device.key"), equals: 0o600)
    }
  }

  @Test("An erased key is overwritten, and an old session key before a new one takes its place")
  func overwriting() throws {
    try withFolder { folder in
      let store = FileKeyStore(folder: folder + "/keys")
      for name in [KeyName.session, .device, .biometric] {
        try store.save(try fixedKey(1), name)
        let file = open(folder + "/keys/\(name.text).key", O_RDONLY)
        defer { close(file) }
        if name == .session { try store.save(try fixedKey(2), name) } else { try store.erase(name) }
        var bytes = [UInt8](repeating: 9, count: 32)
        expect(pread(file, &bytes, 32, 0), equals: 32)
        expect(bytes, equals: [UInt8](repeating: 0, count: 32))
      }
      expect(load(store, .session), equals: nil)
      expect(load(store, .device), equals: .notFound)
    }
  }

  @Test(
    "A file without a valid key is damaged, not missing, so that no new key replaces it at once")
  func garbage() throws {
    try withFolder { folder in
      let store = FileKeyStore(folder: folder + "/keys")
      try store.save(try fixedKey(), .device)
      for length in [0, 1, 31, 33, 64, 4_096] {
        let file = try #require(fopen(folder + "/keys/device.key", "w"))
        for _ in 0..<length { fputc(7, file) }
        fclose(file)
        expect(load(store, .device), equals: .damaged, "\(length) bytes")
      }
    }
  }

  @Test("A key that others may read, a link and a second name are failures, and stay as they are")
  func othersFiles() throws {
    try withFolder { folder in
      let store = FileKeyStore(folder: folder + "/keys")
      let key = folder + "/keys/device.key"
      try store.save(try fixedKey(), .device)
      chmod(key, 0o640)
      expect(load(store, .device), equals: .failed)
      chmod(key, 0o600)
      expect(load(store, .device), equals: nil)
      link(key, folder + "/second")
      expect(load(store, .device), equals: .failed)
      unlink(key)
      symlink(folder + "/second", key)
      expect(load(store, .device), equals: .failed)
      unlink(key)
      rename(folder + "/second", key)
      expect(load(store, .device), equals: nil)
      chmod(folder + "/keys", 0o777)
      let other = try fixedKey(1)
      expect(refusal { () throws(KeyRefusal) in try store.save(other, .device) }, equals: .failed)
    }
  }

  @Test("A folder that cannot be made is a failure")
  func impossibleFolder() throws {
    try Vault.start()
    let key = try Key.random()
    for folder in [
      "/proc/holdfast/keys", "/dev/null/keys", "", String(repeating: "x", count: 5_000),
    ] {
      let store = FileKeyStore(folder: folder)
      expect(refusal { () throws(KeyRefusal) in try store.save(key, .device) }, equals: .failed)
      expect(load(store, .device) != nil)
    }
  }
}
