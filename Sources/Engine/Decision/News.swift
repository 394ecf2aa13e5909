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
  /// The most ids in a report.
  static var mostIDs: Int { 500 }
  private static var progressIntervalMS: Int64 { 200 }
  private static var freshMS: Int64 { 1000 }

  /// The newest screen, until it is given.
  private(set) var screen: JSON?
  /// When it was decided, by the monotonic clock.
  private var decidedMS: Int64 = 0
  private var answers: [JSON] = []
  /// Sync has changed since its state was given.
  private(set) var hasSync = false
  /// The run that goes on, or has ended since.
  private(set) var run: RunReport?
  /// When progress was last noted, by the monotonic clock.
  private var progressMS: Int64 = -1000

  /// Whether there is something to give.
  var isEmpty: Bool { screen == nil && answers.isEmpty && !hasSync }

  // MARK: The screen

  /// Give this screen next. It replaces one that was not given yet: none that is given is old.
  func show(_ screen: JSON, _ now: Instant) {
    self.screen = screen
    decidedMS = now.monotonicMS
  }

  /// Whether a screen waits that was decided just now. A later one has to be decided again before it is given: a
  /// lock may be due since.
  func hasFreshScreen(_ now: Instant) -> Bool {
    screen != nil && now.monotonicMS - decidedMS < News.freshMS
  }

  /// It was given.
  func dropScreen() { screen = nil }

  // MARK: Answers

  /// Give an answer once. `operation`: what it answers.
  func answer(_ operation: StaticCString, _ answer: JSON) throws(Failure) {
    answer.set("to", JSON(operation))
    try JSON.checkMemory()
    answers.append(answer)
  }

  /// Discard answers that were not given: they are no longer true.
  func discard(_ operation: StaticCString) {
    answers = answers.filter { !News.isTo(operation, $0) }
  }

  /// Take the contents out of contacts that were not given: the user may no longer see them. The host
  /// still learns that its request is over.
  func withdrawContacts(_ message: JSON) {
    for answer in answers where News.isTo("contact_get", answer) {
      answer.set("contact", .null)
      answer.set("message", message)
    }
  }

  var holdsContact: Bool { answers.contains { News.isTo("contact_get", $0) } }

  private static func isTo(_ operation: StaticCString, _ answer: JSON) -> Bool {
    answer.string("to") == operation.string
  }

  /// The oldest one, until it is given.
  var answer: JSON? { answers.first }

  /// It was given.
  func dropAnswer() { answers.removeFirst() }

  // MARK: Sync

  /// Whether the state of a run may be given again: the last one is old enough, and no end waits to be given.
  func wantsProgress(_ now: Instant) -> Bool {
    run?.outcome == nil && now.monotonicMS - progressMS >= News.progressIntervalMS
  }

  func noteProgress(_ run: RunReport, _ now: Instant) {
    progressMS = now.monotonicMS
    self.run = run
    hasSync = true
  }

  /// A run has ended. One that ended before, and was not given yet, becomes a part of it.
  func noteEnd(_ run: RunReport) {
    var ended = run
    if let earlier = self.run, earlier.outcome != nil, earlier.owner == run.owner {
      ended.sent += earlier.sent
      ended.parked += earlier.parked
      ended.durationMS += earlier.durationMS
      ended.ids = Array((earlier.ids + run.ids).prefix(News.mostIDs))
      if run.outcome == .syncCompleted, earlier.parked > 0 { ended.outcome = .syncCompletedParked }
    }
    self.run = ended
    hasSync = true
  }

  /// Contacts or figures have been pulled.
  func notePull() { hasSync = true }

  /// The state of sync was given. A run that has ended is told once.
  func dropSync() {
    hasSync = false
    if run?.outcome != nil { run = nil }
  }
}
