import CPlatform

/// The holder of a lease: 32 bytes that identify the boot, the process (id and start time) and the
/// handle. A lease whose holder no longer runs is void.
public struct Holder: Sendable {
  public let bytes: [UInt8]

  /// The holder for a new handle of this process; `nonce` tells its handles apart.
  public init(bootID: String, nonce: UInt64) {
    let process = platform_process_id()
    let start = UInt64(bitPattern: platform_process_start(process))
    bytes = [UInt8](bigEndian: Holder.hash(bootID), UInt64(process), start, nonce)
  }

  /// Whether the process that made these bytes still runs. False for malformed bytes.
  public static func isAlive(_ bytes: [UInt8], bootID: String) -> Bool {
    guard bytes.count == 32, word(bytes, 0) == hash(bootID),
      let process = Int32(exactly: word(bytes, 8))
    else { return false }
    let start = platform_process_start(process)
    let known = Int64(bitPattern: word(bytes, 16))
    // Where the system does not tell when a process began, every process of that id is its holder: the
    // lease has an end.
    let isUnknown = start == unknownStart || known == unknownStart
    return start != 0 && (isUnknown || start == known)
  }

  private static var unknownStart: Int64 { Int64(PLATFORM_START_UNKNOWN) }

  /// FNV-1a, which is sufficient to tell boots apart.
  public static func hash(_ text: String) -> UInt64 {
    var result: UInt64 = 0xcbf2_9ce4_8422_2325
    var copy = text
    copy.withUTF8 { bytes in
      for byte in bytes { result = (result ^ UInt64(byte)) &* 0x100_0000_01b3 }
    }
    return result
  }

  private static func word(_ bytes: [UInt8], _ at: Int) -> UInt64 {
    UInt64(bigEndian: bytes[at..<at + 8])
  }
}
