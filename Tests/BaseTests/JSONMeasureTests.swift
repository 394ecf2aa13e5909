import CJansson
import CPlatform
import Glibc
import TestSupport
import Testing

@testable import Base

/// What jansson has allocated in this thread, with the heads of its blocks.
nonisolated(unsafe) private var live = 0
nonisolated(unsafe) private var peak = 0
nonisolated(unsafe) private var counted: pthread_t = 0
nonisolated(unsafe) private var allocateBeneath: json_malloc_t?
nonisolated(unsafe) private var releaseBeneath: json_free_t?

@_silgen_name("malloc_usable_size")
private func usable(_ block: UnsafeMutableRawPointer?) -> Int

extension MemoryTests {
  /// The most memory that jansson holds at once while it reads a text.
  private func cost(of text: [UInt8]) -> Int {
    platform_install_allocator()
    json_get_alloc_funcs(&allocateBeneath, &releaseBeneath)
    json_set_alloc_funcs(
      { size in
        let block = allocateBeneath?(size)
        if pthread_equal(counted, pthread_self()) != 0 {
          live += usable(block) + 8
          peak = max(peak, live)
        }
        return block
      },
      { block in
        if pthread_equal(counted, pthread_self()) != 0, let block {
          live -= usable(block) + 8
        }
        releaseBeneath?(block)
      })
    defer { json_set_alloc_funcs(allocateBeneath, releaseBeneath) }
    live = 0
    peak = 0
    counted = pthread_self()
    defer { counted = 0 }
    _ = try? text.withUnsafeBytes { try JSON.build($0, .tolerant, true, longest: text.count) }
    return peak
  }

  @Test("The measured cost of a text is at least what jansson takes, and not much more")
  func costs() {
    var random = RandomJSON(seed: 20)
    for number in 0..<sized(24, full: 400) {
      var text: [UInt8] = []
      random.write(&text, depth: 0, size: number % 8 == 6 ? 3_000 : 40)
      // What breaks off costs what came before.
      if number % 8 == 7 { text.removeLast(text.count / 3) }
      let measured = text.withUnsafeBytes { JSONMeasure($0) }
      let cost = cost(of: text)
      expect(measured.bytes >= cost, "\(String(decoding: text.prefix(400), as: UTF8.self))")
      if number % 8 != 7 {
        expect(
          measured.bytes <= 2 * cost + 1024, "\(String(decoding: text.prefix(400), as: UTF8.self))")
      }
    }
  }

  @Test(
    "The costliest shapes",
    arguments: [
      "{},", "[],", "0,", #""","#, #"{"":0},"#, "[[0]],", #"{"a":{"b":{}}},"#, "-1.5e3,", "null,",
      #""\u0001\u00e5","#, #"{"a":1,"b":2,"c":3,"d":4,"e":5,"f":6,"g":7,"h":8,"i":9},"#,
    ])
  func shapes(unit: String) {
    let text = Array(("[" + String(repeating: unit, count: 5_000) + "0]").utf8)
    let measured = text.withUnsafeBytes { JSONMeasure($0) }
    let cost = cost(of: text)
    expect(measured.bytes >= cost && measured.bytes <= 2 * cost + 1024)
    let keys = (0..<5_000).map { #""\#($0)":null"# }.joined(separator: ",")
    let object = Array("{\(keys)}".utf8)
    expect(object.withUnsafeBytes { JSONMeasure($0) }.bytes >= self.cost(of: object))
    for size in [15, 16, 17, 4_095, 4_096, 1 << 17, 1 << 20, 3 << 19] {
      let long = Array("[\"\(String(repeating: "x", count: size))\"]".utf8)
      expect(long.withUnsafeBytes { JSONMeasure($0) }.bytes >= self.cost(of: long))
    }
  }
}
