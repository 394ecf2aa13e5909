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
    let membership = try #require(Membership(server: try json(row())))
    expect(membership.orgID.text, equals: orgText)
    expect(membership.name == "Org A" && membership.role == "peer_mentor")
    expect(membership.active && membership.orgActive)
  }

  @Test("Only the status \"active\" is active, for memberships and organisations")
  func states() throws {
    for status in ["ended", "Active", "", "disabled"] {
      expect(Membership(server: try json(row(status)))?.active, equals: false)
      let organisation = #"{"name":"A","status":"\#(status)"}"#
      expect(Membership(server: try json(row("active", organisation)))?.orgActive, equals: false)
    }
  }

  @Test("An organisation that the server does not show is not active and has no name")
  func hidden() throws {
    for organisation in ["null", "[]", "{}", "7"] {
      let membership = try #require(Membership(server: try json(row("active", organisation))))
      expect(membership.active && !membership.orgActive && membership.name.isEmpty)
    }
  }

  @Test("Sealed and back")
  func sealing() throws {
    for text in [row(), row("ended"), row("active", "null")] {
      let membership = try #require(Membership(server: try json(text)))
      expect(Membership(sealed: membership.json), equals: membership)
    }
    try expect(
      Membership(server: try json(row("ended")))?.json.text().string,
      equals:
        #"{"org_id":"\#(orgText)","name":"Org A","role":"peer_mentor","active":false,"org_active":true}"#
    )
  }

  @Test(
    "A sealed form that lacks a member is refused",
    arguments: ["org_id", "name", "role", "active", "org_active"])
  func brokenSeal(member: String) throws {
    let form = try #require(Membership(server: try json(row()))).json
    form.remove(member)
    expect(Membership(sealed: form), equals: nil)
    form.set(member: member, 7)
    expect(Membership(sealed: form), equals: nil)
  }

  // MARK: The list

  @Test("An empty list is valid; other bodies are refused")
  func lists() throws {
    expect(MembershipsReply.read(try answer("[]"))?.isEmpty, equals: true)
    expect(MembershipsReply.read(try answer("[\(row())]"))?.count, equals: 1)
    expect(MembershipsReply.read(nil), equals: nil)
    for body in [
      "{}", "[7]", "[{}]", "[[]]", "[\(row()),{}]", #"[{"org_id":"x","role":"a","status":"b"}]"#,
      #"[{"org_id":"\#(orgText)","role":null,"status":"active"}]"#, row(),
    ] {
      expect(MembershipsReply.read(try answer(body)), equals: nil)
    }
  }

  @Test("A list of too many rows or bytes is refused")
  func tooMany() throws {
    func list(_ count: Int, _ row: String) throws -> [Membership]? {
      MembershipsReply.read(
        try answer("[" + Array(repeating: row, count: count).joined(separator: ",") + "]"))
    }
    let short = #"{"org_id":"\#(orgText)","role":"","status":"active"}"#
    try expect(list(500, short)?.count, equals: 1)
    try expect(list(501, short), equals: nil)
    let long =
      #"{"org_id":"\#(orgText)","role":"\#(String(repeating: "x", count: 9_900))","status":""}"#
    try expect(list(10, long)?.count, equals: 1)
    try expect(list(11, long), equals: nil)
  }

  @Test("A user who left and came back is a member")
  func returned() throws {
    for order in ["[\(row("ended")),\(row())]", "[\(row()),\(row("ended"))]"] {
      let list = try #require(MembershipsReply.read(try answer(order)))
      expect(list.count == 1 && list[0].active)
    }
  }

  @Test(
    "Of several rows alike for one organisation the first counts", arguments: ["active", "ended"])
  func alike(status: String) throws {
    let second = row(status).replacingOccurrences(of: "peer_mentor", with: "org_admin")
    let list = try #require(MembershipsReply.read(try answer("[\(row(status)),\(second)]")))
    expect(list.map { $0.role }, equals: ["peer_mentor"])
  }
}
