import Base
import TestSupport
import Testing

@testable import Engine

/// How soon the host comes back where the system does not tell that another process wrote the file.
@Suite struct LookingTests {
  private let folder: TemporaryFolder
  private let engine: Engine

  init() throws {
    folder = try TemporaryFolder()
    engine = try Engine(
      try Configuration.read(
        try json(
          #"{"data_dir":"\#(folder.path)","clock":"manual","auth_methods":[],"#
            + #""backend":{"url":"https://x.supabase.co","api_key":"key"}}"#)),
      keyStore: MemoryKeyStore())
    _ = try engine.setClock(["now_ms": 1_795_000_000_000])
  }

  private func wake() throws -> Int64? {
    try engine.begin()
    return try engine.poll([:]).int("wake_in_ms")
  }

  @Test func aVisibleAppLooksEverySecond() throws {
    // Given nothing that becomes due
    try expect(wake(), equals: nil)
    engine.setDeaf(true)
    try expect(wake(), equals: 1000)
    // When the app leaves the screen, and comes back
    _ = try engine.sessionBackground([:])
    try expect(wake(), equals: nil)
    _ = try engine.sessionForeground([:])
    try expect(wake(), equals: 1000)
    _ = try engine.sessionBackground([:])
    _ = try engine.sessionResume([:])
    try expect(wake(), equals: 1000)
  }
}
