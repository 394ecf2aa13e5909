import TestSupport
import Testing

@testable import Base

@Suite struct JSONRowTests {
  private let names = ["id", "name", "a"]

  /// What is kept of the text when it is read in place; nil: it is no object, or cannot be read.
  private func kept(_ text: [UInt8], _ names: [String]) throws -> String? {
    text.withUnsafeBytes { bytes in
      let row = JSONRow(bytes)
      guard row.isObject, let text = try? row.text(of: names) else { return nil }
      return text.string
    }
  }

  /// The same as jansson reads and writes it.
  private func built(_ text: [UInt8], _ names: [String]) throws -> String? {
    try text.withUnsafeBytes { bytes in
      guard let value = try? JSON.parse(bytes, .tolerant, scalars: true), value.kind == .object
      else { return nil }
      let kept: JSON = [:]
      for name in names {
        if let member = value[member: name] { kept.set(member: name, member) }
      }
      return try kept.text().string
    }
  }

  @Test(
    "Rows are read as jansson reads them",
    arguments: [
      #"{"id":"1","name":"Kåre Moen","a":null}"#, "{}",
      " { \"id\" : 7 ,\n\"b\":true, \"a\" : false\t} ",
      #"{"name":"","id":0,"x":"left out"}"#, #"{"a":-12,"name":" \#u{7f} "}"#,
      #"{"id":-123456789012345678,"":"x"}"#, #"{"b":1}"#, #"{"a":{}}"#, #"{"a":[]}"#,
      #"{"a":"\n"}"#, #"{"a":1.50}"#, #"{"a":1e3}"#, #"{"a":-0}"#, #"{"a":1,"a":2}"#,
      #"{"a":1234567890123456789}"#, #"{"a":[{"b":"]}\"{["},[[]]],"id":"\"}"}"#,
      #"{"x":{"a":1},"a":"\\","name":"\u00e5"}"#,
    ])
  func same(text: String) throws {
    let bytes = Array(text.utf8)
    let kept = try #require(try kept(bytes, names))
    expect(kept, equals: (try built(bytes, names)))
  }

  @Test(
    "What is no object, or cannot be read, is not kept",
    arguments: [
      "", "[]", "7", #"{"a":01}"#, #"{"a":1}}"#, #"{"a":1"#, #"{"a":1,}"#, #"{a:1}"#, #"{"a" 1}"#,
      #"{"a":}"#, #"{"a":nul}"#, #"{"a":"x}"#, #"{"a":"x"y}"#, "{\"a\":\"\n\"}", #"{"a":-}"#,
      #"{"a":1-2}"#, #"{"a":True}"#, #"{"a":[1,]}"#, #"{"a":[1}"#, #"{"a":1e400}"#,
      #"{"a":"\u0000"}"#, #"{"a":"\ud800"}"#, #"{"a":"\x"}"#, #"{"a":"\"#,
    ])
  func others(text: String) throws {
    try expect(kept(Array(text.utf8), names), equals: nil)
  }

  @Test("What is not asked for is not judged")
  func notJudged() throws {
    let deep = String(repeating: "[", count: 70) + String(repeating: "]", count: 70)
    for odd in ["1e400", "12345678901234567000", deep, #""\u0000""#, #"["\ud800"]"#] {
      let text = Array(#"{"x":\#(odd),"id":"ø","a":7}"#.utf8)
      try expect(kept(text, names), equals: #"{"id":"ø","a":7}"#)
    }
  }

  @Test("It has at most as many members as a table has columns")
  func many() throws {
    func object(_ count: Int) -> [UInt8] {
      Array(("{" + (0..<count).map { "\"m\($0)\":\($0)" }.joined(separator: ",") + "}").utf8)
    }
    try expect(kept(object(1_600), ["m1599"]), equals: #"{"m1599":1599}"#)
    try expect(kept(object(1_601), ["m1"]), equals: nil)
  }

  @Test("Members are found by their names")
  func members() throws {
    let text = Array(
      #"{"id":"ø","number":7,"none":null,"yes":true,"list":[1],"line":"a\nb","id":"å"}"#.utf8)
    try text.withUnsafeBytes { bytes in
      let row = JSONRow(bytes)
      expect(row.isObject)
      expect(row.string("id"), equals: "å")
      expect(row.string(named: "line"), equals: "a\nb")
      for name in ["number", "none", "yes", "list", "missing", "i", "idd"] as [StaticCString] {
        expect(row.string(name), equals: nil)
        expect(row.isNull(name), equals: ["none", "missing", "i", "idd"].contains(name.string))
        expect(row.isTextOrNull(name), equals: row.isNull(name))
      }
      expect(row.isTextOrNull("line") && row.isTextOrNull("id") && !row.isNull("id"))
      let list = try #require(row.value("list"))
      expect(list == [1])
      expect(row.value("missing") == nil)
    }
    expect(
      Array("[]".utf8).withUnsafeBytes { JSONRow($0).isObject || !JSONRow($0).isNull("id") },
      equals: false)
  }

  @Test("An id may be written with escapes")
  func ids() {
    let id = "61cb3aa1-44d2-492e-ad46-586330418eac"
    for written in [id, #"\u0036"# + id.dropFirst()] {
      let text = Array(#"{"id":"\#(written)"}"#.utf8)
      expect(text.withUnsafeBytes { JSONRow($0).uuid("id")?.text }, equals: id)
    }
  }

  @Test("Whatever is kept, jansson reads and writes alike")
  func property() throws {
    var random = RandomJSON(seed: 41)
    var same = 0
    for number in 0..<20_000 {
      var text = Array("{".utf8)
      for member in 0..<random.below(6) {
        if member > 0 { text += Array(",".utf8) }
        text += Array("\"\(["id", "name", "a", "b", "ø"][random.below(5)])\":".utf8)
        if random.below(4) == 0 {
          random.write(&text, depth: 1, size: 4)
        } else {
          text += Array(
            [#""Åse""#, #""x y""#, "null", "true", "7", "-3", "0", #""""#][random.below(8)].utf8)
        }
      }
      text += Array("}".utf8)
      // A third of them are damaged.
      if number % 3 == 0 {
        let place = random.below(text.count)
        text[place] = Array(#"{}[]",:\09-.eltfnu "#.utf8)[random.below(19)]
      }
      guard String(validating: text, as: UTF8.self) != nil,
        let built = try built(text, names)
      else { continue }
      same += 1
      expect(try kept(text, names), equals: built, "\(String(decoding: text, as: UTF8.self))")
    }
    expect(same > 5_000)
  }
}
