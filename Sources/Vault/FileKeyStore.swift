import Base
import CPlatform

/// A key store that keeps keys in files (mode 0600) of a folder: for development, servers and
/// kiosks.
///
/// It protects the keys from other users of the machine, but not from anyone who can read the
/// folder. It has no prompt, so it releases the key `biometric` without the user's presence.
public final class FileKeyStore: KeyStore {
  private let folder: String

  public init(folder: String) { self.folder = folder }

  /// Whether the data folder has a file for the device key.
  public static func hasDevice(in dataFolder: String) -> Bool {
    platform_exists_in(dataFolder, "/keys/device.key")
  }

  private func path(_ name: KeyName) -> String { folder + "/" + name.text + ".key" }

  public func load(_ name: KeyName) throws(KeyRefusal) -> Key {
    guard let room = try? SecretBytes(count: Key.size + 1, room: .guarded) else { throw .failed }
    var length = 0
    // `PrivateFile.check` has told the host of a file that is not private when the folder was opened.
    let problem = platform_read_secret(path(name), room.start, room.count, &length)
    if Int(problem) == PLATFORM_NO_ENTRY { throw .notFound }
    guard problem == 0 else { throw .failed }
    guard length == Key.size else { throw .damaged }
    guard
      let bytes = try? SecretBytes(
        copying: UnsafeRawBufferPointer(rebasing: room.bytes[0..<length])),
      let key = Key(bytes)
    else { throw .failed }
    return key
  }

  public func save(_ key: Key, _ name: KeyName) throws(KeyRefusal) {
    guard platform_folder(folder) == 0, platform_check_file(folder) == 0 else {
      throw .failed
    }
    // Renaming a new file over the old one would leave the old bytes on the disk. Without `session` the
    // session is locked, so a crash after they are overwritten costs an unlock.
    let problem =
      name == .session
      ? platform_write_secret(path(name), key.secret.start, Key.size)
      : platform_write(path(name), key.secret.start, Key.size)
    guard problem == 0 else { throw .failed }
  }

  public func erase(_ name: KeyName) throws(KeyRefusal) {
    let problem = platform_erase(path(name))
    guard problem == 0 || Int(problem) == PLATFORM_NO_ENTRY else { throw .failed }
  }
}
