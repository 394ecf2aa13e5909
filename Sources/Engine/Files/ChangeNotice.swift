import CPlatform
import Store

/// Tells the other handles on the folder, here and in other processes, that this one changed the
/// main file. Their hosts poll then.
final class ChangeNotice {
  let path: String
  private let descriptor: Int32
  /// The connection and the number of its changes at the last look.
  private var seen: (database: Database?, changes: Int32) = (nil, 0)

  init(folder: String) {
    path = folder + "/holdfast.notice"
    descriptor = platform_notice_open(path)
  }

  /// Also wakes the others: what this handle held is free now.
  deinit { platform_notice_close(descriptor) }

  /// Wake the other processes if the connection has changed rows since the last call. Returns
  /// whether it has.
  func giveIfChanged(_ database: Database) -> Bool {
    let changes = database.changes
    guard seen.database !== database || seen.changes != changes else { return false }
    seen = (database, changes)
    platform_notice_give(descriptor)
    return true
  }
}
