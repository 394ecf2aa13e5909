import TestSupport
import Testing

@testable import Base

@Suite struct JSONPointerTests {
  @Test(
    "Tokens are escaped as in RFC 6901",
    arguments: [
      ("", ""), ("a", "a"), ("a/b", "a~1b"), ("m~n", "m~0n"), ("~1", "~01"), ("å/😀", "å~1😀"),
    ])
  func escaping(key: String, expected: String) {
    expect(JSONPointer.escape(key), equals: expected)
  }

  @Test(
    "The pointer of the value at an offset",
    arguments: [
      (#"{"a":1}"#, 6, "/a"), (#"{"a":1,"b":2}"#, 12, "/b"), (#"{"a":1,"b":2}"#, 7, ""),
      (#"{"a":[1,2,3]}"#, 10, "/a/2"), (#"{"a":{"b":{"c":1}}}"#, 15, "/a/b/c"),
      (#"{"a":{"b":1},"c":2}"#, 18, "/c"), (#"[[1],[2,3]]"#, 8, "/1/1"),
      (#"{"a\"b":1}"#, 8, "/a\"b"), (#"{"a":"}]{[,","b":1}"#, 17, "/b"),
      (#"{"a\u0000":1}"#, 10, #"/a\u0000"#),
    ])
  func places(text: String, offset: Int, expected: String) {
    let bytes = Array(text.utf8)
    expect(bytes.withUnsafeBytes { JSONPointer.locate(at: offset, in: $0) }, equals: expected)
  }

  @Test(
    "No offset and no text causes a crash", arguments: ["", "{", "]", "}}", "\"", #"{"a\"#, ",,"])
  func nasty(text: String) {
    let bytes = Array(text.utf8)
    bytes.withUnsafeBytes { bytes in
      for offset in [Int.min, -1, 0, 1, 2, 3, 100, Int.max] {
        _ = JSONPointer.locate(at: offset, in: bytes)
      }
    }
  }
}
