// The first half of the story, in a process that is killed: story FOLDER

import Foundation
import HoldfastKit

let environment = ProcessInfo.processInfo.environment
let folder = CommandLine.arguments[1]
let config = Config(
  dataDir: folder + "/data",
  backend: Backend(
    url: environment["HOLDFAST_BACKEND"] ?? "", apiKey: environment["HOLDFAST_KEY"] ?? ""),
  authMethods: [AuthMethodConfig(id: "password", flow: .password)],
  policy: Policy(biometric: .required, lockOnBackground: .atOnce))
let app = try Holdfast(
  config, keyStore: FileKeyStore(folder: URL(fileURLWithPath: folder + "/keys")))
var screens: [JSON] = []

@MainActor func show(_ decision: Decision) async throws -> Decision {
  let shown = try await app.settled(decision)
  screens.append(.string(shown.screen.rawValue))
  return shown
}

_ = try await show(try await app.sessionResume())
let choice = try await show(
  try await app.signInComplete(.password(email: "mentor@example.org", password: "holdfast-demo")))
_ = try await show(try await app.orgSelect(orgId: choice.orgs[0].orgId))
try await app.networkSet(online: false)
var ids: [JSON] = []
for minutes in [10, 20, 30] {
  let payload: [String: JSON] = ["type": "visit", "minutes": .int(minutes)]
  ids.append(.string(try await app.queueAdd(kind: "activity", payload: payload).id))
}
// The user turns to another app, and the system ends this one.
_ = try await app.sessionBackground()
while FileManager.default.fileExists(atPath: folder + "/keys/session.key") {
  try await Task.sleep(nanoseconds: 20_000_000)
}
let told: JSON = ["screens": .array(screens), "orgs": .int(choice.orgs.count), "ids": .array(ids)]
FileHandle.standardOutput.write(try JSONEncoder().encode(told) + Data("\n".utf8))
try await Task.sleep(nanoseconds: 600_000_000_000)
