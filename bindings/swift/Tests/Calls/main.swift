// Many calls in a process of their own: calls leaks|bench FOLDER COUNT

import CHoldfast
import Foundation
import HoldfastKit

func configuration(_ folder: String) -> Config {
  Config(
    dataDir: folder, backend: Backend(url: "http://127.0.0.1:9", apiKey: "k"),
    authMethods: [AuthMethodConfig(id: "password", flow: .password)],
    policy: Policy(biometric: .off), keystore: KeyStoreChoice(kind: .file))
}

/// The open handles and unreleased replies, when they are so many; else after a minute. The loop of a
/// handle holds a reply for moments.
func live(_ expected: Int64) async throws -> Int64 {
  for _ in 0..<6000 where holdfast_live_count() != expected {
    try await Task.sleep(nanoseconds: 10_000_000)
  }
  return holdfast_live_count()
}

/// The memory of this process, in kB.
func memory() throws -> Int {
  let text = try String(contentsOfFile: "/proc/self/statm", encoding: .utf8)
  return (Int(text.split(separator: " ")[1]) ?? 0) * Int(getpagesize()) / 1024
}

func leaks(_ folder: String, _ count: Int) async throws {
  let app = try Holdfast(configuration(folder))
  _ = try await app.sessionResume()
  func call(_ count: Int) async throws {
    for number in 0..<count {
      switch number % 4 {
      case 0: try await app.networkSet(online: true)
      case 1: _ = try await app.sessionStatus()
      case 2: _ = try await app.sessionResume()
      default: _ = try? await app.queueList()  // an error: nobody is signed in
      }
    }
  }
  try await call(count / 10)
  let (before, kilobytes) = (try await live(1), try memory())
  try await call(count)
  let (after, grown) = (try await live(1), try memory() - kilobytes)
  await app.close()
  for _ in 0..<100 {
    let one = try Holdfast(configuration(folder))
    _ = try await one.sessionResume()
    await one.close()
    await one.close()
    _ = try? await one.sessionStatus()
  }
  print(before, after, try await live(0), grown)
}

// MARK: What a call costs

/// Nanoseconds for one call: the fastest of the rounds, as other programs slow some of them.
func fastest(_ calls: Int, _ round: (Int) async throws -> Void) async throws -> Double {
  var rounds: [Double] = []
  for _ in 0..<60 {
    let start = DispatchTime.now().uptimeNanoseconds
    try await round(calls)
    rounds.append(Double(DispatchTime.now().uptimeNanoseconds - start) / Double(calls))
  }
  return rounds.min() ?? 0
}

func cost(_ handle: OpaquePointer?, _ name: String, _ request: String, _ calls: Int) async throws
  -> Double
{
  try await fastest(calls) { calls in
    for _ in 0..<calls {
      var reply: UnsafeMutablePointer<CChar>?
      guard holdfast_call(handle, name, request, &reply) == HOLDFAST_OK else { exit(2) }
      holdfast_free(reply)
    }
  }
}

/// What every host has beside its calls: a thread that waits, and polls.
func follow(_ handle: OpaquePointer?) {
  nonisolated(unsafe) let handle = handle
  Thread.detachNewThread {
    while holdfast_wait(handle, -1) == HOLDFAST_OK {
      var reply: UnsafeMutablePointer<CChar>?
      _ = holdfast_call(handle, "poll", #"{"only_new":true}"#, &reply)
      holdfast_free(reply)
    }
  }
}

func bench(_ folder: String, _ calls: Int) async throws {
  var handle: OpaquePointer?
  let config = try JSONEncoder().encode(configuration(folder + "/c"))
  var reply: UnsafeMutablePointer<CChar>?
  let opened = holdfast_open(String(decoding: config, as: UTF8.self), nil, &handle, &reply)
  holdfast_free(reply)
  guard opened == HOLDFAST_OK else { exit(2) }
  follow(handle)
  // Both have shown the first screen.
  _ = try await cost(handle, "session_resume", "{}", 1)
  let app = try Holdfast(configuration(folder + "/swift"))
  _ = try await app.sessionResume()
  let rows = [
    (
      "network_set (empty reply)",
      try await cost(handle, "network_set", #"{"online":true}"#, calls),
      try await fastest(calls) { for _ in 0..<$0 { try await app.networkSet(online: true) } }
    ),
    (
      "session_resume (a decision, typed)", try await cost(handle, "session_resume", "{}", calls),
      try await fastest(calls) { for _ in 0..<$0 { _ = try await app.sessionResume() } }
    ),
  ]
  func column(_ text: String) -> String { String(repeating: " ", count: 10 - text.count) + text }
  func row(_ name: String, _ columns: [String]) {
    print(
      name.padding(toLength: 36, withPad: " ", startingAt: 0)
        + columns.map(column).joined())
  }
  row("microseconds per call", ["C", "Swift", "over C"])
  for (name, c, swift) in rows {
    row(name, [c, swift, swift - c].map { String(format: "%.1f", $0 / 1000) })
  }
  await app.close()
  holdfast_close(handle)
  print("target: 5 over C")
}

let count = Int(CommandLine.arguments[3]) ?? 0
if CommandLine.arguments[1] == "leaks" {
  try await leaks(CommandLine.arguments[2], count)
} else {
  try await bench(CommandLine.arguments[2], count)
}
