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

  /// Count what an item adds and takes away, but not what lies before `since`.
  mutating func add(_ counted: Counted, since: Int64?) {
    add(counted.added, 1, since)
    add(counted.removed, -1, since)
  }

  private mutating func add(_ registered: Registered?, _ sign: Int64, _ since: Int64?) {
    guard let registered else { return }
    if let since, let at = registered.atMS, at < since { return }
    activities += sign
    minutes += sign * registered.minutes
  }
}

/// What a queued item changes in the figures: an insert adds a registration, a deletion takes one away, and a change
/// does both.
struct Counted {
  let added: Registered?
  let removed: Registered?

  /// A row that the server has stored.
  init?(stored row: JSON, _ item: QueueItem, _ backend: Backend) {
    guard item.kind == backend.summaryKind, !item.mayBeCounted else { return nil }
    (added, removed) = (Registered(row, item.occurredAtMS), nil)
  }

  /// nil for an item of a kind that the summary does not count, and for one that the server's figures
  /// may count already.
  init?(_ item: QueueItem, _ backend: Backend) {
    guard item.kind == backend.summaryKind, !item.mayBeCounted else { return nil }
    removed = item.stored.map { Registered($0.counted ?? $0.row, nil) }
    switch item.operation {
    case .insert: added = item.isCancelled ? nil : Registered(item.payload, item.occurredAtMS)
    case .change:
      added = item.stored.map { Registered($0.row.laidOver(by: item.payload), nil) }
    case .delete: added = nil
    }
  }
}

/// What the summary counts of a row.
struct Registered {
  let minutes: Int64
  /// The time of the visit.
  let atMS: Int64?

  /// Above any real entry; sums stay exact in JSON.
  private static var maxMinutes: Int64 { 1_000_000 }

  init(_ row: JSON, _ occurredAtMS: Int64?) {
    minutes = min(max(0, Registered.integer(row["minutes"]) ?? 0), Registered.maxMinutes)
    atMS = row.string("occurred_at").flatMap { ISO8601.parse($0) } ?? occurredAtMS
  }

  /// The server reads an integer from a text, too.
  private static func integer(_ value: JSON?) -> Int64? {
    value?.withUTF8 { try? JSON.parse($0, scalars: true) }.map { $0?.int } ?? value?.int
  }
}
