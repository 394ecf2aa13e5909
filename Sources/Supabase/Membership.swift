public import Base

/// What a user is in an organisation.
public struct Membership: Equatable, Sendable {
  public var orgID: UUID
  /// The organisation's.
  public var name: String
  public var role: String
  public var active: Bool
  /// Whether the organisation itself is; one that the server does not show is not.
  public var orgActive: Bool

  /// A row of the server's answer.
  public init?(server row: JSON) {
    guard let orgID = row["org_id"]?.string.flatMap({ UUID($0) }), let role = row["role"]?.string,
      let status = row["status"]?.string
    else { return nil }
    let organisation = row["organizations"]
    self.orgID = orgID
    self.role = role
    name = organisation?["name"]?.string ?? ""
    active = status == "active"
    orgActive = organisation?["status"]?.string == "active"
  }

  /// The form of `json`.
  public init?(sealed json: JSON) {
    guard let orgID = json["org_id"]?.string.flatMap({ UUID($0) }),
      let name = json["name"]?.string, let role = json["role"]?.string,
      let active = json["active"]?.bool, let orgActive = json["org_active"]?.bool
    else { return nil }
    self.orgID = orgID
    self.name = name
    self.role = role
    self.active = active
    self.orgActive = orgActive
  }

  /// For storing.
  public var json: JSON {
    [
      "org_id": .string(orgID.text), "name": .string(name), "role": .string(role),
      "active": .bool(active), "org_active": .bool(orgActive),
    ]
  }
}

/// The answer to `RestRequests.memberships`.
public enum MembershipsReply {
  /// nil when it is not an array of such rows. Of several rows for one organisation (a membership
  /// that ended, and a new one) an active one counts.
  public static func read(_ body: JSON?) -> [Membership]? {
    guard let body, body.kind == .array else { return nil }
    var result: [Membership] = []
    for row in body.elements {
      guard let membership = Membership(server: row) else { return nil }
      guard let index = result.firstIndex(where: { $0.orgID == membership.orgID }) else {
        result.append(membership)
        continue
      }
      if membership.active && !result[index].active { result[index] = membership }
    }
    return result
  }
}
