import TestSupport
import Testing

@testable import Base

@Suite struct PlainObjectTests {
  private let names = ["id", "name", "a"]

  /// What is kept of the text when it is read in place; nil: it is not plain.
  private func kept(_ text: [UInt8], _ names: [String]) throws -> String? {
    try text.withUnsafeBytes { bytes in
      guard let object = PlainObject(bytes) else { return nil }
      return try object.text(of: names).string
    }
  }

  /// The same as jansson reads and writes it.
  private func built(_ text: [UInt8], _ names: [String]) throws -> String? {
    try text.withUnsafeBytes { bytes in
      guard let value = try? JSON.parse(bytes, .tolerant, scalars: true) else { return nil }
      value.keepMembers(names)
      return try value.text().string
    }
  }

  @Test(
    "Rows of tables are read in place",
    arguments: [
      #"{"id":"1","name":"Kåre Moen","a":null}"#,
      " { \"id\" : 7 ,\n\"b\":true, \"a\" : false\t} ",
      #"{"name":"","id":0,"x":"left out"}"#, #"{"a":-12,"name":" \#u{7f} "}"#,
      #"{"id":-123456789012345678,"":"x"}"#, #"{"b":1}"#,
    ])
  func plain(text: String) throws {
    let bytes = Array(text.utf8)
    let kept = try #require(try kept(bytes, names))
    expect(kept, equals: (try built(bytes, names)))
  }

  @Test(
    "About other texts it says nothing",
    arguments: [
      "", "{}", "[]", "7", #"{"a":{}}"#, #"{"a":[]}"#, #"{"a":"\n"}"#, #"{"\u0061":1}"#,
      #"{"a":1.5}"#, #"{"a":1e3}"#, #"{"a":-0}"#, #"{"a":01}"#, #"{"a":1,"a":2}"#,
      #"{"a":1234567890123456789}"#, #"{"a":1}}"#, #"{"a":1"#, #"{"a":1,}"#, #"{a:1}"#,
      #"{"a" 1}"#, #"{"a":}"#, #"{"a":nul}"#, #"{"a":"x}"#, #"{"a":"x"y}"#, "{\"a\":\"\n\"}",
      #"{"a":-}"#, #"{"a":1-2}"#, #"{"a":True}"#,
    ])
  func others(text: String) throws {
    try expect(kept(Array(text.utf8), names), equals: nil)
  }

  @Test("It has few members")
  func many() throws {
    func object(_ count: Int) -> [UInt8] {
      Array(("{" + (0..<count).map { "\"m\($0)\":\($0)" }.joined(separator: ",") + "}").utf8)
    }
    try expect(kept(object(32), ["m31"]), equals: #"{"m31":31}"#)
    try expect(kept(object(33), ["m31"]), equals: nil)
  }

  @Test("Members are found by their names")
  func members() throws {
    let text = Array(#"{"id":"ø","number":7,"none":null,"yes":true}"#.utf8)
    try text.withUnsafeBytes { bytes in
      let object = try #require(PlainObject(bytes))
      expect(object.string("id"), equals: "ø")
      expect(object.utf8("id")?.count, equals: 2)
      for name in ["number", "none", "yes", "missing", "i", "idd"] as [StaticCString] {
        expect(object.string(name), equals: nil)
      }
      expect(object.isOther("number") && object.isOther("yes"))
      expect(!object.isOther("id") && !object.isOther("none") && !object.isOther("missing"))
    }
  }

  @Test("Whatever is read in place, jansson reads and writes alike")
  func property() throws {
    var random = RandomJSON(seed: 41)
    var plain = 0
    for number in 0..<20_000 {
      var text = Array("{".utf8)
      for member in 0..<random.below(6) {
        if member > 0 { text += Array(",".utf8) }
        text += Array("\"\(["id", "name", "a", "b", "ø"][random.below(5)])\":".utf8)
        if random.below(8) == 0 {
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
      guard String(validating: text, as: UTF8.self) != nil, let kept = try kept(text, names) else {
        continue
      }
      plain += 1
      expect(kept, equals: (try built(text, names)), "\(String(decoding: text, as: UTF8.self))")
    }
    expect(plain > 5_000)
  }
}
