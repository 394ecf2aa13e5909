public import Base

/// The membership of a user in an organisation.
public final class Membership: Equatable, Sendable {
  public let orgID: UUID
  /// The name of the organisation.
  public let name: String
  public let role: String
  /// Whether the membership is active.
  public let active: Bool
  /// Whether the organisation is active. False when the server does not show it.
  public let orgActive: Bool

  /// Whether the server takes what the user sends for the organisation: the membership and the organisation are active.
  public var isUsable: Bool { active && orgActive }

  init(org: UUID, role: String, isActive: Bool, organisation: JSON?) {
    orgID = org
    self.role = role
    name = organisation?.string("name") ?? ""
    active = isActive
    orgActive = organisation?.string("status") == "active"
  }

  /// The same membership, but no longer active.
  public init(ended membership: Membership) {
    orgID = membership.orgID
    name = membership.name
    role = membership.role
    active = false
    orgActive = membership.orgActive
  }

  /// Reads the form of `json`.
  public init?(sealed json: JSON) {
    guard let orgID = json.uuid("org_id"),
      let name = json.string("name"), let role = json.string("role"),
      let active = json.bool("active"), let orgActive = json.bool("org_active")
    else { return nil }
    self.orgID = orgID
    self.name = name
    self.role = role
    self.active = active
    self.orgActive = orgActive
  }

  public static func == (left: Membership, right: Membership) -> Bool {
    left.orgID == right.orgID && left.name == right.name && left.role == right.role
      && left.active == right.active && left.orgActive == right.orgActive
  }

  /// For storing.
  public var json: JSON {
    [
      "org_id": .uuid(orgID), "name": .string(name), "role": .string(role),
      "active": .bool(active), "org_active": .bool(orgActive),
    ]
  }
}

/// A response to `RestRequests.memberships`.
public struct MembershipsPage {
  public let page: Page<UUID>
  public let all: [Membership]

  public init(_ rows: ResponseRows) {
    var all: [Membership] = []
    page = rows.page(most: RestRequests.membershipsPerPage) { row in
      guard let org = row.uuid("org_id") else { return (nil, row.lacks("org_id")) }
      guard let role = row.string("role") else { return (org, row.lacks("role")) }
      guard let status = row.string("status") else { return (org, row.lacks("status")) }
      // null: the server does not show the organisation, as it is no longer active.
      let organisation = row.value("organizations")
      guard organisation?.kind == .object || row.isNull("organizations") else {
        return (org, row.lacks("organizations"))
      }
      all.append(
        Membership(
          org: org, role: role, isActive: status == "active",
          organisation: organisation))
      return (org, nil)
    }
    self.all = all
  }
}

/// Memberships by their organisations, each once.
public struct MembershipList {
  /// Sorted by organisation.
  public private(set) var all: [Membership]

  /// Of several memberships in the same organisation (one that ended, and a new one) an active one
  /// counts, else the first.
  public init(_ memberships: [Membership]) {
    all = []
    for membership in memberships.ordered(by: { $0.orgID < $1.orgID }) {
      guard let last = all.last, last.orgID == membership.orgID else {
        all.append(membership)
        continue
      }
      if membership.active && !last.active { all[all.count - 1] = membership }
    }
  }

  public subscript(org: UUID) -> Membership? {
    all.sortedPlace(of: org) { $0.orgID }.map { all[$0] }
  }
}
