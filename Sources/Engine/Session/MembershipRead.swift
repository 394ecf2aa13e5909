import Base
import Supabase

/// The memberships of the user, read page by page.
struct MembershipRead {
  /// A server may send pages without end. So many memberships take 2 MB.
  private static var most: Int { 10_000 }

  private(set) var all: [Membership] = []
  /// The organisation behind which the next page begins; nil: no page was read.
  private(set) var after: UUID?
  private(set) var isOver = false
  /// Why this is not the whole list.
  private(set) var problem: ListProblem?
  /// Of the first row that cannot be used.
  private(set) var fault: RowFault?

  /// Only then the memberships that are not listed have ended.
  var isWhole: Bool { isOver && problem == nil }

  mutating func add(_ answer: MembershipsPage) {
    let page = answer.page
    all += answer.all
    fault = fault ?? page.fault
    if fault != nil { problem = .unusableRow }
    if let after, let last = page.last, last <= after { problem = .loop }
    if page.isCut { problem = .loop }
    if all.count > MembershipRead.most { problem = .tooManyRows }
    isOver = page.isLast || page.last == nil || problem == .loop || problem == .tooManyRows
    after = page.last
  }
}

/// Why a list does not prove that what it lacks has ended, or why a pull was given up. The raw values
/// are stable codes of the C API.
enum ListProblem: String {
  /// A row cannot be used.
  case unusableRow = "unusable_row"
  /// The server sent a page that does not continue the one before, or none where it counts rows.
  case loop
  case tooManyRows = "too_many_rows"
}
