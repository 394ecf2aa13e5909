import TestSupport
import Testing

@testable import Base

@Suite struct JSONTests {
  @Test("All kinds are distinguished")
  func kinds() throws {
    let json = try parse(#"{"o":{},"a":[],"s":"","i":1,"r":1.0,"t":true,"f":false,"n":null}"#)
    expect(json.kind, equals: .object)
    expect(
      json.members.map { $0.value.kind },
      equals: [
        .object, .array, .string, .integer, .real, .boolean, .boolean, .null,
      ])
    expect(json["t"]?.bool, equals: true)
    expect(json["f"]?.bool, equals: false)
    expect(json["n"]?.isNull, equals: true)
    expect(json["absent"] == nil)
  }

  @Test("A value read as another kind is nil, never converted")
  func wrongKinds() {
    let text: JSON = "7"
    expect(text.int == nil && text.number == nil && text.bool == nil)
    let number: JSON = 7
    expect(number.string == nil && number.bool == nil && number.int == 7 && number.number == 7)
    expect(JSON.real(7).int, equals: nil)
    expect(JSON.bool(true).int, equals: nil)
    expect(number["a"] == nil && number.elements.isEmpty && number.members.isEmpty)
    expect(number.count, equals: 0)
    expect(number.withUTF8 { $0.count }, equals: nil)
  }

  @Test("Members keep their order, also with an empty key")
  func members() throws {
    let json: JSON = ["z": 1, "": 2, "a": 3, "ø/~": 4]
    expect(json.members.map { $0.key }, equals: ["z", "", "a", "ø/~"])
    expect(json[""]?.int, equals: 2)
    try expect(json.text().string, equals: #"{"z":1,"":2,"a":3,"ø/~":4}"#)
  }

  @Test("Changing a shallow copy leaves the original unchanged")
  func copies() throws {
    let original: JSON = ["a": 1, "b": ["c": 2]]
    let copy = original.shallowCopy
    copy.set("a", 9)
    copy.remove("b")
    try expect(original.text().string, equals: #"{"a":1,"b":{"c":2}}"#)
    try expect(copy.text().string, equals: #"{"a":9}"#)
  }

  @Test("Optional values become null")
  func optionals() {
    expect(JSON(nil as String?).isNull && JSON(nil as Int64?).isNull)
    expect(JSON("x").string == "x" && JSON(5).int == 5)
  }

  @Test("Bytes that are not UTF-8 become null")
  func invalidBytes() {
    let bytes: [UInt8] = [0xC3, 0x28]
    expect(bytes.withUnsafeBytes { JSON.string($0) }.isNull)
    expect([UInt8]().withUnsafeBytes { JSON.string($0) }.string, equals: "")
  }

  @Test("A string with a NUL stays whole")
  func embeddedNul() throws {
    let json = JSON.string("a\0b")
    expect(json.string, equals: "a\0b")
    expect(json.withUTF8 { $0.count }, equals: 3)
    try expect(JSON.array([json]).text().string, equals: #"["a\u0000b"]"#)
  }

  @Test("Values are equal by content; an integer and a real number differ")
  func equality() throws {
    try expect(parse(#"{"a":1,"b":[true,null]}"#) == parse(#"{"b":[true,null],"a":1}"#))
    try expect(!(parse("[1]") == parse("[1.0]")))
    try expect(!(parse("[1,2]") == parse("[2,1]")))
  }
}
