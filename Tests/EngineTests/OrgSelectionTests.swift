import Base
import Policy
import Store
import TestSupport
import Testing

@testable import Engine

@Suite struct OrgSelectionTests {
  @Test func anotherOrganisationIsPulledAtOnce() throws {
    // Given data that was pulled just now
    let rig = try Rig.atHome()
    rig.pulls.forgetAll()
    rig.pulls.finishContacts(rig.now.monotonicMS)
    rig.pulls.finishSummary(rig.now.monotonicMS)
    expect(!rig.rowPuller.isDue(orgA, rig.now))
    // When
    try expect(rig.orgSelection.choose(orgB, rig.session))
    // Then
    expect(rig.rowPuller.isDue(orgB, rig.now))
    expect(rig.summaryPuller.isDue(rig.now))
  }

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
      try rig.orgSelection.select(["org_id": .uuid(orgB)], rig.decider)
    }
    expect(code, equals: expected)
    try expect(rig.session.choice, equals: (expected == nil ? orgB : orgA))
  }

  @Test func aChoiceOverASessionThatAnotherProcessChangedIsRefused() throws {
    // Given
    let rig = try Rig.atHome()
    let session = try rig.session
    let other = try Rig(folder: rig.folder, keyStore: rig.keyStore)
    _ = try other.decider.assess(.navigate)
    try other.signIn(bob)
    rig.pulls.forgetAll()
    // When
    let isStored = try rig.orgSelection.choose(orgB, session)
    // Then nothing of it is kept
    expect(!isStored)
    try expect(rig.sessions.row().choice, equals: nil)
    expect(!rig.pulls.needsContacts)
  }

  @Test func anEditIsNotMadeInAnotherSessionsRow() throws {
    let rig = try Rig.atHome()
    let generation = try rig.session.generation
    try rig.signIn(bob)
    let before = try rig.sessions.row().generation
    var edits = 0
    let isStored = try rig.sessions.update(ifGeneration: generation) { (row) throws(Failure) in
      edits += 1
    }
    expect(!isStored && edits == 0)
    try expect(rig.sessions.row().generation, equals: before)
  }
}
