/// What each request takes of the server, in microseconds of a core.
///
/// `capacity.py` derives them from the recorded measurement of the database.
struct Costs {
  let refresh, membership, upload, item, contacts, summary: Int

  /// In the order of the arguments; nil: a number is missing or not positive.
  init?(_ arguments: [String]) {
    let numbers = arguments.compactMap { Int($0) }.filter { $0 > 0 }
    guard numbers.count == 6, arguments.count == 6 else { return nil }
    refresh = numbers[0]
    membership = numbers[1]
    upload = numbers[2]
    item = numbers[3]
    contacts = numbers[4]
    summary = numbers[5]
  }

  /// The work of a request; `items` counts the items of an upload.
  func of(_ purpose: Purpose, items: Int) -> Int {
    switch purpose {
    case .refresh: refresh
    case .membership: membership
    case .upload: upload + items * item
    case .contacts: contacts
    case .summary: summary
    }
  }
}
