import Base
import Policy
import Supabase
import Vault

/// A contact that a screen asked the server for.
struct LiveRequest {
  let number: Int64
  let contact: UUID
  let org: UUID
  var isSent = false
}

/// Live reads of single contacts with their withheld columns. The result goes to the host in an
/// event and is not stored.
final class LiveContacts {
  private let revision: Revision
  private var requests: [LiveRequest] = [] { didSet { revision.advance() } }
  private var lastNumber: Int64 = 0

  init(_ revision: Revision) { self.revision = revision }

  /// Ask for a contact; the number is in the event that answers.
  func add(_ contact: UUID, in org: UUID) -> Int64 {
    lastNumber += 1
    requests.append(LiveRequest(number: lastNumber, contact: contact, org: org))
    return lastNumber
  }

  var next: LiveRequest? { requests.first { !$0.isSent } }

  func markSent(_ live: LiveRequest) {
    for index in requests.indices where requests[index].number == live.number {
      requests[index].isSent = true
    }
  }

  func remove(_ live: LiveRequest) { requests.removeAll { $0.number == live.number } }

  func removeAll() { requests = [] }
}
