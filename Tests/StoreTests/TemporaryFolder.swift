import Base
import CSQLite
import Foundation
import TestSupport
import Testing

@testable import Store

/// A test's own folder, deleted with the object.
final class TemporaryFolder {
  let path: String

  init() throws {
    path = NSTemporaryDirectory() + "holdfast-store-" + Foundation.UUID().uuidString
    try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
  }

  deinit { try? FileManager.default.removeItem(atPath: path) }

  /// A main file with the current schema.
  func open(_ name: String = "test.db") throws -> Database {
    let database = try Database(path: path + "/" + name, .full)
    try Schema.main.apply(to: database)
    return database
  }

  /// A cache file with the current schema.
  func openCache(_ name: String = "cache.db") throws -> Database {
    let database = try Database(path: path + "/" + name, .normal)
    try Schema.cache.apply(to: database)
    return database
  }
}

/// A tag of 16 equal bytes.
func tag(_ byte: UInt8) -> [UInt8] { [UInt8](repeating: byte, count: 16) }

func queueRow(_ number: Int, owner: UInt8 = 1, body: [UInt8] = [1, 2, 3]) -> QueueRow {
  let row = QueueRow()
  row.item =
    [UInt8](repeating: 0, count: 12) + (0..<4).map { UInt8(truncatingIfNeeded: number >> (8 * $0)) }
  row.owner = tag(owner)
  row.org = tag(7)
  row.batchKey = tag(8)
  row.createdMS = Int64(number)
  row.size = Int64(body.count)
  row.body = body
  return row
}

/// How a request's result changes an item.
struct Change: Sendable {
  let state: ItemState
  let isCharged: Bool
  let history: FailureHistory?
  let retryGroup: RetryGroup?
  let rejection: [UInt8]?

  init(
    _ state: ItemState, charged isCharged: Bool = false, history: FailureHistory? = nil,
    retryGroup: RetryGroup? = nil, rejection: [UInt8]? = nil
  ) {
    self.state = state
    self.isCharged = isCharged
    self.history = history
    self.retryGroup = retryGroup
    self.rejection = rejection
  }
}

extension QueueTable {
  func transition(_ sequence: Int64, _ change: Change) throws(Failure) {
    try transition(
      sequence, change.state, charged: change.isCharged, history: change.history,
      retryGroup: change.retryGroup, rejection: change.rejection)
  }

  /// Insert `count` pending items of one owner; their sequence numbers begin with 1 in a new file.
  func fill(_ count: Int, owner: UInt8 = 1) throws(Failure) {
    for number in 0..<count { _ = try insert(queueRow(number, owner: owner)) }
  }

  func state(_ number: Int) throws(Failure) -> ItemState? { try find(queueRow(number).item)?.state }
}

/// Change the file through a connection that may write the schema.
func tamper(_ path: String, _ sql: String) {
  var connection: OpaquePointer?
  expect(sqlite3_open(path, &connection), equals: SQLITE_OK)
  expect(sqlite3_exec(connection, sql, nil, nil, nil), equals: SQLITE_OK)
  sqlite3_close(connection)
}
