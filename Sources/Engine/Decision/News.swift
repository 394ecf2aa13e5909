import Base
import Policy

/// A run of uploads, as the host learns of it.
struct RunReport {
  let owner: [UInt8]
  var sent: Int64 = 0
  var parked: Int64 = 0
  /// The ids of the items that were stored; the first ones only.
  var ids: [JSON] = []
  /// Since the run began.
  var durationMS: Int64 = 0
  /// The outcome of a run that has ended; nil: it goes on.
  var outcome: MessageCode?
}

/// What `next` tells the host of the present: the screen, answers, and the state of sync.
///
/// All of it is in memory, and is given once. `Notices` has what must not be lost.
final class News {
  private struct State {
    /// The newest screen, until it is given.
    var screen: JSON?
    /// When it was decided, by the monotonic clock.
    var decidedMS: Int64 = 0
    var answers: [JSON] = []
    /// Sync has changed since its state was given.
    var hasSync = false
    /// The run that goes on, or has ended since.
    var run: RunReport?
    /// When progress was last noted, by the monotonic clock.
    var progressMS: Int64 = -1000
  }

  /// The most ids in a report.
  static var mostIDs: Int { 500 }
  private static var progressIntervalMS: Int64 { 200 }
  private static var freshMS: Int64 { 1000 }

  private let revision: Revision
  private var state = State() { didSet { revision.advance() } }
  /// The state before this call gave something.
  private var before: State?

  init(_ revision: Revision) { self.revision = revision }

  /// Whether there is something to give.
  var isEmpty: Bool { state.screen == nil && state.answers.isEmpty && !state.hasSync }

  // MARK: The screen

  /// Give this screen next. It replaces one that was not given yet: none that is given is old.
  func show(_ screen: JSON, _ now: Instant) {
    state.screen = screen
    state.decidedMS = now.monotonicMS
  }

  /// Whether a screen waits that was decided just now. A later one has to be decided again before it is given: a
  /// lock may be due since.
  func hasFreshScreen(_ now: Instant) -> Bool {
    state.screen != nil && now.monotonicMS - state.decidedMS < News.freshMS
  }

  func takeScreen() -> JSON? {
    guard let screen = state.screen else { return nil }
    keep()
    state.screen = nil
    return screen
  }

  // MARK: Answers

  /// Give an answer once. `operation`: what it answers.
  func answer(_ operation: StaticCString, _ answer: JSON) throws(Failure) {
    answer.set("to", JSON(operation))
    try JSON.checkMemory()
    state.answers.append(answer)
  }

  /// Discard answers that were not given: they are no longer true.
  func discard(_ operation: StaticCString) {
    state.answers = state.answers.filter { !News.isTo(operation, $0) }
  }

  /// Take the contents out of contacts that were not given: the user may no longer see them. The host
  /// still learns that its request is over.
  func withdrawContacts(_ message: JSON) {
    for answer in state.answers where News.isTo("contact_get", answer) {
      answer.set("contact", .null)
      answer.set("message", message)
    }
  }

  var holdsContact: Bool { state.answers.contains { News.isTo("contact_get", $0) } }

  private static func isTo(_ operation: StaticCString, _ answer: JSON) -> Bool {
    answer.string("to") == operation.string
  }

  func takeAnswer() -> JSON? {
    guard let answer = state.answers.first else { return nil }
    keep()
    state.answers.removeFirst()
    return answer
  }

  // MARK: Sync

  /// Whether the state of a run may be given again: the last one is old enough, and no end waits to be given.
  func wantsProgress(_ now: Instant) -> Bool {
    state.run?.outcome == nil && now.monotonicMS - state.progressMS >= News.progressIntervalMS
  }

  func noteProgress(_ run: RunReport, _ now: Instant) {
    state.progressMS = now.monotonicMS
    state.run = run
    state.hasSync = true
  }

  /// A run has ended. One that ended before, and was not given yet, becomes a part of it.
  func noteEnd(_ run: RunReport) {
    var ended = run
    if let earlier = state.run, earlier.outcome != nil, earlier.owner == run.owner {
      ended.sent += earlier.sent
      ended.parked += earlier.parked
      ended.durationMS += earlier.durationMS
      ended.ids = Array((earlier.ids + run.ids).prefix(News.mostIDs))
      if run.outcome == .syncCompleted, earlier.parked > 0 { ended.outcome = .syncCompletedParked }
    }
    state.run = ended
    state.hasSync = true
  }

  /// Contacts or figures have been pulled.
  func notePull() { state.hasSync = true }

  /// Sync as it is now, if that has changed. A run that has ended is told once.
  func takeSync(_ describe: (RunReport?) throws(Failure) -> JSON) throws(Failure) -> JSON? {
    guard state.hasSync else { return nil }
    let sync = try describe(state.run)
    keep()
    state.hasSync = false
    if state.run?.outcome != nil { state.run = nil }
    return sync
  }

  // MARK: Lost replies

  private func keep() { if before == nil { before = state } }

  /// The reply of this call was lost: give the same again.
  func restore() {
    guard let before else { return }
    state = before
    self.before = nil
  }

  /// A new call begins: what the last one gave has reached the host.
  func confirm() { before = nil }
}
