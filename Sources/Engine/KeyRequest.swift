import Vault

/// One operation that the host is asked to carry out with a key (see `RequestedKeys`).
final class KeyRequest {
  enum Task {
    case load
    case save(Key)
    case erase
    /// Whether the key that was saved under this name is there, or whether `device` still is.
    case check(KeyName)
    case checkErased
  }

  enum Stage { case queued, taken, handedOut }
  enum Notice { case none, queued, taken, given }

  let id: Int64
  let task: Task
  /// When it counts as failed; nil until the host was asked.
  var deadlineMS: Int64?
  var stage = Stage.queued
  /// What the host knows of a request that nobody needs any more.
  var notice = Notice.none

  init(id: Int64, task: Task) {
    self.id = id
    self.task = task
  }

  var isErasure: Bool {
    if case .erase = task { return true }
    return false
  }

  /// Whether the answer has a key.
  var loads: Bool {
    switch task {
    case .load, .check, .checkErased: true
    case .save, .erase: false
    }
  }

  /// Whether a key is changed, or was and is looked for.
  var isChange: Bool {
    switch task {
    case .save, .erase, .checkErased: true
    case .load, .check: false
    }
  }

  func isLate(_ nowMS: Int64) -> Bool { deadlineMS.map { $0 <= nowMS } ?? false }

  /// It reached the host, or will with the reply of this call.
  var isWithHost: Bool { stage != .queued }

  /// A new call begins: the reply of the last one has reached the host.
  func confirm() {
    if stage == .taken { stage = .handedOut }
    if notice == .taken { notice = .given }
  }

  /// The reply of this call was lost.
  func restore() {
    if stage == .taken { (stage, deadlineMS) = (.queued, nil) }
    if notice == .taken { notice = .queued }
  }
}
