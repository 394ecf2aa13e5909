import Base
import Foundation
import TestSupport
import Testing

@testable import Supabase

@Suite struct MembershipTests {
  private func row(
    _ status: String = "active",
    _ organisation: String = #"{"id":"x","name":"Org A","status":"active"}"#
  ) -> String {
    #"{"org_id":"\#(orgText)","role":"peer_mentor","status":"\#(status)","#
      + #""updated_at":"2026-01-01T00:00:00+00:00","organizations":\#(organisation)}"#
  }

  @Test("A row of the server's response")
  func server() throws {
    let membership = try #require(try read(row()))
    expect(membership.orgID.text, equals: orgText)
    expect(membership.name == "Org A" && membership.role == "peer_mentor")
    expect(membership.active && membership.orgActive)
  }

  @Test("Only the status \"active\" is active, for memberships and organisations")
  func states() throws {
    for status in ["ended", "Active", "", "disabled"] {
      try expect(read(row(status))?.active, equals: false)
      let organisation = #"{"name":"A","status":"\#(status)"}"#
      try expect(read(row("active", organisation))?.orgActive, equals: false)
    }
  }

  @Test("An organisation that the server does not show is not active and has no name")
  func hidden() throws {
    for organisation in ["null", "{}"] {
      let membership = try #require(try read(row("active", organisation)))
      expect(membership.active && !membership.orgActive && membership.name.isEmpty)
    }
    for none in ["[]", "7", #""A""#, "true"] { try expect(read(row("active", none)), equals: nil) }
  }

  @Test("Sealed and back")
  func sealing() throws {
    for text in [row(), row("ended"), row("active", "null")] {
      let membership = try #require(try read(text))
      expect(Membership(sealed: membership.json), equals: membership)
    }
    try expect(
      read(row("ended"))?.json.text().string,
      equals:
        #"{"org_id":"\#(orgText)","name":"Org A","role":"peer_mentor","active":false,"org_active":true}"#
    )
  }

  @Test(
    "A sealed form that lacks a member is refused",
    arguments: ["org_id", "name", "role", "active", "org_active"])
  func brokenSeal(member: String) throws {
    let form = try #require(try read(row())).json
    form.remove(member)
    expect(Membership(sealed: form), equals: nil)
    form.set(member: member, 7)
    expect(Membership(sealed: form), equals: nil)
  }

  // MARK: The list

  private func page(_ body: String) throws -> MembershipsPage {
    MembershipsPage(try #require(try answer(body)))
  }

  private func read(_ row: String) throws -> Membership? { try page("[\(row)]").all.first }

  @Test("A list, and bodies that are none")
  func lists() throws {
    let none = try page("[]")
    expect(none.all.isEmpty && none.page.isLast)
    let one = try page("[\(row())]")
    expect(one.all.count == 1 && one.page.fault == nil && one.page.last?.text == orgText)
    for body in ["{}", row(), "[\(row())", "7", "[{}"] { try expect(answer(body) == nil) }
  }

  @Test(
    "A row that cannot be used is counted and named, and the others are used",
    arguments: [
      ("7", nil), ("{}", "org_id"), ("[]", nil), ("null", nil),
      (#"{"org_id":"x","role":"a","status":"b"}"#, "org_id"),
      (#"{"org_id":7,"role":"a","status":"b"}"#, "org_id"),
      (#"{"org_id":"\#(orgText)","role":null,"status":"active"}"#, "role"),
      (#"{"org_id":"\#(orgText)","role":"a","status":1e400}"#, "status"),
    ] as [(String, String?)])
  func unusable(bad: String, column: String?) throws {
    for body in ["[\(row()),\(bad)]", "[\(bad),\(row())]"] {
      let page = try page(body)
      expect(page.all.count == 1 && page.page.count == 2 && page.page.skipped == 1)
      expect(page.page.fault?.column, equals: column)
    }
  }

  @Test("What is not needed is not judged")
  func tolerance() throws {
    let deep = String(repeating: "[", count: 70) + String(repeating: "]", count: 70)
    for value in ["1e400", "12345678901234567000", deep, "[{\"a\":\(deep)}]"] {
      let odd = row().replacingOccurrences(of: "{\"org_id\"", with: "{\"x\":\(value),\"org_id\"")
      let membership = try #require(try read(odd))
      expect(membership.active && membership.orgActive && membership.name == "Org A")
    }
  }

  @Test("A user who left and came back is a member")
  func returned() throws {
    for order in ["[\(row("ended")),\(row())]", "[\(row()),\(row("ended"))]"] {
      let list = MembershipList(try page(order).all).all
      expect(list.count == 1 && list[0].active)
    }
  }

  @Test(
    "Of several rows alike for one organisation the first counts", arguments: ["active", "ended"])
  func alike(status: String) throws {
    let second = row(status).replacingOccurrences(of: "peer_mentor", with: "org_admin")
    let list = MembershipList(try page("[\(row(status)),\(second)]").all)
    expect(list.all.map { $0.role }, equals: ["peer_mentor"])
  }

  @Test("A list in any order is sorted, and finds each of its organisations")
  func sorting() throws {
    let ids = (0..<50).map { Base.UUID(high: UInt64($0 * 7 % 50), low: 1) }
    let list = MembershipList(
      ids.map { Membership(org: $0, role: "a", isActive: true, organisation: nil) })
    expect(list.all.map { $0.orgID }, equals: ids.sorted())
    for id in ids { expect(list[id]?.orgID, equals: id) }
    expect(list[Base.UUID(high: 7, low: 2)] == nil && MembershipList([])[ids[0]] == nil)
  }
}
