import Base
import Store
import Supabase
import Vault

/// `cache.db`, opened when first needed.
final class CacheFile {
  let database: Database
  var contacts: ContactTable { ContactTable(database) }
  var sources: SourceTable { SourceTable(database) }

  init(_ database: Database) { self.database = database }
}

/// One organisation's contacts on their way from the server, page by page.
struct ContactsPull {
  enum Stage {
    /// Rows changed since the cursor.
    case rows(after: Cursor?)
    /// All ids there are: what is not among them was deleted or is no longer visible.
    case ids(after: UUID?)
  }

  /// Rows in a page. Servers may give fewer than asked, never more.
  static var pageSize: Int { 500 }
  /// A page below this is the last one: no server is set to give so few.
  static var lastPageBelow: Int { 100 }
  /// Rows committed late stand behind the cursor; a statement lasts at most this long.
  static var overlapS: Int64 { 10 }
  static var periodMS: Int64 { 900_000 }
  static var reconcilePeriodMS: Int64 { 86_400_000 }

  let org: UUID
  var stage: Stage
  var seen: Set<UUID> = []
  var reconciles: Bool

  func request(_ backend: Backend, _ bearer: SecretBytes) throws(Failure) -> Request {
    switch stage {
    case .rows(let cursor):
      return RestRequests.contactsPage(
        backend, org: org, after: cursor, limit: ContactsPull.pageSize, bearer: bearer)
    case .ids(let last):
      return RestRequests.contactIDs(
        backend, org: org, after: last, limit: ContactsPull.pageSize, bearer: bearer)
    }
  }
}

/// What is to be pulled.
struct PullState {
  var contacts = false
  var summary = false
  var current: ContactsPull?
}

/// A contact that a screen asked the server for.
struct LiveRequest {
  let number: Int64
  let contact: UUID
  var sent = false
}

/// The chosen organisation's contacts in memory, for searching; dropped when the session locks.
final class ContactIndex {
  struct Entry {
    let name: [UInt8]
    let json: JSON
  }

  let org: [UInt8]
  let entries: [Entry]

  init(org: [UInt8], entries: [Entry]) {
    self.org = org
    self.entries = entries
  }
}
