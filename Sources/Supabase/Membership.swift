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

  /// Whether the user can work in the organisation: the membership and the organisation are active.
  public var isUsable: Bool { active && orgActive }

  /// Reads a row of the server's response.
  public init?(server row: JSON) {
    guard let orgID = row.uuid("org_id"), let role = row.string("role"),
      let status = row.string("status")
    else { return nil }
    let organisation = row["organizations"]
    self.orgID = orgID
    self.role = role
    name = organisation?.string("name") ?? ""
    active = status == "active"
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

/// The response to `RestRequests.memberships`.
public enum MembershipsReply {
  /// The most rows, and bytes, of an answer. The list is sealed as a whole, which takes up to 12 times as
  /// much memory, and each row is compared with each.
  public static var maxRows: Int { 500 }
  public static var maxBytes: Int { 100_000 }

  /// The memberships; nil when the body is not an array of such rows, or of too many: a list that was cut
  /// would say that the others have ended. Of several rows for the same organisation (a membership that
  /// ended, and a new one) an active one counts.
  public static func read(_ rows: ResponseRows?) -> [Membership]? {
    guard let rows, rows.count <= maxRows, rows.byteCount <= maxBytes else { return nil }
    var result: [Membership] = []
    for row in rows {
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
