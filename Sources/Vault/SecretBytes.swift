public import Base
import CPlatform
import CSodium

/// Bytes of a secret. They are zeroed when released, and never held in a Swift String or Array,
/// whose copies would stay in memory.
///
/// Keys and tokens live in `guarded` memory: pages that libsodium locks into RAM, surrounds with
/// guard pages, and leaves out of core dumps. Such an allocation costs four pages and several
/// system calls, so secrets of up to 4 kB share a page: `platform_secret_take`
/// (CPlatform/secrets.c) divides it into slots of 64 bytes. Texts that only pass through (a request
/// body, a response) live on the `heap`.
public final class SecretBytes {
  /// The memory for the bytes.
  public enum Room: Sendable {
    /// The guarded pages of libsodium: for keys and tokens.
    case guarded
    /// The ordinary heap: for texts that pass through.
    case heap
  }

  let start: UnsafeMutableRawPointer
  public private(set) var count: Int
  private let capacity: Int
  private let room: Room

  /// Throws `memory.exhausted`.
  public init(count: Int, room: Room) throws(Failure) {
    capacity = max(count, 1)
    let taken: UnsafeMutableRawPointer?
    switch room {
    case .guarded:
      taken = platform_secret_take(capacity) { count in
        let made = sodium_malloc(count)
        // libsodium locks the pages and does not say if it could not. Locking them again is no change.
        if let made, sodium_mlock(made, count) != 0 { platform_secret_not_locked() }
        return made
      }
      Vault.warnIfNotLocked()
    case .heap: taken = UnsafeMutableRawPointer.allocate(byteCount: capacity, alignment: 16)
    }
    guard let taken else { throw Failure(.memoryExhausted, "no memory for a secret") }
    start = taken
    self.count = count
    self.room = room
  }

  public convenience init(
    copying bytes: UnsafeRawBufferPointer, room: Room = .guarded
  ) throws(Failure) {
    try self.init(count: bytes.count, room: room)
    if let source = bytes.baseAddress { start.copyMemory(from: source, byteCount: bytes.count) }
  }

  /// The bytes that `write` puts into a buffer of `capacity` bytes; it returns their number.
  public static func written(
    capacity: Int, room: Room = .guarded, by write: (UnsafeMutableRawBufferPointer) -> Int
  ) throws(Failure) -> SecretBytes {
    let scratch = try SecretBytes(count: capacity, room: .heap)
    defer { withExtendedLifetime(scratch) {} }
    let used = min(max(write(scratch.mutableBytes), 0), capacity)
    return try scratch.first(used, room: room)
  }

  /// The first bytes, in that room: in these bytes if they lie there, so that this object has no more.
  func first(_ count: Int, room: Room) throws(Failure) -> SecretBytes {
    guard self.room == .heap, room == .heap else {
      return try SecretBytes(
        copying: UnsafeRawBufferPointer(rebasing: bytes[..<count]), room: room)
    }
    sodium_memzero(start + count, self.count - count)
    self.count = count
    return self
  }

  deinit {
    switch room {
    case .guarded:
      if !platform_secret_give(start, capacity) { sodium_free(start) }
    case .heap:
      sodium_memzero(start, count)
      start.deallocate()
    }
  }

  public var bytes: UnsafeRawBufferPointer { UnsafeRawBufferPointer(start: start, count: count) }

  var mutableBytes: UnsafeMutableRawBufferPointer {
    UnsafeMutableRawBufferPointer(start: start, count: count)
  }

  /// Fresh random bytes.
  public static func random(count: Int) throws(Failure) -> SecretBytes {
    let result = try SecretBytes(count: count, room: .guarded)
    randombytes_buf(result.start, count)
    return result
  }

  /// The text of a JSON string, copied without a Swift String; nil for other kinds.
  public static func text(of value: JSON) throws(Failure) -> SecretBytes? {
    try value.withUTF8 { (bytes) throws(Failure) in try SecretBytes(copying: bytes) }
  }

  /// The bytes as a JSON string, in memory that jansson zeroes when it is released.
  public var json: JSON { .string(bytes) }
}

/// Random numbers of the kernel.
public enum Random {
  public static func word() -> UInt64 {
    var result: UInt64 = 0
    randombytes_buf(&result, MemoryLayout<UInt64>.size)
    return result
  }

  public static func bytes(_ count: Int) -> [UInt8] {
    var result = [UInt8](repeating: 0, count: count)
    randombytes_buf(&result, count)
    return result
  }

  public static func uuid(at milliseconds: Int64) -> UUID {
    var words: (UInt64, UInt64) = (0, 0)
    randombytes_buf(&words, MemoryLayout.size(ofValue: words))
    return UUID(version7At: milliseconds, random: words)
  }
}

/// The start of the module.
public enum Vault {
  /// Prepares libsodium; safe to call from any thread, any number of times.
  public static func start() throws(Failure) {
    guard sodium_init() >= 0 else { throw .defect("libsodium did not start") }
    warnIfNotLocked()
  }

  /// One line in the log, once per process.
  static func warnIfNotLocked() {
    guard platform_secret_warns() else { return }
    Log.line(
      .warning, "keys and tokens are not locked in memory and may be swapped: raise RLIMIT_MEMLOCK")
  }
}
