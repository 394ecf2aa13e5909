import Foundation
import Testing

@testable import HoldfastKit

/// Run a program that run.py has built; return what it prints.
private func run(
  _ name: String, _ arguments: [String] = [], in folder: URL
) throws -> [String] {
  let child = Process()
  let programs = URL(fileURLWithPath: try #require(environment["HOLDFAST_PROGRAMS"]))
  child.executableURL = programs.appendingPathComponent(name)
  child.arguments = arguments
  child.currentDirectoryURL = folder
  child.environment = environment.merging(["HOLDFAST_PASSWORD": "holdfast-demo"]) { $1 }
  let output = Pipe()
  child.standardOutput = output
  try child.run()
  let data = output.fileHandleForReading.readDataToEndOfFile()
  child.waitUntilExit()
  #expect(child.terminationStatus == 0)
  return String(decoding: data, as: UTF8.self).split(separator: "\n").map(String.init)
}

@Suite struct ProgramTests {
  @Test func theExampleStoresAVisitAndResumesTheSession() async throws {
    let folder = try freshFolder()
    let backend = try #require(environment["HOLDFAST_BACKEND"])
    let key = try #require(environment["HOLDFAST_KEY"])
    for email in ["mentor@example.org", "nobody"] {
      let lines = try run("visits", [backend, key, email], in: folder)
      #expect(lines.first == "screen: home ")
      let id = try #require(lines.last?.split(separator: " ").last)
      #expect(try await stored(String(id)) == 1)
    }
  }

  @Test func theReadmesFirstProgramStoresAVisit() async throws {
    let lines = try run("readme-first", in: freshFolder())
    #expect(lines.first == "home ")
    #expect(try await stored(try #require(lines.last)) == 1)
  }

  @Test func theReadmesProgramWithoutAServerRuns() throws {
    #expect(try run("readme-offline", in: freshFolder()) == ["sign_in session_missing"])
  }

  @Test func aHundredThousandCallsLeaveNothing() throws {
    let told = try run(
      "calls", ["leaks", freshFolder().path + "/data", "100000"], in: freshFolder())
    let numbers = try #require(told.last).split(separator: " ").compactMap { Int($0) }
    try #require(numbers.count == 4)
    // The handle before and after the calls, and nothing once all are closed.
    #expect(numbers.prefix(3) == [1, 1, 0])
    #expect(numbers[3] < 4096, "the process has grown by so many kB")
  }

  /// Issue 18: at most 25 lines to the first synced item.
  @Test(arguments: ["Example/main.swift", ".build-readme/first/main.swift"])
  func theFirstItemIsSyncedAfterAFewLines(path: String) throws {
    let package = URL(fileURLWithPath: #filePath)
      .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
    let text = try String(contentsOf: package.appendingPathComponent(path), encoding: .utf8)
    let lines = text.split(separator: "\n").map { $0.trimmingCharacters(in: .whitespaces) }
    let end = try #require(lines.lastIndex { $0.contains("sync.ids.contains") })
    #expect(lines[...end].count { !$0.hasPrefix("//") } <= 25)
  }
}
