import CHoldfast
import Foundation
import Testing

@testable import HoldfastKit

#if canImport(FoundationNetworking)
  import FoundationNetworking
#endif

let environment = ProcessInfo.processInfo.environment

func freshFolder() throws -> URL {
  let base = URL(fileURLWithPath: try #require(environment["HOLDFAST_FOLDER"]))
  let folder = base.appendingPathComponent(UUID().uuidString)
  try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
  return folder
}

func configuration(
  _ folder: URL, url: String? = nil, biometric: PolicyBiometric = .off, role: ConfigRole? = nil
) throws -> Config {
  Config(
    dataDir: folder.path + "/data",
    backend: Backend(
      url: try #require(url ?? environment["HOLDFAST_BACKEND"]),
      apiKey: try #require(environment["HOLDFAST_KEY"])),
    policy: Policy(biometric: biometric), keystore: KeyStoreChoice(kind: .file), role: role,
    template: .volunteers)
}

/// Open, and sign in.
func signedIn(
  _ config: Config, keyStore: (any KeyStore)? = nil, sender: any HTTPSender = URLSessionSender()
) async throws -> Holdfast {
  let app = try await Holdfast(config, keyStore: keyStore, sender: sender)
  #expect(try await app.settled().screen == .signIn)
  try await app.signInComplete(email: "solo@example.org", password: "holdfast-demo")
  #expect(try await app.settled().screen == .home)
  return app
}

extension Holdfast {
  /// The next screen; other news are passed over.
  func shown() async throws -> Decision {
    for try await next in news { if case .screen(let screen) = next { return screen } }
    throw HoldfastError(withoutReply: HOLDFAST_CLOSED)
  }

  /// Queue a visit.
  func visit(_ minutes: JSON = 30) async throws -> String {
    try await queueAdd(kind: "activity", payload: ["type": "visit", "minutes": minutes]).id
  }
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
