// Signs in, chooses an organisation, queues a visit offline, starts again, sends and corrects it, searches, and logs out.
// Usage: HOLDFAST_PASSWORD=... Visits URL KEY EMAIL
import Foundation
import HoldfastKit

let given = CommandLine.arguments
let password = ProcessInfo.processInfo.environment["HOLDFAST_PASSWORD"]
guard given.count == 4, let password else { fatalError("usage: Visits URL KEY EMAIL") }
// What is stored stays in the cache, and can be corrected.
let activity = QueueKind(table: "activities", own: OwnRows(), change: ChangeRule())
let config = Config(
  dataDir: "visit-data",
  backend: Backend(url: given[1], apiKey: given[2], queue: ["activity": activity]),
  template: .volunteers, development: true)

/// Shows the screens up to `home`, and does what each asks for. An app draws them.
@MainActor func enter(_ app: Holdfast) async throws {
  for try await news in app.news {
    guard case .screen(let shown) = news else { continue }
    print("screen:", shown.screen)
    switch shown.screen {
    case .home: return
    case .selectOrg: try await app.orgSelect(orgId: shown.orgs[0].orgId)
    case .signIn where shown.message?.code == .sessionMissing:
      try await app.signInComplete(email: given[3], password: password)
    case .signIn: fatalError(shown.message?.text ?? "")  // a wrong password, or no network
    default: break  // wait: another screen follows
    }
  }
}

/// Returns when the server has what is queued of this item.
@MainActor func sent(_ id: String, _ app: Holdfast) async throws {
  for try await news in app.news {
    switch news {
    case .sync(let sync) where sync.ids.contains(id): return
    case .notice(let notice): print(notice.text)  // the server refused it, for instance
    default: break
    }
  }
}

var app = try await Holdfast(config)
try await enter(app)
try await app.networkReport(online: false)
let visit = try await app.queueAdd(kind: "activity", payload: ["type": "visit", "minutes": 45])
await app.close()

app = try await Holdfast(config)  // the next start: the session and the visit are on disk
try await enter(app)
try await sent(visit.id, app)
print("sent:", visit.id)
// Others may have changed it since: the change stands on what its user saw.
let seen = try await app.itemList(kind: "activity").items.first { $0.id == visit.id }
try await app.queueEdit(id: visit.id, payload: ["minutes": 60], base: seen?.payload)
try await sent(visit.id, app)
print("corrected:", try await app.queueGet(id: visit.id).state)
var found = try await app.contactSearch(query: "")
while found.asOf == nil {  // the first pull is under way
  _ = try await app.next()
  found = try await app.contactSearch(query: "")
}
print("contacts:", found.total, found.contacts.first?.name ?? "")
print("unsent after the logout:", try await app.sessionLogout().unsent)
await app.close()
