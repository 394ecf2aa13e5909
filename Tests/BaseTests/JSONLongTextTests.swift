import TestSupport
import Testing

@testable import Base

@Suite struct JSONLongTextTests {
  private let long = String(repeating: "x", count: JSON.longText)

  /// What jansson alone reads.
  private func plain(_ text: String, _ dialect: JSON.Dialect = .strict) throws(Failure) -> JSON {
    var result = Result<JSON, Failure>.failure(.defect("not read"))
    Array(text.utf8).withUnsafeBytes { bytes in
      do throws(Failure) {
        result = .success(try JSON.build(bytes, dialect, true, longest: bytes.count))
      } catch {
        result = .failure(error)
      }
    }
    return try result.get()
  }

  @Test(
    "A long text is read as jansson reads it, wherever it is",
    arguments: [
      "", "å€😀", #"\"\\\/\b\f\n\r\t"#, #"\u00e5\u20AC\ud83d\ude00"#,
      #"\u001f\u007f\u0080\u07ff\u0800\uffff"#,
      #"{[,]}:\\"#, #"\\\""#, #"\udbff\udfff\ud800\udc00"#,
    ])
  func same(part: String) throws {
    for text in [
      #"{"body":"*"}"#, #"{"id":7,"a":{"b":[1,"x"]},"body":"*","status":200}"#,
      #" { "c" : "short" , "body" : "*" , "e": [ ] } "#, #"{"\u0062ody":"*","b":"*"}"#,
      #"{"a":["*"],"body":1.50}"#, #"["*",1]"#, #"{"*":1}"#, #"{"a":{"*":"*"}}"#,
    ] {
      for filled in [part + long, long + part, part + long + part] {
        let text = text.split(separator: "*", omittingEmptySubsequences: false)
          .joined(separator: filled)
        try expect(parse(text) == plain(text))
        try expect(parse(text, .exact) == plain(text, .exact))
      }
    }
    try expect(parse(#"{"a":1e3,"b":"\#(long)","c":[2e0,0.5]}"#, .exact)["a"]?.int, equals: 1_000)
  }

  @Test(
    "What is refused is refused with the same code, words and field",
    arguments: [
      #"{"body":"*\x"}"#, "{\"body\":\"*\t\"}", #"{"a":1,"body":"\u0000*"}"#,
      #"{"body":"*\ud800"}"#,
      #"{"body":"*\udc00x"}"#, #"{"body":"*\u12"}"#, #"{"body":"*\u12G4"}"#,
      #"{"body":"*\ud800\u0041"}"#,
      #"{"body":"*","body":1}"#, #"{"a":1,"a":2,"body":"*"}"#, #"{"a":x,"body":"*"}"#,
      #"{"body":"*","c":{"d":tru}}"#, #"{"body":"*""#, #"{"body":"*"#, #"{"body":"*\"#,
      #"{"body":"*\""#,
      #"{"body":"*"}}"#, #"{"body":"*",}"#, #"{"body":"*" "c":1}"#, #"{"\ud800":"*"}"#,
      #"{"body":"*","big":99999999999999999999}"#,
    ])
  func refused(text: String) {
    let text = text.split(separator: "*", omittingEmptySubsequences: false).joined(separator: long)
    let expected = failure { () throws(Failure) in try plain(text) }
    let found = failure { () throws(Failure) in try parse(text) }
    expect(expected != nil)
    expect(found?.code, equals: expected?.code)
    expect(found?.field, equals: expected?.field)
    expect(found?.message, equals: expected?.message)
  }

  @Test(
    "UTF-8 that is not valid",
    arguments: [
      [0xC3], [0xC0, 0xAF], [0xED, 0xA0, 0x80], [0xF4, 0x90, 0x80, 0x80], [0x80], [0xFF],
    ]
      as [[UInt8]])
  func invalidUTF8(bytes: [UInt8]) {
    let text = Array(#"{"a":1,"note":"\#(long)"#.utf8) + bytes + Array(#""}"#.utf8)
    let refused = failure { () throws(Failure) in try parse(text) }
    expect(refused?.code, equals: .requestNotJSON)
    expect(refused?.message, equals: "not valid UTF-8")
    expect(refused?.field, equals: "/note")
  }
}

@Suite struct JSONRowsTests {
  private func pieces(_ text: String) -> [String]? {
    let bytes = Array(text.utf8)
    return bytes.withUnsafeBytes { bytes in
      guard var rows = JSONRows(bytes) else { return nil }
      var result: [String] = []
      while let row = rows.next() { result.append(String(decoding: row, as: UTF8.self)) }
      return rows.isComplete ? result : nil
    }
  }

  @Test(
    "An array is cut at its own commas",
    arguments: [
      ("[]", []), (" [ \n ] ", []), ("[1]", ["1"]), ("[ 1 , 2 ]\n", ["1", "2"]),
      (
        #"[{"a":[1,2],"b":"],["},[[],[3]],"\"]"]"#,
        [#"{"a":[1,2],"b":"],["}"#, "[[],[3]]", #""\"]""#]
      ),
      ("[-1.5e3,null,true,false]", ["-1.5e3", "null", "true", "false"]),
    ] as [(String, [String])])
  func cut(text: String, expected: [String]) {
    expect(pieces(text), equals: expected)
  }

  @Test(
    "What is no complete array has no pieces",
    arguments: [
      "", " ", "7", "[", "[1", "[1,", "[1]]", "[1] 2", "[]x", "[}]", #"["]"#, "[{]}", "[[1]",
      "][", "[,]", "[1,]", "[1 2]", "[tru]", "[nullx]", "[object Object]", "[1,<p>]", "[\"a]",
    ])
  func none(text: String) {
    let whole = (try? parse(text, .tolerant)) != nil
    expect(!whole)
    // A piece may be left whose brackets do not match: jansson refuses it.
    let rows = pieces(text) ?? ["["]
    expect(rows.contains { (try? parse("[\($0)]")) == nil })
  }
}
