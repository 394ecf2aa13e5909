import Base
import Store
import Vault

/// Events for the host.
///
/// Transient events live in memory and are handed out once. Durable events are sealed in the file
/// and stay until the host acknowledges them. Both kinds share one sequence of numbers, and polls hand
/// them out in its order, page by page: events that were not handed out yet come first, and while
/// some of them are held back, nothing with a higher number is handed out.
final class EventQueue {
  /// The state that a poll changes, kept to undo a failed poll.
  struct Checkpoint {
    fileprivate var transient: [JSON] = []
    /// Up to where this handle has handed out durable events, and to whom.
    fileprivate var handedOut = EventCursor()
    fileprivate var owner: [UInt8]?
    /// The host takes no events now, so they are no reason to poll.
    fileprivate var isPaused = false

    /// Events of another owner start anew. Nobody's stay handed out.
    fileprivate mutating func follow(_ owner: [UInt8]?) {
      guard let owner, owner != self.owner else { return }
      self.owner = owner
      handedOut.own = 0
    }
  }

  /// The most durable events in one poll.
  static var pageSize: Int { 200 }
  /// The most sealed bytes in one poll: events can name hundreds of items.
  private static var pageBytes: Int { 512 * 1024 }
  private static var progressIntervalMS: Int64 { 200 }
  /// How many numbers a commit reserves for transient events that follow.
  private static var reservation: Int64 { 32 }

  private let core: Core
  private var state = Checkpoint() { didSet { core.revision.advance() } }
  /// The state before this call's poll.
  private var beforePoll: Checkpoint?
  /// The last number that this handle gave or handed out. A file that replaces another one counts on
  /// from it, also where the old one's own number cannot be read.
  private var lastSequence: Int64 = 0
  /// The last number that this handle has reserved for transient events.
  private var reservedEnd: Int64 = 0
  /// When the last `sync_progress` was emitted, by the monotonic clock.
  private var lastProgressMS: Int64 = -1000

  init(_ core: Core) { self.core = core }

  // MARK: Emitting

  /// Emit an event once. A newer `decision` or `sync_progress` replaces one that was not handed out.
  func emit(_ event: JSON) throws(Failure) {
    event.set("seq", .int(try nextReserved()))
    try JSON.checkMemory()
    for type in ["decision", "sync_progress"] where EventQueue.isOf(type, event) { discard(type) }
    state.transient.append(event)
  }

  /// Emit an event that stays until it is acknowledged. `owner` nil: for every user of the device.
  func emitDurable(_ event: JSON, owner: [UInt8]?) throws(Failure) {
    let keys = try core.keys()
    // The number is given and used under one write lock, so events are stored in their order.
    try core.database.transaction { () throws(Failure) in
      let sequence = try nextSequence()
      event.set("seq", .int(sequence))
      try core.durableEvents.add(
        sequence, owner: owner,
        sealed: try keys.durableEvents.seal(event, EventQueue.context(sequence)))
    }
  }

  /// Emit a durable event of a damaged file again, under a new number: the old one may be given to another
  /// event meanwhile. False: its seal does not open.
  func emitAgain(
    _ sequence: Int64, owner: [UInt8]?, _ sealed: [UInt8], _ keys: KeyRing.Keys
  ) throws(Failure) -> Bool {
    lastSequence = max(lastSequence, sequence)
    guard let event = try keys.durableEvents.openJSON(sealed, EventQueue.context(sequence)) else {
      return false
    }
    try emitDurable(event, owner: owner)
    return true
  }

  /// A number above all that any handle has given, and the numbers after it for this handle's transient
  /// events.
  private func nextSequence() throws(Failure) -> Int64 {
    // So high only damage counts: the file that replaces the damaged one begins anew.
    if lastSequence > 1 << 51 { lastSequence = 0 }
    let count = EventQueue.reservation + 1
    lastSequence = try core.meta.next(.eventSequence, above: lastSequence, count: count)
    reservedEnd = lastSequence + count - 1
    return lastSequence
  }

  /// The number of a transient event, without a commit if one is reserved. What is reserved is given up
  /// when any handle has taken later numbers: events are handed out in the order of their numbers.
  private func nextReserved() throws(Failure) -> Int64 {
    guard lastSequence < reservedEnd, try core.meta.int(.eventSequence) == reservedEnd else {
      return try nextSequence()
    }
    lastSequence += 1
    return lastSequence
  }

  /// Emit a `sync_progress` unless the last one is too recent; `make` returns nil when there is nothing
  /// to tell.
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

  /// Take the contents out of undelivered events `contact`: the user may no longer see them. The host
  /// still learns that its request is over.
  func withdrawContacts(_ message: JSON) {
    for event in state.transient where EventQueue.isOf("contact", event) {
      event.set("contact", .null)
      event.set("message", message)
    }
  }

  /// Whether an undelivered transient event has this type.
  func holds(_ type: String) -> Bool {
    state.transient.contains { EventQueue.isOf(type, $0) }
  }

  private static func isOf(_ type: String, _ event: JSON) -> Bool {
    event.string("type") == type
  }

  // MARK: Handing out

  /// Delete the durable events up to `sequence` that this handle has handed out to this user.
  func acknowledge(upTo sequence: Int64) throws(Failure) {
    let owner = try core.sessionTable.read().owner
    state.follow(owner)
    try core.durableEvents.acknowledge(upTo: sequence, for: owner, within: state.handedOut)
  }

  /// Whether this handle has an event that it has not handed out and that the host would take.
  func hasUndelivered() throws(Failure) -> Bool {
    if state.isPaused { return false }
    guard state.transient.isEmpty else { return true }
    guard core.keyRing.keys != nil else { return false }
    let owner = try core.sessionTable.read().owner
    return try core.durableEvents.hasAny(for: owner, after: cursor(of: owner))
  }

  private func cursor(of owner: [UInt8]?) -> EventCursor {
    owner == nil || owner == state.owner
      ? state.handedOut : EventCursor(common: state.handedOut.common, own: 0)
  }

  /// Take the next events, in the order of their numbers: at most `limit` durable ones (0: no event at
  /// all), and the transient ones up to the first durable one that is held back. Durable ones that
  /// were handed out before come again, unless only new ones are wanted or others are held back.
  func take(limit: Int, onlyNew: Bool) throws(Failure) -> [JSON] {
    beforePoll = state
    state.isPaused = limit == 0
    if limit == 0 { return [] }
    var transient = state.transient[...]
    var result: [JSON] = []
    var held = Int64.max
    if let keys = core.keyRing.keys {
      let owner = try core.sessionTable.read().owner
      state.follow(owner)
      let page = try nextPage(owner, limit, onlyNew)
      for (sequence, sealed) in page.events {
        // An event that does not open was sealed with another device key; skip it.
        if let event = try keys.durableEvents.openJSON(sealed, EventQueue.context(sequence)) {
          while let first = transient.first, first.int("seq") ?? 0 < sequence {
            result.append(first)
            transient = transient.dropFirst()
          }
          result.append(event)
        }
      }
      if let last = page.events.last?.0 {
        lastSequence = max(lastSequence, last)
        state.handedOut.common = max(state.handedOut.common, last)
        if owner != nil { state.handedOut.own = max(state.handedOut.own, last) }
      }
      if let next = page.next { held = next }
    }
    while let first = transient.first, first.int("seq") ?? 0 < held {
      result.append(first)
      transient = transient.dropFirst()
    }
    state.transient = Array(transient)
    return result
  }

  /// The events of one poll. When they all fit, they all come again; else the new ones come first.
  private func nextPage(
    _ owner: [UInt8]?, _ limit: Int, _ onlyNew: Bool
  ) throws(Failure) -> (events: [(Int64, [UInt8])], next: Int64?) {
    func page(_ cursor: EventCursor) throws(Failure) -> (events: [(Int64, [UInt8])], next: Int64?) {
      try core.durableEvents.page(
        for: owner, after: cursor, limit: limit, size: EventQueue.pageBytes)
    }
    if onlyNew { return try page(state.handedOut) }
    let all = try page(EventCursor())
    if all.next == nil { return all }
    let new = try page(state.handedOut)
    return new.events.isEmpty ? (all.events, nil) : new
  }

  /// Begin with the oldest durable event again: another main file is in use, or the host asks for it.
  func forgetHandedOut() { state.handedOut = EventCursor() }

  /// On failure, keep the events for the next poll.
  func restore() {
    guard let beforePoll else { return }
    state = beforePoll
    self.beforePoll = nil
  }

  /// A new call begins: the events of the last poll have reached the host.
  func confirm() { beforePoll = nil }

  private static func context(_ sequence: Int64) -> SealContext {
    SealContext(table: "durable_event", row: "\(sequence)".utf8.map { $0 }, column: "sealed")
  }
}
