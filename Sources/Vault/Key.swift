public import Base
import CSodium

/// The place that a sealed value belongs to. It is authenticated with the value, so that values
/// cannot be swapped between rows, columns, owners, organisations or databases.
public struct SealContext {
  let table: StaticCString
  let row: [UInt8]
  let owner: [UInt8]
  let column: StaticCString
  /// Empty for values that belong to no organisation, or name it themselves.
  let org: [UInt8]

  public init(
    table: StaticCString, row: [UInt8] = [], owner: [UInt8] = [], column: StaticCString,
    org: [UInt8] = []
  ) {
    self.table = table
    self.row = row
    self.owner = owner
    self.column = column
    self.org = org
  }

  fileprivate var associatedData: [UInt8] {
    let size = 1 + table.count + row.count + owner.count + column.count + org.count + 5 * 2
    return Message.bytes(lengthBytes: 2, most: size) { message in
      message.append(Key.version)
      message.append(table.bytes)
      message.append(row)
      message.append(owner)
      message.append(column.bytes)
      if !org.isEmpty { message.append(org) }
    }
  }
}

/// A list of parts as bytes, each after its length, so that different lists give different bytes.
private struct Message {
  private var end: UnsafeMutableRawPointer
  private let lengthBytes: Int

  /// What `write` appends, `most` bytes at most.
  static func bytes(
    lengthBytes: Int, most: Int, _ write: (inout Message) -> Void
  ) -> [UInt8] {
    [UInt8](unsafeUninitializedCapacity: most) { room, count in
      guard let start = UnsafeMutableRawPointer(room.baseAddress) else { return }
      var message = Message(end: start, lengthBytes: lengthBytes)
      write(&message)
      count = message.end - start
    }
  }

  mutating func append(_ byte: UInt8) {
    end.storeBytes(of: byte, as: UInt8.self)
    end += 1
  }

  mutating func append(_ part: UnsafeRawBufferPointer) {
    for byte in stride(from: lengthBytes - 1, through: 0, by: -1) {
      append(UInt8(truncatingIfNeeded: part.count >> (8 * byte)))
    }
    guard let start = part.baseAddress else { return }
    end.copyMemory(from: start, byteCount: part.count)
    end += part.count
  }

  mutating func append(_ part: [UInt8]) { part.withUnsafeBytes { append($0) } }
}

/// A 256-bit key. It seals values, wraps other keys, derives further keys, and makes look-up tags.
///
/// A value is sealed with XChaCha20-Poly1305 (libsodium) and a fresh random nonce. It is padded to
/// a multiple of 64 bytes (ISO/IEC 7816-4) to hide its length. The sealed form is: version (1
/// byte), nonce (24), ciphertext with tag (16).
public final class Key {
  static var version: UInt8 { 1 }
  public static var size: Int { 32 }
  private static var block: Int { 64 }
  private static var nonceSize: Int { 24 }
  private static var tagSize: Int { 16 }
  private static var overhead: Int { 1 + nonceSize + tagSize }

  public let secret: SecretBytes

  /// nil when there are not 32 bytes.
  public init?(_ secret: SecretBytes) {
    guard secret.count == Key.size else { return nil }
    self.secret = secret
  }

  private init(fresh: SecretBytes) { secret = fresh }

  public static func random() throws(Failure) -> Key {
    Key(fresh: try SecretBytes.random(count: size))
  }

  /// Derives the key for a purpose (BLAKE2b, libsodium's crypto_kdf).
  public func derived(_ purpose: Purpose) throws(Failure) -> Key {
    let result = try SecretBytes(count: Key.size, room: .guarded)
    let done = "holdfast".withCString { context in
      crypto_kdf_blake2b_derive_from_key(
        result.start.assumingMemoryBound(to: UInt8.self), Key.size, purpose.rawValue, context,
        secret.start.assumingMemoryBound(to: UInt8.self))
    }
    guard done == 0 else { throw .defect("a key could not be derived") }
    return Key(fresh: result)
  }

  public enum Purpose: UInt64, Sendable {
    /// Makes the tags that find rows.
    case lookup = 1
    /// Seals notices, which any user of the device may read.
    case notices = 2
    /// Seals the verifiers of pending sign-ins.
    case signIns = 3
    /// Seals the sessions that wait to be revoked.
    case revocations = 4
    /// Derives the queue keys of all users.
    case queues = 5
  }

  /// Derives the key for a value, such as a user, by keyed BLAKE2b with 256 bits.
  public func derived(for value: [UInt8]) throws(Failure) -> Key {
    let result = try SecretBytes(count: Key.size, room: .guarded)
    guard
      Key.blake2b(
        UnsafeMutableRawBufferPointer(start: result.start, count: Key.size), of: value,
        key: secret.bytes)
    else { throw .defect("a key could not be derived") }
    return Key(fresh: result)
  }

  /// Keyed BLAKE2b (RFC 7693). The length of the output is part of the hashed input.
  static func blake2b(
    _ output: UnsafeMutableRawBufferPointer, of message: [UInt8], key: UnsafeRawBufferPointer
  ) -> Bool {
    guard let room = output.baseAddress else { return false }
    return crypto_generichash(
      room.assumingMemoryBound(to: UInt8.self), output.count, message,
      UInt64(message.count), key.baseAddress?.assumingMemoryBound(to: UInt8.self), key.count) == 0
  }

  /// Compares in constant time.
  public func isEqual(to other: Key) -> Bool {
    sodium_memcmp(secret.start, other.secret.start, Key.size) == 0
  }

  // MARK: Sealing

  /// Seals a value: version, nonce, ciphertext with tag.
  public func seal(
    _ plain: UnsafeRawBufferPointer, _ context: SealContext
  ) throws(Failure) -> [UInt8] {
    let padded = (plain.count / Key.block + 1) * Key.block
    var result = [UInt8](repeating: 0, count: Key.overhead + padded)
    result[0] = Key.version
    let done = result.withUnsafeMutableBytes { out -> Bool in
      guard let nonce = out.baseAddress.map({ $0 + 1 }) else { return false }
      randombytes_buf(nonce, Key.nonceSize)
      let text = nonce + Key.nonceSize
      if let source = plain.baseAddress {
        text.copyMemory(from: source, byteCount: plain.count)
      }
      let isPadded =
        sodium_pad(
          nil, text.assumingMemoryBound(to: UInt8.self), plain.count, Key.block, padded) == 0
      return isPadded
        && encrypt(text, padded, nonce: nonce, associated: context.associatedData)
    }
    guard done else { throw .defect("a value could not be sealed") }
    return result
  }

  /// Encrypts with XChaCha20-Poly1305 (draft-irtf-cfrg-xchacha-03), in place: the ciphertext, then the
  /// tag.
  func encrypt(
    _ text: UnsafeMutableRawPointer, _ count: Int, nonce: UnsafeRawPointer, associated: [UInt8]
  ) -> Bool {
    let bytes = text.assumingMemoryBound(to: UInt8.self)
    return crypto_aead_xchacha20poly1305_ietf_encrypt(
      bytes, nil, bytes, UInt64(count), associated, UInt64(associated.count), nil,
      nonce.assumingMemoryBound(to: UInt8.self), secret.start.assumingMemoryBound(to: UInt8.self))
      == 0
  }

  /// Decrypts; false when the tag does not match.
  func decrypt(
    _ cipher: UnsafeRawBufferPointer, nonce: UnsafeRawPointer, associated: [UInt8],
    to plain: UnsafeMutableRawPointer
  ) -> Bool {
    guard let start = cipher.baseAddress else { return false }
    return crypto_aead_xchacha20poly1305_ietf_decrypt(
      plain.assumingMemoryBound(to: UInt8.self), nil, nil,
      start.assumingMemoryBound(to: UInt8.self), UInt64(cipher.count), associated,
      UInt64(associated.count), nonce.assumingMemoryBound(to: UInt8.self),
      secret.start.assumingMemoryBound(to: UInt8.self)) == 0
  }

  public func seal(_ value: JSON, _ context: SealContext) throws(Failure) -> [UInt8] {
    // Keep the text alive: it is zeroed when it is released, which may happen after its last use.
    let text = try value.text()
    defer { withExtendedLifetime(text) {} }
    return try seal(text.bytes, context)
  }

  /// Whether bytes have the form of a sealed value.
  public static func isSealed(_ bytes: [UInt8]) -> Bool {
    bytes.count > overhead && bytes[0] == version && (bytes.count - overhead) % block == 0
  }

  /// Opens a sealed value; nil when it is not authentic: damaged, of another place, or sealed with
  /// another key.
  public func open(
    _ sealed: [UInt8], _ context: SealContext, room: SecretBytes.Room = .heap
  ) throws(Failure) -> SecretBytes? {
    guard sealed.count > Key.overhead, sealed[0] == Key.version else { return nil }
    let padded = try SecretBytes(count: sealed.count - Key.overhead, room: .heap)
    let done = sealed.withUnsafeBytes { all -> Bool in
      guard let base = all.baseAddress else { return false }
      return decrypt(
        UnsafeRawBufferPointer(rebasing: all[(1 + Key.nonceSize)...]), nonce: base + 1,
        associated: context.associatedData, to: padded.start)
    }
    guard done else { return nil }
    var count = 0
    guard
      sodium_unpad(
        &count, padded.start.assumingMemoryBound(to: UInt8.self), padded.count, Key.block) == 0
    else { return nil }
    return try padded.first(count, room: room)
  }

  /// Opens a sealed JSON value; nil when it is not authentic.
  public func openJSON(_ sealed: [UInt8], _ context: SealContext) throws(Failure) -> JSON? {
    guard let plain = try open(sealed, context) else { return nil }
    do throws(Failure) { return try JSON.parse(plain.bytes) } catch
      where error.code != .memoryExhausted
    {
      return nil
    }
  }

  // MARK: Wrapping

  public func wrap(_ key: Key, _ context: SealContext) throws(Failure) -> [UInt8] {
    try seal(key.secret.bytes, context)
  }

  public func unwrap(_ wrapped: [UInt8], _ context: SealContext) throws(Failure) -> Key? {
    guard let bytes = try open(wrapped, context, room: .guarded) else { return nil }
    return Key(bytes)
  }

  // MARK: Look-up tags

  public static var tagLength: Int { 16 }

  /// A tag made with keyed BLAKE2b. It finds a row by a value that the file does not reveal.
  public func tag(_ domain: StaticCString, _ parts: [UInt8]...) -> [UInt8] {
    let size = parts.reduce(domain.count + 4) { $0 + $1.count + 4 }
    let message = Message.bytes(lengthBytes: 4, most: size) { message in
      message.append(domain.bytes)
      for part in parts { message.append(part) }
    }
    var result = [UInt8](repeating: 0, count: Key.tagLength)
    _ = result.withUnsafeMutableBytes { Key.blake2b($0, of: message, key: secret.bytes) }
    return result
  }
}

/// SHA-256 and base64url, as PKCE (RFC 7636) and OpenID Connect nonces use them.
public enum Digest {
  public static func sha256(_ bytes: UnsafeRawBufferPointer) -> [UInt8] {
    var result = [UInt8](repeating: 0, count: 32)
    crypto_hash_sha256(
      &result, bytes.baseAddress?.assumingMemoryBound(to: UInt8.self), UInt64(bytes.count))
    return result
  }

  /// BLAKE2b with 256 bits, without a key: for what the files of the library alone compare.
  public static func blake2b(_ bytes: UnsafeRawBufferPointer) -> [UInt8] {
    var result = [UInt8](repeating: 0, count: 32)
    crypto_generichash(
      &result, result.count, bytes.baseAddress?.assumingMemoryBound(to: UInt8.self),
      UInt64(bytes.count), nil, 0)
    return result
  }

  /// Without padding (RFC 4648 §5).
  public static func base64URL(_ bytes: [UInt8]) -> String {
    let length = (bytes.count * 4 + 2) / 3
    return String(unsafeUninitializedCapacity: length + 1) { room in
      guard let start = UnsafeMutableRawPointer(room.baseAddress) else { return 0 }
      sodium_bin2base64(
        start.assumingMemoryBound(to: CChar.self), room.count, bytes, bytes.count,
        sodium_base64_VARIANT_URLSAFE_NO_PADDING)
      return length
    }
  }

  /// Decodes base64url with or without padding; nil for anything else.
  public static func fromBase64URL(_ text: UnsafeRawBufferPointer) throws(Failure) -> SecretBytes? {
    let result = try SecretBytes(count: text.count, room: .heap)
    var count = 0
    let start = text.baseAddress?.assumingMemoryBound(to: CChar.self)
    for variant in [sodium_base64_VARIANT_URLSAFE_NO_PADDING, sodium_base64_VARIANT_URLSAFE] {
      if sodium_base642bin(
        result.start.assumingMemoryBound(to: UInt8.self), result.count, start, text.count, nil,
        &count, nil, variant) == 0
      {
        return try SecretBytes(
          copying: UnsafeRawBufferPointer(rebasing: result.bytes[0..<count]), room: .heap)
      }
    }
    return nil
  }
}
