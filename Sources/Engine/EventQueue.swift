import Base
import Store
import Vault

/// Events of this process: those that come once, and how far the lasting ones were handed out.
struct EventQueue {
  private var once: [JSON] = []
  /// The last lasting event that this handle handed out.
  var delivered: Int64 = 0
  /// When the last `sync_progress` was made, by the monotonic clock.
  var lastProgressMS: Int64 = -1000

  var isEmpty: Bool { once.isEmpty }

  /// An event that comes once.
  mutating func tell(_ event: JSON, _ meta: MetaTable) throws(Failure) {
    event.set("seq", .int(try meta.next(.eventSequence)))
    try JSON.checkMemory()
    if event.string("type") == "decision" { withdraw("decision") }
    once.append(event)
  }

  func holds(_ type: String) -> Bool {
    for event in once where event.string("type") == type { return true }
    return false
  }

  /// What is no longer true, or no longer for these eyes.
  mutating func withdraw(_ type: String) {
    let all = drain()
    for event in all where event.string("type") != type { once.append(event) }
  }

  /// Of the events that come once, those that are still to be handed out.
  mutating func drain() -> [JSON] {
    let result = once
    once = []
    return result + once
  }
}

extension Engine {
  private static func noticeContext(_ sequence: Int64) -> SealContext {
    SealContext(table: "notice", row: "\(sequence)".utf8.map { $0 }, column: "sealed")
  }

  /// An event that a user must learn of: it stays until acknowledged, over restarts.
  func notify(_ event: JSON, owner: [UInt8]?) throws(Failure) {
    let keys = try keys()
    try main.transaction { () throws(Failure) in
      let sequence = try meta.next(.eventSequence)
      event.set("seq", .int(sequence))
      try notices.add(
        sequence, owner: owner,
        sealed: try keys.notices.seal(event, Engine.noticeContext(sequence)))
    }
  }

  /// Whether there is an event that this handle has not handed out.
  func hasEvents() throws(Failure) -> Bool {
    guard events.isEmpty else { return true }
    guard ring.keys != nil else { return false }
    return try notices.newest(for: try sessions.read().owner) > events.delivered
  }

  func takeEvents() throws(Failure) -> [JSON] {
    var once = events.drain()[...]
    var result: [JSON] = []
    if let keys = ring.keys {
      for (sequence, sealed) in try notices.all(for: try sessions.read().owner, limit: 200) {
        // One that does not open was sealed by another device's key: it says nothing here.
        if let event = try keys.notices.openJSON(sealed, Engine.noticeContext(sequence)) {
          while let first = once.first, first.int("seq") ?? 0 < sequence {
            result.append(first)
            once = once.dropFirst()
          }
          result.append(event)
        }
        events.delivered = max(events.delivered, sequence)
      }
    }
    return result + once
  }
}
