import Foundation
import Testing

@testable import HoldfastKit

#if canImport(FoundationNetworking)
  import FoundationNetworking
#endif

let environment = ProcessInfo.processInfo.environment
let solo = SignInCompleteRequest.password(email: "solo@example.org", password: "holdfast-demo")

func freshFolder() throws -> URL {
  let base = URL(fileURLWithPath: try #require(environment["HOLDFAST_FOLDER"]))
  let folder = base.appendingPathComponent(UUID().uuidString)
  try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
  return folder
}

func configuration(
  _ folder: URL, url: String? = nil, biometric: PolicyBiometric = .off
) throws -> Config {
  Config(
    dataDir: folder.path + "/data",
    backend: Backend(
      url: try #require(url ?? environment["HOLDFAST_BACKEND"]),
      apiKey: try #require(environment["HOLDFAST_KEY"])),
    authMethods: [AuthMethodConfig(id: "password", flow: .password)],
    policy: Policy(biometric: biometric), keystore: KeyStoreChoice(kind: .file))
}

/// Open, and sign in.
func signedIn(_ config: Config, keyStore: (any KeyStore)? = nil) async throws -> Holdfast {
  let app = try Holdfast(config, keyStore: keyStore)
  let start = try await app.settled(try await app.sessionResume())
  #expect(start.screen == .signIn)
  let home = try await app.settled(try await app.signInComplete(solo))
  #expect(home.screen == .home)
  return app
}

/// How many rows of this id the server has.
func stored(_ id: String) async throws -> Int? {
  let base = try #require(environment["HOLDFAST_BACKEND"])
  var request = URLRequest(url: try #require(URL(string: base + "/_control/sql")))
  request.httpMethod = "POST"
  let query = "select count(*) as n from activities where id = %s"
  let body: JSON = ["query": .string(query), "parameters": [.string(id)]]
  request.httpBody = try JSONEncoder().encode(body)
  let (data, _) = try await URLSession.shared.data(for: request)
  return try JSONDecoder().decode(JSON.self, from: data)[0]?["n"]?.int
}

/// Wait until the queue is empty.
func drain(_ app: Holdfast) async throws {
  for try await event in app.events {
    if case .itemParked(let one) = event { Issue.record("\(one)") }
    let counts = try await app.syncStatus().counts
    if counts.pending + counts.sending + counts.waiting + counts.parked == 0 { return }
  }
}
