import Base
import CPlatform
import Store

/// Room that is kept on the disk for the calls that must work when it is full: those that finish what
/// is in flight, lock or log out.
///
/// The room is the file `holdfast.reserve`. When such a call finds the disk full, the file is emptied,
/// the log is copied into the main file, and the call runs again. From then on the log is written from
/// its beginning, so the following transactions need no new room until it has its former size. An add
/// or an edit first makes the reserve anew and is refused when there is no room for it.
final class Reserve {
  /// 1 MiB: 20 transactions of the usual size, if the log cannot be copied.
  static var size: Int64 { 1 << 20 }

  private let core: Core

  init(_ core: Core) { self.core = core }

  private var path: String { core.configuration.dataFolder + "/holdfast.reserve" }

  /// Make the reserve if it is not there. Throws `storage.full`; another failure is no reason to refuse
  /// a call.
  func make() throws(Failure) {
    guard platform_size(path) < Reserve.size else { return }
    let problem = Int(platform_reserve(path, Reserve.size))
    if problem == PLATFORM_NO_SPACE {
      throw Database.failure(ofSystem: problem, "the reserve could not be made")
    }
  }

  /// Give the room to the call that runs. Returns whether it is worth another try.
  func release() -> Bool {
    let isReleased = platform_size(path) > 0 && platform_empty(path) == 0
    if isReleased { Log.line(.warning, "the disk is full; the reserve is used") }
    return core.database.shortenLog() || isReleased
  }
}
