import Base
import Policy
import Store
import Vault

/// What a user must learn: sealed in the file, and given until the host asks for the next notice.
///
/// A notice that was given to one handle is given to the others, too, and again after a restart, until
/// one of them has asked for the next one.
final class Notices {
  private let core: Core
  /// The notice that the host has, until it asks for the next one.
  private var given: Int64?

  init(_ core: Core) { self.core = core }

  // MARK: Adding

  /// Add a notice of a type, with the code of its text as `reason`. `owner` nil: for every user of the
  /// device. It belongs into the transaction that it tells of.
  func add(
    _ type: StaticCString, reason: String, _ notice: JSON = [:], owner: [UInt8]?
  ) throws(Failure) {
    notice.set("type", JSON(type))
    notice.set("reason", .string(reason))
    try add(notice, owner)
  }

  private func add(_ notice: JSON, _ owner: [UInt8]?) throws(Failure) {
    let keys = try core.keys()
    try core.database.transaction { () throws(Failure) in
      // Numbers are never used again, so that no handle deletes another notice than the one that it gave.
      let number = try core.meta.next(.notice)
      try core.notices.add(
        number, owner: owner, sealed: try keys.notices.seal(notice, Notices.context(number)))
    }
  }

  /// Add a notice of a damaged file again, under a new number. False: its seal does not open.
  func addAgain(
    _ number: Int64, owner: [UInt8]?, _ sealed: [UInt8], _ keys: KeyRing.Keys
  ) throws(Failure) -> Bool {
    guard let notice = try keys.notices.openJSON(sealed, Notices.context(number)) else {
      return false
    }
    try add(notice, owner)
    return true
  }

  // MARK: Giving

  /// The host asks for the next one, so it has handled the last one.
  func acknowledge() throws(Failure) {
    guard let number = given else { return }
    try core.notices.remove(number)
    given = nil
  }

  /// Whether there is one that the host does not have.
  func hasAny() throws(Failure) -> Bool {
    guard core.keyRing.keys != nil else { return false }
    return try core.notices.first(for: try core.sessionTable.read().owner, but: given) != nil
  }

  /// The oldest one that the host does not have, with its text. One whose seal does not open is damaged: it
  /// says nothing, and goes.
  func next() throws(Failure) -> (number: Int64, notice: JSON)? {
    guard let keys = core.keyRing.keys else { return nil }
    try acknowledge()
    let owner = try core.sessionTable.read().owner
    while let (number, sealed) = try core.notices.first(for: owner) {
      if let notice = try keys.notices.openJSON(sealed, Notices.context(number)) {
        notice.set("text", core.text(text(of: notice)))
        return (number, notice)
      }
      Log.line(.warning, "a notice is unreadable")
      try core.notices.remove(number)
    }
    return nil
  }

  private func text(of notice: JSON) -> MessageCode {
    // The reason is the server's.
    if notice.string("type") == "session_ended" { return .sessionEnded }
    return MessageCode(rawValue: notice.string("reason") ?? "") ?? .rejected
  }

  /// The host has it.
  func give(_ number: Int64) { given = number }

  /// Another main file is in use: all its notices are given.
  func forgetGiven() { given = nil }

  private static func context(_ number: Int64) -> SealContext {
    SealContext(table: "notice", row: "\(number)".utf8.map { $0 }, column: "sealed")
  }
}
