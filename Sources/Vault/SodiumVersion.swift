public import Base
import CSodium

extension Version {
  /// The version of the loaded libsodium.
  public static var libsodium: UnsafePointer<CChar>? { sodium_version_string() }
}
