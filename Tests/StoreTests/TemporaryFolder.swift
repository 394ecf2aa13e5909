import Base
import Foundation

@testable import Store

/// A folder of its own for a test, gone with it.
final class TemporaryFolder {
  let path: String

  init() throws {
    path = NSTemporaryDirectory() + "holdfast-store-" + Foundation.UUID().uuidString
    try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
  }

  deinit { try? FileManager.default.removeItem(atPath: path) }

  func open(_ name: String = "test.db") throws -> Database {
    let database = try Database(path: path + "/" + name, .full)
    try Migrations.main.apply(to: database)
    return database
  }
}

func queueRow(_ number: Int, owner: UInt8 = 1, body: [UInt8] = [1, 2, 3]) -> QueueRow {
  let row = QueueRow()
  row.item =
    [UInt8](repeating: 0, count: 12) + (0..<4).map { UInt8(truncatingIfNeeded: number >> (8 * $0)) }
  row.owner = [UInt8](repeating: owner, count: 16)
  row.org = [UInt8](repeating: 7, count: 16)
  row.batchKey = [UInt8](repeating: 8, count: 16)
  row.createdMS = Int64(number)
  row.size = Int64(body.count)
  row.body = body
  return row
}
