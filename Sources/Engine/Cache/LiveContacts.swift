import Base
import Policy
import Supabase
import Vault

/// A contact that a screen asked the server for.
struct LiveRequest {
  let number: Int64
  let contact: UUID
  let org: UUID?
  /// When the host is told at the latest, by the monotonic clock.
  let deadlineMS: Int64
  var isSent = false
  /// Why there will be no contact; the next `holdfast_next` says so.
  var ending: MessageCode?
}

/// Live reads of single contacts with their network-only columns. What they bring goes to the screen that
/// asked, and is stored nowhere. Every request is answered once: what ends it
/// early gives the reason, and its deadline ends it at the latest.
final class LiveContacts {
  private static var limitMS: Int64 { 30_000 }

  private var requests: [LiveRequest] = []
  private var lastNumber: Int64 = 0

  /// Ask for a contact; the number is in the answer.
  func add(_ contact: UUID, in org: UUID?, _ now: Instant) -> Int64 {
    lastNumber += 1
    requests.append(
      LiveRequest(
        number: lastNumber, contact: contact, org: org,
        deadlineMS: now.monotonicMS + LiveContacts.limitMS))
    return lastNumber
  }

  var next: LiveRequest? { requests.first { !$0.isSent && $0.ending == nil } }

  /// Whether the request was not answered yet.
  func isOpen(_ live: LiveRequest) -> Bool {
    requests.contains { $0.number == live.number && $0.ending == nil }
  }

  func markSent(_ live: LiveRequest) { mark(live, isSent: true) }

  /// Ask again: the response belongs to an earlier access token.
  func resend(_ live: LiveRequest) { mark(live, isSent: false) }

  private func mark(_ live: LiveRequest, isSent: Bool) {
    for index in requests.indices where requests[index].number == live.number {
      requests[index].isSent = isSent
    }
  }

  // MARK: Ending

  /// There will be no contact for these requests.
  func end(_ reason: MessageCode, where isMeant: (LiveRequest) -> Bool = { _ in true }) {
    for index in requests.indices where requests[index].ending == nil && isMeant(requests[index]) {
      requests[index].ending = reason
    }
  }

  /// The first request that ended without a contact, or whose time is up.
  func firstEnded(_ now: Instant) -> LiveRequest? {
    requests.first { $0.ending != nil || $0.deadlineMS <= now.monotonicMS }
  }

  /// When the first time is up, by the monotonic clock.
  var nextDeadlineMS: Int64? { requests.lazy.map { $0.deadlineMS }.min() }

  func remove(_ live: LiveRequest) { requests.removeAll { $0.number == live.number } }
}
