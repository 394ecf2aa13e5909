import TestSupport
import Testing

@testable import Base

@Suite struct FieldsTests {
  private enum Color: String, CaseIterable { case red, green }

  private let known: [StaticCString] = ["text", "count", "flag", "id", "list", "color", "inner"]

  private func fields(_ text: String, at path: String = "") throws(Failure) -> Fields {
    try Fields(try parse(text), at: path, known: known)
  }

  /// Code and field of the failure that `read` throws, as "code field".
  private func refusal<Value>(
    _ text: String, _ read: (Fields) throws(Failure) -> Value
  ) -> String? {
    failure { () throws(Failure) in try read(try fields(text)) }
      .map { "\($0.code.rawValue) \($0.field ?? "-")" }
  }

  @Test("Every kind of value is read")
  func values() throws {
    let fields = try fields(
      #"{"text":"å","count":-3,"flag":false,"id":"00000000-0000-4000-8000-00000000000F","#
        + #""list":["a","b"],"color":"green","inner":{"text":"x"}}"#)
    try expect(fields.string("text"), equals: "å")
    try expect(fields.integer("count"), equals: -3)
    try expect(fields.bool("flag"), equals: false)
    try expect(fields.uuid("id").text, equals: "00000000-0000-4000-8000-00000000000f")
    try expect(fields.strings(ifPresent: "list"), equals: ["a", "b"])
    try expect(fields.array(ifPresent: "list")?.count, equals: 2)
    try expect(fields.choice("color", Color.self), equals: .green)
    try expect(fields.fields("inner", known: ["text"]).string("text"), equals: "x")
  }

  @Test("An absent field and a null field are the same")
  func absent() throws {
    for text in [
      "{}",
      #"{"text":null,"count":null,"flag":null,"id":null,"list":null,"color":null,"inner":null}"#,
    ] {
      let fields = try fields(text)
      try expect(fields.string(ifPresent: "text"), equals: nil)
      try expect(fields.integer(ifPresent: "count"), equals: nil)
      try expect(fields.bool(ifPresent: "flag"), equals: nil)
      try expect(fields.uuid(ifPresent: "id"), equals: nil)
      try expect(fields.strings(ifPresent: "list"), equals: nil)
      try expect(fields.choice(ifPresent: "color", Color.self), equals: nil)
      try expect(fields.fields(ifPresent: "inner", known: []) == nil)
      expect(
        refusal(text) { (it) throws(Failure) in try it.string("text") },
        equals: "request.missing_field /text")
      expect(
        refusal(text) { (it) throws(Failure) in try it.fields("inner", known: []).path },
        equals: "request.missing_field /inner")
    }
  }

  @Test("A wrong type names the field")
  func wrongTypes() {
    func wrong<Value>(_ text: String, _ read: (Fields) throws(Failure) -> Value) -> Bool {
      refusal(text, read)?.hasPrefix("request.wrong_type /") ?? false
    }
    expect(wrong(#"{"text":1}"#) { (it) throws(Failure) in try it.string("text") })
    expect(wrong(#"{"count":"1"}"#) { (it) throws(Failure) in try it.integer("count") })
    expect(wrong(#"{"count":1.5}"#) { (it) throws(Failure) in try it.integer("count") })
    expect(wrong(#"{"flag":1}"#) { (it) throws(Failure) in try it.bool("flag") })
    expect(wrong(#"{"list":{}}"#) { (it) throws(Failure) in try it.strings(ifPresent: "list") })
    expect(
      wrong(#"{"inner":[]}"#) { (it) throws(Failure) in try it.fields("inner", known: []).path })
    expect(
      refusal(#"{"list":["a",2]}"#) { (it) throws(Failure) in try it.strings(ifPresent: "list") },
      equals: "request.wrong_type /list/1")
    expect(
      refusal(#"{"list":["a",""]}"#) { (it) throws(Failure) in try it.strings(ifPresent: "list") },
      equals: "request.wrong_type /list/1")
  }

  @Test("An empty or too long text, a number out of range and a malformed UUID are invalid")
  func invalid() {
    expect(
      refusal(#"{"text":""}"#) { (it) throws(Failure) in try it.string("text") },
      equals: "request.invalid_value /text")
    expect(
      refusal(#"{"text":"øø"}"#) { (it) throws(Failure) in try it.string("text", maximum: 3) },
      equals: "request.invalid_value /text")
    expect(
      refusal(#"{"count":9007199254740993}"#) { (it) throws(Failure) in try it.integer("count") },
      equals: "request.invalid_value /count")
    expect(
      refusal(#"{"count":6}"#) { (it) throws(Failure) in try it.integer("count", in: 1...5) },
      equals: "request.invalid_value /count")
    expect(
      refusal(#"{"id":"not-a-uuid"}"#) { (it) throws(Failure) in try it.uuid("id") },
      equals: "request.invalid_value /id")
  }

  @Test("The safe integers end at 2^53")
  func safe() throws {
    let edge = try fields(#"{"count":9007199254740992}"#)
    try expect(edge.integer("count"), equals: 9_007_199_254_740_992)
    try expect(
      fields(#"{"count":-9007199254740992}"#).integer("count"), equals: -9_007_199_254_740_992)
  }

  @Test("An unknown field is refused, with the nearest known name")
  func unknown() {
    let refused = failure { () throws(Failure) in try fields(#"{"text":"a","colour":"red"}"#) }
    expect(refused?.code, equals: .requestUnknownField)
    expect(refused?.field, equals: "/colour")
    expect(refused?.message, equals: "unknown field; did you mean \"color\"?")
    let strange = failure { () throws(Failure) in try fields(#"{"a/b":1}"#, at: "/inner") }
    expect(strange?.field, equals: "/inner/a~1b")
    expect(strange?.message, equals: "unknown field")
  }

  @Test("A value that is not on the list is refused, with the list and the nearest value")
  func choices() {
    let refused = failure { () throws(Failure) in
      try fields(#"{"color":"gren"}"#).choice("color", Color.self)
    }
    expect(refused?.code, equals: .requestInvalidValue)
    expect(refused?.field, equals: "/color")
    expect(refused?.message, equals: "one of red, green is expected; did you mean \"green\"?")
  }

  @Test("The request and a member object must be objects; the error codes differ")
  func objects() {
    expect(failure { () throws(Failure) in try fields("[]") }?.code, equals: .requestNotAnObject)
    let inner = failure { () throws(Failure) in try fields("[]", at: "/inner") }
    expect(inner?.code, equals: .requestWrongType)
    expect(inner?.field, equals: "/inner")
  }

  @Test("The pointer of a nested member starts at the root")
  func paths() {
    let refused = failure { () throws(Failure) in
      try fields(#"{"inner":{"text":5}}"#).fields("inner", known: ["text"]).string("text")
    }
    expect(refused?.field, equals: "/inner/text")
  }
}
