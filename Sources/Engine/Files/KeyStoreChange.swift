import Base
import Store
import Vault

/// Refuses a folder whose key another kind of key store has than the configuration names.
///
/// The configured key store would not have the key, and the files would be set aside as if it were lost,
/// unsent items included. A key that is lost is something else, and leads to the sign-in: so key files
/// count only if they open the main file, and a host's key store only if it was noted when it sealed it.
enum KeyStoreChange {
  static func refuse(_ configuration: Configuration, _ database: Database) throws(Failure) {
    let folder = configuration.dataFolder
    // Nearly always it is as expected, and then this is all that a start does.
    guard configuration.usesKeyFiles != FileKeyStore.hasDevice(in: folder) else { return }
    let meta = MetaTable(database)
    guard let check = try meta.blob(.keyCheck) else { return }
    let text: StaticCString
    if configuration.usesKeyFiles {
      guard try meta.int(.hasHostKeys) != nil else { return }
      text = "the key of this folder is in the host's key store: use that, or another data_dir"
    } else {
      guard let device = try? FileKeyStore(folder: folder + "/keys").load(.device),
        try KeyRing.opens(check, device)
      else { return }
      text = "the key of this folder is in its key files: {\"kind\":\"file\"}, or another data_dir"
    }
    Log.line(.warning, text.string)
    throw Failure(.requestInvalidValue, text, field: "/keystore/kind")
  }
}
