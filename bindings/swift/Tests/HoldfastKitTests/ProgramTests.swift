import Foundation
import Testing

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
  @Test func theExampleTakesItsSixSteps() async throws {
    let backend = try #require(environment["HOLDFAST_BACKEND"])
    let key = try #require(environment["HOLDFAST_KEY"])
    let lines = try run("visits", [backend, key, "mentor@example.org"], in: freshFolder())
    let screens = lines.filter { $0.hasPrefix("screen: ") && !$0.hasPrefix("screen: wait") }
    #expect(screens == ["sign_in", "select_org", "home", "home"].map { "screen: \($0)" })
    let sent = try #require(lines.first { $0.hasPrefix("sent: ") })
    #expect(try await stored(String(sent.dropFirst(6))) == 1)
    #expect(lines.suffix(2).map { $0.prefix(9) } == ["contacts:", "unsent af"])
  }

  @Test func theReadmesFirstProgramSendsAVisit() async throws {
    let lines = try run("readme-first", in: freshFolder())
    let sent = try #require(lines.last { $0.hasPrefix("sent: ") })
    #expect(try await stored(String(sent.dropFirst(6))) == 1)
  }

  @Test func aHundredThousandCallsLeaveNothing() throws {
    let told = try run("calls", [freshFolder().path + "/data", "100000"], in: freshFolder())
    let numbers = try #require(told.last).split(separator: " ").compactMap { Int($0) }
    try #require(numbers.count == 4)
    // The handle before and after the calls, and nothing once all are closed.
    #expect(numbers.prefix(3) == [1, 1, 0])
    #expect(numbers[3] < 4096, "the process has grown by so many kB")
  }

  /// Issue 18: at most 25 lines to the first synced item.
  @Test func theFirstItemIsSyncedAfterAFewLines() throws {
    let package = URL(fileURLWithPath: #filePath)
      .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
    let program = package.appendingPathComponent(".build-readme/first/main.swift")
    let lines = try String(contentsOf: program, encoding: .utf8).split(separator: "\n")
    #expect(lines.count <= 25)
  }
}
