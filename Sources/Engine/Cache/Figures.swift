import Base
import Policy
import Supabase

/// Registrations, counted as the summary counts them.
struct Figures {
  var activities: Int64 = 0
  var minutes: Int64 = 0

  init() {}

  init(_ json: JSON?) {
    activities = json?.int("activities") ?? 0
    minutes = json?.int("minutes") ?? 0
  }

  var json: JSON { ["activities": .int(activities), "minutes": .int(minutes)] }

  /// Count a registration unless it lies before `since`.
  mutating func add(_ registered: Registered, since: Int64?) {
    if let since, let at = registered.atMS, at < since { return }
    activities += 1
    minutes += registered.minutes
  }
}

/// What the summary counts of a queued item.
struct Registered {
  let minutes: Int64
  /// The time of the visit.
  let atMS: Int64?

  /// Above any real entry; sums stay exact in JSON.
  private static var maxMinutes: Int64 { 1_000_000 }

  /// nil for an item of a kind that the summary does not count, and for one that the server's figures
  /// may count already.
  init?(_ item: QueueItem, _ backend: Backend) {
    guard item.kind == backend.summaryKind, !item.mayBeCounted else { return nil }
    minutes = min(max(0, item.payload.int("minutes") ?? 0), Registered.maxMinutes)
    atMS = item.payload.string("occurred_at").flatMap { ISO8601.parse($0) } ?? item.occurredAtMS
  }
}
