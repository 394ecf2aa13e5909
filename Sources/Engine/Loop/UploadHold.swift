import Base
import Policy
import Store
import Supabase

/// What holds uploads back though the session is open.
struct UploadHold {
  /// `offline`, `token`: an access token has to be refreshed first; or the code of the pause of uploads.
  let code: MessageCode
  /// The pause of what is awaited: of the refresh, or of uploads. nil: the refresh is sent next.
  let pause: ServicePauses.Pause?
  /// Of both pauses the one that ends last: nothing is uploaded before.
  let last: ServicePauses.Pause?
}

extension Refresh {
  /// The one place that says whether uploads are held; nil: they are not. `Scheduler` sends by it, and `sync_now`,
  /// `sync_status` and `queue_explain` tell it.
  func uploadHold(_ now: Instant) throws(Failure) -> UploadHold? {
    let own = try pauses.pause(.upload, now)
    let isOnline = reachability.isOnline
    if let session = sessions.session, try isNeeded(session, try sessions.row(), now) {
      let token = try pauses.pause(.refresh, now)
      let isLast = own?.untilMS ?? .min > token?.untilMS ?? .min
      return UploadHold(
        code: isOnline ? .token : .offline, pause: token, last: isLast ? own : token)
    }
    if !isOnline { return UploadHold(code: .offline, pause: own, last: own) }
    return own.map { UploadHold(code: $0.code, pause: own, last: own) }
  }
}
