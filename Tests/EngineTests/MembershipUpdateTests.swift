import Base
import Policy
import Store
import Supabase
import TestSupport
import Testing

@testable import Engine

@Suite struct MembershipUpdateTests {
  /// How the server lists the second organisation, of which contacts are cached and an item is queued;
  /// whether the user may still enter it.
  @Test(arguments: [
    ("active", member(orgB), true), ("ended", member(orgB, status: "ended"), false),
    ("disabled", member(orgB, orgStatus: "disabled"), false), ("not at all", "", false),
  ])
  func whatTheUserMayNoLongerEnterIsErasedAndWithheld(
    _ how: String, _ row: String, _ isOpen: Bool
  ) throws {
    // Given
    let rig = try Rig.atHome()
    try rig.add(id(1), org: orgA)
    try rig.add(id(2), org: orgB)
    let keys = try rig.core.keys()
    let (first, second) = (
      CacheNames.org(orgA, try rig.session, keys), CacheNames.org(orgB, try rig.session, keys)
    )
    for org in [first, second] {
      try rig.cache.open().datasets.write(.summary, of: org, DatasetTable.Entry())
    }
    // When
    if row.isEmpty { try rig.list(member(orgA)) } else { try rig.list(member(orgA), row) }
    // Then
    let tables = try rig.cache.open()
    try expect(tables.datasets.read(.summary, of: first) != nil)
    try expect(tables.datasets.read(.summary, of: second) != nil, equals: isOpen)
    try expect(rig.state(id(1)), equals: "pending")
    try expect(rig.state(id(2)), equals: (isOpen ? "pending" : "waits for organisation"))
  }
}
