import Base
import Policy
import Store
import TestSupport
import Testing

@testable import Engine

@Suite struct OrgSelectionTests {
  /// How the server lists the organisation, and the refusal of its choice.
  @Test(arguments: [
    (member(orgB), nil as ErrorCode?), (member(orgB, status: "ended"), .orgRevoked),
    (member(orgB, orgStatus: "disabled"), .orgDisabled),
    (member(orgB, role: "guest"), .orgUnknownRole), (member(bob), .orgNotAMember),
  ])
  func onlyAnOrganisationThatTheUserMayEnterIsChosen(
    _ row: String, _ expected: ErrorCode?
  ) throws {
    let rig = try Rig.atHome()
    try rig.list(member(orgA), row)
    let code = try refusal {
      try rig.orgSelection.select(["org_id": .uuid(orgB)])
    }
    expect(code, equals: expected)
    try expect(rig.session.choice, equals: (expected == nil ? orgB : orgA))
  }
}
