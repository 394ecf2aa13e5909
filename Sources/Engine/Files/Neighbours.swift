import Base
import CPlatform
import Store

/// The other handles on the folder, in this process and in others.
///
/// What they do is read from the data file: each call looks whether one of them has committed since the
/// last one, and then asks the key store whether it still has the key of the open session
/// (`SessionKeys.confirm`). Handles of one process also wake each other's hosts (`Boundary`). A host that
/// waits looks at other processes once a second, while the app is on the screen.
final class Neighbours {
  private let descriptor: Int32
  /// The connection, and the number of rows that it had changed, at the end of the last call.
  private var told: (database: Database?, changes: Int32) = (nil, 0)
  /// One of them has written since the last look for work: the host should ask, whatever calls came
  /// between, because only a look finds another decision.
  var urgesLook = false

  init(folder: String) { descriptor = platform_neighbours_open(folder + "/holdfast.handles") }

  deinit { platform_neighbours_close(descriptor) }

  /// Whether there are any in other processes.
  var existElsewhere: Bool { platform_neighbours_exist(descriptor) }

  /// Whether this handle has changed rows since it was last asked.
  func takeChange(_ database: Database) -> Bool {
    let now = (database: database, changes: database.changes)
    defer { told = now }
    return told.database !== now.database || told.changes != now.changes
  }
}
