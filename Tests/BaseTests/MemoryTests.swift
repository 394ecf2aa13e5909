import CJansson
import CPlatform
import Glibc
import TestSupport
import Testing

@testable import Base

/// jansson's allocations of this thread fail once `left` of them were made.
nonisolated(unsafe) private var left = Int.max
nonisolated(unsafe) private var thread: pthread_t = 0
nonisolated(unsafe) private var beneath: json_malloc_t?

@Suite(.serialized) struct MemoryTests {
  /// Runs `body` with one allocation that fails, for each of its allocations.
  private func failEach<Value>(
    _ body: () throws(Failure) -> Value, isRight: (Value?) -> Bool
  ) {
    var release: json_free_t?
    platform_install_allocator()
    json_get_alloc_funcs(&beneath, &release)
    let own = beneath
    json_set_alloc_funcs(
      { size in
        guard pthread_equal(thread, pthread_self()) != 0 else { return beneath?(size) }
        left -= 1
        // The library's own function notes that it has failed.
        return beneath?(left == -1 ? .max : size)
      }, release)
    defer { json_set_alloc_funcs(own, release) }
    thread = pthread_self()
    var failed = 0
    for number in 0..<1_000 {
      platform_memory_begin()
      left = number
      var result: Value?
      var code: ErrorCode?
      do throws(Failure) { result = try body() } catch { code = error.code }
      let wasReached = left < 0
      left = .max
      platform_memory_begin()
      if wasReached {
        expect(isRight(result) || code == .memoryExhausted, "allocation \(number)")
      } else {
        expect(isRight(result))
        break
      }
      failed += 1
    }
    thread = 0
    expect(failed > 0 && failed < 1_000)
  }

  @Test("Without memory, a text is right or is refused as such")
  func writing() throws {
    let value = try parse(#"{"a":[0.1,9.95,{"b":-2.5e-7}],"c":"x"}"#)
    let expected = try value.text().string
    failEach({ () throws(Failure) in try value.text().string }, isRight: { $0 == expected })
  }

  @Test("Without memory, a payload is right or is refused as such, never as the host's mistake")
  func reading() throws {
    let text = #"{"a":9007199254740992.000,"b":[1e3,0.5]}"#
    let read = try parse(text, .exact)
    try expect(read.text().string, equals: #"{"a":9007199254740992.0,"b":[1000,0.5]}"#)
    failEach(
      { () throws(Failure) in try parse(text, .exact) }, isRight: { $0.map { $0 == read } == true })
  }

  @Test("A text gives its memory back")
  func leaks() throws {
    let value = JSON.string(String(repeating: "x", count: 1 << 20))
    let before = try mappedPages()
    for _ in 0..<100 { try expect(value.text().count, equals: 1 << 20 + 2) }
    // 100 MB; other tests run at the same time.
    try expect(mappedPages() < before + 12_500)
  }
}

/// The size of this process's memory, in pages of 4 kB.
private func mappedPages() throws -> Int {
  let file = try #require(fopen("/proc/self/statm", "r"))
  defer { fclose(file) }
  var pages = 0
  while let digit = ASCII.digit(UInt8(truncatingIfNeeded: fgetc(file))) {
    pages = 10 * pages + digit
  }
  return pages
}
