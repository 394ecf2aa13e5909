// Many calls in a process of their own, and what they leave: calls FOLDER COUNT

import CHoldfast
import Foundation
import HoldfastKit

let config = Config(
  dataDir: CommandLine.arguments[1], backend: Backend(url: "http://127.0.0.1:9", apiKey: "k"),
  authMethods: [AuthMethodConfig(id: "password", flow: .password)],
  policy: Policy(biometric: .off), keystore: KeyStoreChoice(kind: .file))
let count = Int(CommandLine.arguments[2]) ?? 0

/// The open handles and unreleased replies, when they are so many; else after a minute. The loop of a
/// handle holds a reply for moments.
func live(_ expected: Int64) async throws -> Int64 {
  for _ in 0..<6000 where holdfast_live_count() != expected {
    try await Task.sleep(for: .milliseconds(10))
  }
  return holdfast_live_count()
}

/// The memory of this process, in kB.
func memory() throws -> Int {
  let text = try String(contentsOfFile: "/proc/self/statm", encoding: .utf8)
  return (Int(text.split(separator: " ")[1]) ?? 0) * Int(getpagesize()) / 1024
}

func call(_ app: Holdfast, _ count: Int) async throws {
  for number in 0..<count {
    switch number % 4 {
    case 0: try await app.networkReport(online: true)
    case 1: _ = try await app.sessionStatus()
    case 2: _ = try await app.next(timeoutMs: 0)
    default: _ = try? await app.queueList()  // an error: nobody is signed in
    }
  }
}

let app = try await Holdfast(config)
try await call(app, count / 10)
let (before, kilobytes) = (try await live(1), try memory())
try await call(app, count)
let (after, grown) = (try await live(1), try memory() - kilobytes)
await app.close()
for _ in 0..<100 {
  let one = try await Holdfast(config)
  try await one.sessionResume()
  await one.close()
  await one.close()
  _ = try? await one.sessionStatus()
}
print(before, after, try await live(0), grown)
