import Base
import Store
import Vault

/// Events for the host.
///
/// Transient events are in memory and handed out once. Durable events are sealed in the file; every
/// poll hands out all that the host has not acknowledged, up to a page. Only one that this handle
/// has not handed out yet is a reason to poll. Both kinds share one sequence of numbers, and a poll
/// returns them in its order.
final class EventQueue {
  /// The state that a poll changes, kept to undo a failed poll.
  struct Checkpoint {
    fileprivate var transient: [JSON] = []
    /// The newest durable event that this handle has handed out.
    fileprivate var deliveredSequence: Int64 = 0
  }

  /// Durable events in one poll.
  private static var pageSize: Int { 200 }
  private static var progressIntervalMS: Int64 { 200 }

  private let core: Core
  private var state = Checkpoint() { didSet { core.revision.advance() } }
  /// The state before this call's poll.
  private var beforePoll: Checkpoint?
  /// When the last `sync_progress` was emitted, by the monotonic clock.
  private var lastProgressMS: Int64 = -1000

  init(_ core: Core) { self.core = core }

  // MARK: Emitting

  /// Emit an event once. A newer `decision` replaces one that was not handed out.
  func emit(_ event: JSON) throws(Failure) {
    event.set("seq", .int(try core.meta.next(.eventSequence)))
    try JSON.checkMemory()
    if event.string("type") == "decision" { discard("decision") }
    state.transient.append(event)
  }

  /// Emit an event that stays until it is acknowledged. `owner` nil: for every user of the device.
  func emitDurable(_ event: JSON, owner: [UInt8]?) throws(Failure) {
    let keys = try core.keys()
    try core.database.transaction { () throws(Failure) in
      let sequence = try core.meta.next(.eventSequence)
      event.set("seq", .int(sequence))
      try core.durableEvents.add(
        sequence, owner: owner,
        sealed: try keys.durableEvents.seal(event, EventQueue.context(sequence)))
    }
  }

  /// Emit a `sync_progress` unless the last one is too recent; `make` returns nil if there is none.
  func emitProgress(
    _ now: Instant, _ make: () throws(Failure) -> JSON?
  ) throws(Failure) {
    guard now.monotonicMS - lastProgressMS >= EventQueue.progressIntervalMS,
      let event = try make()
    else { return }
    lastProgressMS = now.monotonicMS
    try emit(event)
  }

  /// Discard undelivered transient events of this type: they are no longer true, or the user may no
  /// longer see them.
  func discard(_ type: String) {
    var kept: [JSON] = []
    for event in state.transient where !EventQueue.isOf(type, event) { kept.append(event) }
    state.transient = kept
  }

  /// Whether an undelivered transient event has this type.
  func holds(_ type: String) -> Bool {
    state.transient.contains { EventQueue.isOf(type, $0) }
  }

  private static func isOf(_ type: String, _ event: JSON) -> Bool {
    event.string("type") == type
  }

  // MARK: Handing out

  func acknowledge(upTo sequence: Int64) throws(Failure) {
    try core.durableEvents.acknowledge(
      upTo: sequence, for: try core.sessionTable.read().owner)
  }

  /// Whether this handle has an event that it has not handed out.
  func hasUndelivered() throws(Failure) -> Bool {
    guard state.transient.isEmpty else { return true }
    guard core.keyRing.keys != nil else { return false }
    return try core.durableEvents.newest(for: try core.sessionTable.read().owner)
      > state.deliveredSequence
  }

  /// Take all transient events and the oldest durable ones, in the order of their numbers.
  func takeAll() throws(Failure) -> [JSON] {
    beforePoll = state
    var transient = state.transient[...]
    state.transient = []
    var result: [JSON] = []
    if let keys = core.keyRing.keys {
      let stored = try core.durableEvents.all(
        for: try core.sessionTable.read().owner, limit: EventQueue.pageSize)
      for (sequence, sealed) in stored {
        // An event that does not open was sealed with another device key; skip it.
        if let event = try keys.durableEvents.openJSON(sealed, EventQueue.context(sequence)) {
          while let first = transient.first, first.int("seq") ?? 0 < sequence {
            result.append(first)
            transient = transient.dropFirst()
          }
          result.append(event)
        }
        state.deliveredSequence = max(state.deliveredSequence, sequence)
      }
    }
    return result + transient
  }

  /// On failure, keep the events for the next poll.
  func restore() {
    guard let beforePoll else { return }
    state = beforePoll
    self.beforePoll = nil
  }

  /// A new call begins: the events of the last poll have reached the host.
  func confirm() { beforePoll = nil }

  private static func context(_ sequence: Int64) -> SealContext {
    SealContext(table: "notice", row: "\(sequence)".utf8.map { $0 }, column: "sealed")
  }
}
