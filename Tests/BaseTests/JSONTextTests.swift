import TestSupport
import Testing

@testable import Base

@Suite struct JSONTextTests {
  // MARK: Reading

  @Test(
    "Invalid JSON, with the place where reading stopped",
    arguments: [
      ("", "request.not_json "), (" ", "request.not_json "), ("{", "request.not_json "),
      ("nul", "request.not_json "), ("7", "request.not_json "), ("\"a\"", "request.not_json "),
      ("{}}", "request.not_json "), ("{} {}", "request.not_json "),
      ("{'a':1}", "request.not_json "),
      (#"{"a":1,}"#, "request.not_json "), (#"{"a":[1,2,}]}"#, "request.not_json /a"),
      (#"{"a":{"b":tru}}"#, "request.not_json /a/b"), (#"{"a":1 "b":2}"#, "request.not_json /a"),
      (#"{"a":[{"b":1},{"c":01}]}"#, "request.not_json /a/1/c"), ("[1,2", "request.not_json /1"),
      (#"{"a":NaN}"#, "request.not_json /a"), (#"{"a":"b"#, "request.not_json /a"),
      (#"{"a/b~":x}"#, "request.not_json /a~1b~0"), ("{\"a\":\"\t\"}", "request.not_json /a"),
      (#"{"a":"\x"}"#, "request.not_json /a"), ("// note\n{}", "request.not_json "),
    ])
  func refused(text: String, expected: String) {
    expect(refusal(text), equals: expected)
  }

  @Test(
    "The same key twice",
    arguments: [
      (#"{"a":1,"a":1}"#, "/a"), (#"{"x":{"a":1,"b":2,"a":3}}"#, "/x/a"),
      (#"{"list":[{},{"id":1,"id":2}]}"#, "/list/1/id"), (#"{"a":1,"\u0061":2}"#, #"/\u0061"#),
    ])
  func duplicates(text: String, field: String) {
    expect(refusal(text), equals: "request.duplicate_key \(field)")
  }

  @Test("In a server's text, the last of duplicate keys counts")
  func tolerantDuplicates() throws {
    try expect(parse(#"{"a":1,"b":0,"a":2}"#, .tolerant)["a"]?.int, equals: 2)
  }

  @Test(
    "NUL characters",
    arguments: [#"{"note":"a\u0000b"}"#, #"{"a":[1,{"\u0000":1}]}"#, "{\"note\":\"a\0b\"}"])
  func nul(text: String) {
    for dialect in [JSON.Dialect.strict, .tolerant] {
      expect(
        failure { () throws(Failure) in try parse(text, dialect) }?.code, equals: .requestNotJSON)
    }
  }

  @Test(
    "Lone surrogates",
    arguments: [
      #"["\ud800"]"#, #"["\udc00"]"#, #"["\ud800\ud800"]"#, #"["\ud83dx"]"#, #"["\ud83d"#,
    ])
  func surrogates(text: String) {
    expect(failure { () throws(Failure) in try parse(text) }?.code, equals: .requestNotJSON)
  }

  @Test("A pair of surrogates is one character")
  func pair() throws {
    try expect(parse(#"["\ud83d\ude00"]"#).elements.first?.string, equals: "😀")
  }

  @Test(
    "Invalid UTF-8: truncated, overlong, a surrogate, beyond U+10FFFF, a stray byte",
    arguments: [
      [0xC3], [0xC0, 0xAF], [0xED, 0xA0, 0x80], [0xF4, 0x90, 0x80, 0x80], [0x80], [0xFF],
      [0xE2, 0x82],
    ] as [[UInt8]])
  func invalidUTF8(bytes: [UInt8]) {
    let text = Array(#"{"note":""#.utf8) + bytes + Array(#""}"#.utf8)
    let refused = failure { () throws(Failure) in try parse(text) }
    expect(refused?.code, equals: .requestNotJSON)
    expect(refused?.message, equals: "not valid UTF-8")
    expect(refused?.field, equals: "/note")
  }

  @Test("As many values as asked for are accepted, one more is not")
  func values() throws {
    let text = #"{"a":[1,2,{}],"b":",{[,"}"#  // the object, "a", 1, 2, {} and "b"
    func read(_ most: Int) throws -> JSON {
      var copy = text
      return try copy.withUTF8 { try JSON.parse(UnsafeRawBufferPointer($0), .strict, most: most) }
    }
    // Each container counts as one value more than it has.
    try expect(read(7)["b"]?.string, equals: ",{[,")
    #expect { try read(6) } throws: { ($0 as? Failure)?.code == .requestTooManyValues }
  }

  @Test("64 levels are accepted, 65 are not")
  func depth() throws {
    func nested(_ levels: Int) -> String {
      String(repeating: "[", count: levels) + String(repeating: "]", count: levels)
    }
    try expect(parse(nested(64)).kind, equals: .array)
    expect(failure { () throws(Failure) in try parse(nested(65)) }?.code, equals: .requestTooDeep)
    let deep = String(repeating: #"{"a":"#, count: 100_000)
    expect(failure { () throws(Failure) in try parse(deep) }?.code, equals: .requestTooDeep)
  }

  @Test("Brackets in strings are not levels, and closing brackets do not allow more")
  func depthOfStrings() throws {
    let brackets = String(repeating: #"[{\""#, count: 100)
    try expect(parse("[\"\(brackets)\"]").count, equals: 1)
    let siblings = "[" + String(repeating: "{},", count: 100) + "[]]"
    try expect(parse(siblings).count, equals: 101)
    let cheat = String(repeating: "]", count: 200) + String(repeating: "[", count: 200)
    expect(failure { () throws(Failure) in try parse(cheat) } != nil)
  }

  @Test(
    "A string ends at the first quote with an even number of backslashes before it",
    arguments: [
      (#"{"a":"\\","b":[]}"#, 4), (#"{"a":"\\\",{[","b":[]}"#, 4),
      (#"{"a":"\"\\\"","b":1}"#, 3), (#"{"":"","\\":"\\"}"#, 3),
      (#"{"a\\":[1,2],"b":"x\\\\"}"#, 5), (#"["\"","\\",",","\"\""]"#, 5),
    ])
  func endOfStrings(text: String, values: Int) throws {
    func read(_ most: Int) throws -> JSON {
      try Array(text.utf8).withUnsafeBytes { try JSON.parse($0, most: most) }
    }
    _ = try read(values)
    #expect { try read(values - 1) } throws: { ($0 as? Failure)?.code == .requestTooManyValues }
  }

  @Test("Integers of 64 bits are exact; larger ones are refused, not rounded")
  func integers() throws {
    let json = try parse("[9223372036854775807,-9223372036854775808,-0,9007199254740993]")
    expect(json.elements.map { $0.int }, equals: [.max, .min, 0, 9_007_199_254_740_993])
    expect(refusal(#"{"n":9223372036854775808}"#), equals: "request.not_json /n")
    expect(refusal(#"{"n":[1,-9223372036854775809]}"#), equals: "request.not_json /n/1")
    expect(refusal(#"{"n":1e999}"#), equals: "request.not_json /n")
  }

  @Test("White space is accepted around and between tokens; a byte order mark is not")
  func space() throws {
    try expect(parse(" \r\n\t{ \"a\" : [ 1 , 2 ] } \n")["a"]?.count, equals: 2)
    expect(refusal("\u{FEFF}{}") != nil)
  }

  @Test("Random bytes give a value or a failure")
  func noise() {
    var seed: UInt64 = 42
    func next() -> UInt64 {
      seed = seed &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
      return seed >> 33
    }
    let alphabet = Array(#"{}[]":,\u0 1-.eE+tnfal"#.utf8) + [0, 0x80, 0xC3, 0xE2, 0xFF]
    for _ in 0..<sized(5_000, full: 20_000) {
      let bytes = (0..<Int(next() % 24)).map { _ in alphabet[Int(next()) % alphabet.count] }
      if let json = try? parse(bytes, .tolerant) { expect((try? json.text()) != nil) }
    }
  }

  // MARK: Writing

  @Test(
    "A text that is read and written is unchanged",
    arguments: [
      "{}", "[]", #"{"a":[1,-2,true,false,null,"x"]}"#, #"["\"\\\b\f\n\r\t\u0001/é😀"]"#,
      #"{"æ":{"ø":"å"}}"#, "[9223372036854775807]",
    ])
  func roundTrip(text: String) throws {
    try expect(parse(text).text().string, equals: text)
  }

  @Test(
    "Real numbers keep their value and their digits",
    arguments: [
      ("[0.1]", "[0.1]"), ("[1.1,2.2,0.30000000000000004]", nil), ("[7.5]", "[7.5]"),
      ("[7.0]", "[7.0]"), ("[1e22]", "[1e22]"), ("[-0.0]", "[-0.0]"),
      ("[123456789.12345679]", "[123456789.12345679]"), ("[1.7976931348623157e308]", nil),
      ("[5e-324]", nil), ("[9.95]", "[9.95]"), ("[2.5e-7,100.25]", "[2.5e-7,100.25]"),
    ] as [(String, String?)])
  func reals(text: String, expected: String?) throws {
    let json = try parse(text)
    let written = try json.text().string
    try expect(parse(written) == json)
    if let expected { expect(written, equals: expected) }
    try expect(JSON.array([["deep": json]]).text().string, equals: #"[{"deep":\#(written)}]"#)
  }

  @Test("A number's digits do not depend on other numbers in the text")
  func independentReals() throws {
    let text = #"[3.3,0.30000000000000004,{"a\"1.50":9.99,"b":"0.10000000000000001"},5e-324,7]"#
    try expect(parse(text).text().string, equals: text)
  }

  @Test("A payload's number that a double holds is accepted as it is written")
  func exactReals() throws {
    for text in [
      "0.1", "9007199254740992.0", "9007199254740992.000", "90071992547409920000e-4",
      "1.7976931348623157e308", "5e-324", "-0.0", "2.50", "0.00e-300",
    ] {
      let json = try parse("[\(text)]", .exact)
      expect(json.elements.first?.kind, equals: .real, "\(text)")
      try expect(parse(json.text().string, .exact) == json)
    }
  }

  @Test(
    "A payload's number that a double does not hold is refused with its field",
    arguments: [
      "0.1234567890123456789", "9007199254740993.0", "9007199254740993e0", "1e-400",
      "0.1000000000000000055511151231257827", "4.9e-324", "1.79769313486231571e308",
    ])
  func inexactReals(text: String) throws {
    let refused = failure { () throws(Failure) in
      try parse(#"{"a":[0.5,{"b":\#(text)}],"c":1e3}"#, .exact)
    }
    expect(refused?.code, equals: .queueInvalidPayload)
    expect(refused?.field, equals: "/a/1/b")
    try expect(parse("[\(text)]").elements.first?.kind, equals: .real)
    // behind any string, an empty one too
    for string in ["", "a", #"\""#, #"\\"#] {
      let behind = failure { () throws(Failure) in
        try parse(#"["\#(string)",\#(text),""]"#, .exact)
      }
      expect(behind?.field, equals: "/1", "\(string)")
    }
  }

  @Test("A payload's number without decimals is an integer, in its place")
  func wholeReals() throws {
    let text = #"{"a":1e3,"b":[0.5,1.5E+3,{"c":-2e0,"d":7.0}],"e":1e22,"f":150e-1,"g":1.50e1}"#
    let expected =
      #"{"a":1000,"b":[0.5,1500,{"c":-2,"d":7.0}],"e":1e22,"f":15.0,"g":15.0}"#
    try expect(parse(text, .exact).text().string, equals: expected)
    try expect(parse("[1e3,0e300]", .exact).text().string, equals: "[1000,0]")
  }

  @Test("A scalar can be written by itself")
  func scalars() throws {
    try expect(JSON.string("x").text().string, equals: "\"x\"")
    try expect(JSON.null.text().string, equals: "null")
    try expect(JSON.real(0.1).text().string, equals: "0.1")
  }
}
