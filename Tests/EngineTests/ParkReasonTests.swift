import Base
import Policy
import Store
import Supabase
import TestSupport
import Testing

@testable import Engine

@Suite struct ParkReasonTests {
  private func sealedRow(_ rig: Rig) throws -> (row: QueueRow, rejection: ParkReason) {
    try rig.add(id(1))
    return (
      try #require(try rig.row(id(1))),
      ParkReason(.serverRule, sqlstate: "P0001", message: "no", field: "minutes")
    )
  }

  @Test func aRejectionIsSealedWithItsItem() throws {
    // Given
    let rig = try Rig.atHome()
    let (row, rejection) = try sealedRow(rig)
    let key = try rig.session.queueKey
    // When
    row.rejection = try rejection.sealed(for: row, key)
    // Then
    try expect(ParkReason.read(row, key).map { $0 == rejection.json }, equals: true)
    expect(rejection.json.string("field"), equals: "minutes")
    expect(!String(decoding: row.rejection ?? [], as: UTF8.self).contains("P0001"))
  }

  @Test func itOpensForNoOtherItemOwnerOrKey() throws {
    // Given
    let rig = try Rig.atHome()
    let (row, rejection) = try sealedRow(rig)
    let key = try rig.session.queueKey
    let sealed = try rejection.sealed(for: row, key)
    try rig.add(id(2))
    let other = try #require(try rig.row(id(2)))
    other.rejection = sealed
    // When, then
    try expect(ParkReason.read(other, key) == nil)
    row.rejection = sealed
    try expect(ParkReason.read(row, try rig.session.vault) == nil)
    row.owner = [UInt8](repeating: 9, count: 16)
    try expect(ParkReason.read(row, key) == nil)
    try expect(ParkReason.read(QueueRow(), key) == nil)
  }

  @Test func theBodyOfAnItemIsNoRejection() throws {
    let rig = try Rig.atHome()
    let (row, _) = try sealedRow(rig)
    row.rejection = row.body
    try expect(ParkReason.read(row, try rig.session.queueKey) == nil)
  }

  @Test func aRefusedRequestGivesSQLStateMessageAndColumn() throws {
    let rejection = ParkReason(
      .missingValue,
      try response(
        400,
        #"{"code":"23502","message":"null value in column \"minutes\" of relation \"a\""}"#))
    expect(rejection.sqlstate, equals: "23502")
    expect(rejection.field, equals: "minutes")
    expect(rejection.message?.contains("null value"), equals: true)
  }

  /// The row that a function refused, and its code.
  @Test(arguments: [
    (RowResult.Status.conflict, "22P02" as String?, "conflict"),
    (.rejected, "22P02", "invalid_value"),
    (.rejected, "23502", "missing_value"), (.rejected, "23505", "duplicate"),
    (.rejected, "23503", "missing_parent"), (.rejected, "P0001", "server_rule"),
    (.rejected, "XX000", "rejected"), (.rejected, nil, "rejected"),
  ])
  func aRefusedRowGivesACode(_ status: RowResult.Status, _ sqlstate: String?, _ code: String) throws
  {
    let text = sqlstate.map { #","sqlstate":"\#($0)""# } ?? ""
    let response = try response(
      200, #"[{"id":"\#(id(1).text)","status":"\#(status.rawValue)"\#(text)}]"#)
    let row = try #require(UploadReply.rows(response.rows)?.first)
    let rig = try Rig.atHome()
    try rig.add(id(1))
    expect(ParkReason(row, try rig.upload()).code.rawValue, equals: code)
  }
}
