// An app of one file: signs in, registers a visit, and waits until the server has stored it.
// Usage: visits URL KEY EMAIL, with the password in HOLDFAST_PASSWORD.
import Foundation
import HoldfastKit

#if canImport(Security)
  let keys = KeychainKeyStore(service: "org.example.visits")
#else
  let keys = FileKeyStore(folder: URL(fileURLWithPath: "visit-keys"))
#endif
let given = CommandLine.arguments
guard given.count == 4 else { fatalError("usage: visits URL KEY EMAIL") }
let config = Config(
  dataDir: "visit-data", backend: Backend(url: given[1], apiKey: given[2]),
  authMethods: [AuthMethodConfig(id: "password", flow: .password)], policy: Policy(biometric: .off))
let app = try Holdfast(config, keyStore: keys)
var shown = try await app.settled(app.sessionResume())  // which screen; needs no network
if shown.screen == .signIn, let word = ProcessInfo.processInfo.environment["HOLDFAST_PASSWORD"] {
  shown = try await app.settled(app.signInComplete(.password(email: given[3], password: word)))
}
if shown.screen == .selectOrg {
  shown = try await app.settled(app.orgSelect(orgId: shown.orgs[0].orgId))
}
print("screen:", shown.screen, shown.message?.text ?? "")
let visit = try await app.queueAdd(kind: "activity", payload: ["type": "visit", "minutes": 45])
for try await event in app.events {  // asking for the next event acknowledges this one
  if case .syncCompleted(let sync) = event, sync.ids.contains(visit.id) { break }
}
print("stored:", visit.id)
await app.close()
