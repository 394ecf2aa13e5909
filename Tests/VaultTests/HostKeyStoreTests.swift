import Base
import TestSupport
import Testing

@testable import Vault

/// An example of a host's key store.
private final class Host {
  var keys: [String: [UInt8]] = [:]
  var protections: [String: Int32] = [:]
  var answer: Int32 = 0
  /// Answers OK, and neither keeps nor erases.
  var forgets = false
  var destroyed = 0
  /// The wrong length that `load` reports, if set.
  var length: Int?

  var store: HostKeyStore {
    HostKeyStore(
      context: Unmanaged.passUnretained(self).toOpaque(),
      load: { context, name, key, capacity, length in
        guard let host = Host.at(context), let name, let key, let length else { return 4 }
        guard host.answer == 0 else { return host.answer }
        guard let found = host.keys[String(cString: name)] else { return 1 }
        for (index, byte) in found.prefix(capacity).enumerated() { key[index] = byte }
        length.pointee = host.length ?? found.count
        return 0
      },
      save: { context, name, key, length, protection in
        guard let host = Host.at(context), let name, let key else { return 4 }
        guard host.answer == 0 else { return host.answer }
        if host.forgets { return 0 }
        host.keys[String(cString: name)] = Array(UnsafeBufferPointer(start: key, count: length))
        host.protections[String(cString: name)] = protection
        return 0
      },
      erase: { context, name in
        guard let host = Host.at(context), let name else { return 4 }
        guard host.answer == 0 else { return host.answer }
        if host.forgets { return 0 }
        return host.keys.removeValue(forKey: String(cString: name)) == nil ? 1 : 0
      })
  }

  static func at(_ context: UnsafeMutableRawPointer?) -> Host? {
    context.map { Unmanaged<Host>.fromOpaque($0).takeUnretainedValue() }
  }
}

@Suite struct HostKeyStoreTests {
  private func refusal(_ body: () throws(KeyRefusal) -> Void) -> KeyRefusal? {
    do throws(KeyRefusal) {
      try body()
      return nil
    } catch { return error }
  }

  private func load(_ host: Host, _ name: KeyName = .device) -> KeyRefusal? {
    refusal { () throws(KeyRefusal) in _ = try host.store.load(name) }
  }

  @Test("Keys are passed by name, each with its protection")
  func passing() throws {
    let host = Host()
    let key = try fixedKey()
    try host.store.save(key, .device)
    try host.store.save(try fixedKey(1), .biometric)
    expect(host.keys["device"], equals: Array(0..<32))
    expect(host.protections, equals: ["device": 0, "biometric": 1])
    try expect(host.store.load(.device).secret.equals(key.secret))
    try host.store.erase(.device)
    expect(load(host), equals: .notFound)
    try host.store.erase(.device)
  }

  @Test(
    "Every result of the header is distinguished; an unknown one is a failure",
    arguments: [
      (1, .notFound), (2, .locked), (3, .cancelled), (4, .failed), (5, .lockout),
      (6, .lockoutPermanent), (7, .notEnrolled), (8, .invalidated), (9, .unavailable),
      (10, .failed), (-1, .failed), (.max, .failed), (.min, .failed),
    ] as [(Int32, KeyRefusal)])
  func answers(answer: Int32, expected: KeyRefusal) throws {
    let host = Host()
    let key = try fixedKey()
    host.answer = answer
    expect(load(host), equals: expected)
    expect(refusal { () throws(KeyRefusal) in try host.store.save(key, .device) }, equals: expected)
    let erasing = refusal { () throws(KeyRefusal) in try host.store.erase(.device) }
    expect(erasing, equals: (expected == .notFound ? nil : expected))
  }

  @Test("A length other than a key's is a failure", arguments: [0, 1, 31, 33, 64, -1, .max, .min])
  func lengths(length: Int) throws {
    try Vault.start()
    let host = Host()
    host.keys["device"] = Array(repeating: 7, count: 32)
    expect(load(host), equals: nil)
    host.length = length
    expect(load(host), equals: .wrongLength)
  }

  @Test("A stored key that is too long or too short is a failure", arguments: [0, 16, 31, 33, 64])
  func otherKeys(count: Int) throws {
    try Vault.start()
    let host = Host()
    host.keys["device"] = Array(repeating: 7, count: count)
    expect(load(host), equals: .wrongLength)
  }

  @Test("A checked store notices what was not kept, and what was not erased")
  func checking() throws {
    try Vault.start()
    let host = Host()
    let store = CheckedKeyStore(host.store)
    let key = try fixedKey()
    func save(_ name: KeyName) -> KeyRefusal? {
      refusal { () throws(KeyRefusal) in try store.save(key, name, beside: nil) }
    }
    expect(save(.session), equals: nil)
    expect(refusal { () throws(KeyRefusal) in try store.erase(.session) }, equals: nil)
    host.forgets = true
    expect(save(.session), equals: .notFound)
    expect(store.trouble?.text("told"), equals: "told, read_back, session, not_found")
    expect(save(.device), equals: .notFound)
    expect(save(.biometric), equals: nil, "it is behind presence")
    host.keys["device"] = [UInt8](repeating: 1, count: 32)
    expect(save(.device), equals: .otherKey)
    expect(store.trouble?.text("told"), equals: "told, read_back, device, other_key")
    expect(refusal { () throws(KeyRefusal) in try store.erase(.device) }, equals: .stillThere)
    expect(store.trouble?.text("told"), equals: "told, erase, device, still_there")
  }

  @Test("A trouble is remembered until the same operation succeeds")
  func troubles() throws {
    try Vault.start()
    let host = Host()
    let store = CheckedKeyStore(host.store)
    let key = try fixedKey()
    func load(_ name: KeyName) { _ = refusal { () throws(KeyRefusal) in _ = try store.load(name) } }
    expect(store.trouble == nil)
    host.answer = 2
    load(.session)
    expect(store.trouble?.text("told"), equals: "told, load, session, locked")
    host.answer = 0
    try store.save(key, .device, beside: nil)
    expect(store.trouble?.text("told"), equals: "told, load, session, locked", "another operation")
    try store.save(key, .session, beside: nil)
    load(.session)
    expect(store.trouble == nil)
  }

  @Test("A store that loses the device key beside another one gets it back")
  func mixing() throws {
    try Vault.start()
    let host = Host()
    let store = CheckedKeyStore(host.store)
    let device = try fixedKey()
    host.keys["device"] = [UInt8](repeating: 1, count: 32)
    let refused = refusal { () throws(KeyRefusal) in
      try store.save(try! fixedKey(1), .session, beside: NamedKey(device, .device))
    }
    expect(refused, equals: .otherKey)
    expect(store.trouble?.text("told"), equals: "told, read_back, device, other_key")
    expect(host.keys["device"], equals: Array(0..<32))
  }

  @Test("The context is destroyed once, with the store")
  func destroying() {
    let host = Host()
    do {
      let store = HostKeyStore(
        context: Unmanaged.passUnretained(host).toOpaque(), load: { _, _, _, _, _ in 0 },
        save: { _, _, _, _, _ in 0 }, erase: { _, _ in 0 },
        destroy: { context in Host.at(context)?.destroyed += 1 })
      withExtendedLifetime(store) { expect(host.destroyed, equals: 0) }
    }
    expect(host.destroyed, equals: 1)
  }

  @Test("OK without a length is a failure, because nothing was written")
  func silence() throws {
    try Vault.start()
    let store = HostKeyStore(
      context: nil, load: { _, _, _, _, _ in 0 }, save: { _, _, _, _, _ in 0 },
      erase: { _, _ in 0 })
    expect(refusal { () throws(KeyRefusal) in _ = try store.load(.device) }, equals: .wrongLength)
  }
}
