import Base
import Store
import Supabase
import Vault

/// A session that can be read. It is in memory only while the session row may be opened.
final class OpenSession {
  /// The generation of the row that this mirrors.
  let generation: Int64
  /// The row's memberships, sealed: each check stores them anew under the same generation.
  private let sealedMemberships: [UInt8]?
  let owner: [UInt8]
  let userID: UUID
  /// Seals the values of the session row.
  let vault: Key
  /// Seals the cache.
  let cacheKey: Key
  /// Seals the user's queued items; it outlives the session.
  let queueKey: Key
  let accessToken: SecretBytes
  /// Tells access tokens apart after the session is closed. Most starts need none.
  private(set) lazy var tokenDigest = Digest.sha256(accessToken.bytes)
  let refreshToken: SecretBytes
  /// How long the access token is valid from its issue.
  let lifetimeMS: Int64
  /// The chosen organisation.
  let choice: UUID?
  /// nil: never listed by the server.
  let memberships: [Membership]?

  init(
    row: SessionRow, owner: [UInt8], tokens: Tokens, vault: Key, cacheKey: Key, queueKey: Key,
    choice: UUID?, memberships: [Membership]?
  ) {
    generation = row.generation
    sealedMemberships = row.memberships
    self.owner = owner
    self.vault = vault
    self.cacheKey = cacheKey
    self.queueKey = queueKey
    self.choice = choice
    self.memberships = memberships
    userID = tokens.userID
    accessToken = tokens.accessToken
    refreshToken = tokens.refreshToken
    lifetimeMS = tokens.lifetimeMS
  }

  /// Whether the row is the one that this mirrors.
  func mirrors(_ row: SessionRow) -> Bool {
    generation == row.generation && sealedMemberships == row.memberships
  }

  /// The membership in the chosen organisation.
  var chosen: Membership? {
    guard let choice else { return nil }
    return membership(in: choice)
  }

  func membership(in org: UUID) -> Membership? { memberships?.first { $0.orgID == org } }
}

/// The tokens as they are sealed.
struct Tokens {
  var accessToken: SecretBytes
  var refreshToken: SecretBytes
  var userID: UUID
  var lifetimeMS: Int64

  init(_ reply: TokenReply) {
    accessToken = reply.accessToken
    refreshToken = reply.refreshToken
    userID = reply.userID
    lifetimeMS = reply.expiresInS * 1000
  }

  var json: JSON {
    [
      "access_token": accessToken.json, "refresh_token": refreshToken.json,
      "user_id": .uuid(userID), "lifetime_ms": .int(lifetimeMS),
    ]
  }

  init?(_ json: JSON) throws(Failure) {
    guard let access = json["access_token"], let refresh = json["refresh_token"],
      let accessToken = try SecretBytes.text(of: access),
      let refreshToken = try SecretBytes.text(of: refresh),
      let userID = json.uuid("user_id"),
      let lifetime = json.int("lifetime_ms")
    else { return nil }
    self.accessToken = accessToken
    self.refreshToken = refreshToken
    self.userID = userID
    lifetimeMS = lifetime
  }
}
