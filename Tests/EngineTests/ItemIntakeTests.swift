import Base
import Policy
import Store
import Supabase
import TestSupport
import Testing

@testable import Engine

@Suite struct ItemIntakeTests {
  /// What the server has under the id of an item that was edited before it was ever sent.
  @Test(arguments: [(45, "erased"), (30, "parked, conflict")])
  func anEditBeforeTheFirstUploadLeavesANewItem(_ minutes: Int, _ state: String) throws {
    // Given
    let rig = try Rig.atHome()
    try rig.add(id(1), minutes: 30)
    _ = try rig.intake.edit([
      "id": .uuid(id(1)), "payload": ["type": "visit", "minutes": 45],
    ])
    let batch = try rig.upload()
    // When the upload stores nothing, since the row is there
    try rig.settlement.finish(batch, isCurrent: true, try response(201, "[]"), rig.now)
    let question = try #require(rig.uploads.readBacks.first)
    expect(question.request == .rows)
    try rig.settlement.finish(
      question, isCurrent: true,
      try response(
        200, #"[{"id":"\#(id(1).text)","type":"visit","minutes":\#(minutes)}]"#), rig.now)
    // Then the rows are compared: no older version of the item can be there
    try expect(rig.state(id(1)), equals: state)
  }
}
