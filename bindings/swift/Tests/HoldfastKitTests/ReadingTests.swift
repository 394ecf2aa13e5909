import Foundation
import Testing

@testable import HoldfastKit

func reading<Value: Readable>(_ text: String) throws -> Value {
  var text = text
  return try text.withUTF8 { (bytes) throws in
    var reader = Reader(bytes)
    return try Value(reading: &reader)
  }
}

func written(_ value: some Encodable) throws -> String {
  String(decoding: try Writer.text(value).dropLast(), as: UTF8.self)
}

@Suite struct ReadingTests {
  @Test func textIsReadWithItsEscapes() throws {
    let text: String = try reading(#" "a\"\\\/\n\u00e5\ud83d\ude00 ø" "#)
    #expect(text == "a\"\\/\nå😀 ø")
    #expect(try reading(#""\ud83d!""#) as String == "\u{FFFD}!")
  }

  @Test func anInstantIsADateToTheMillisecond() {
    let date = Date(timeIntervalSince1970: 1_795_000_000.1234)
    #expect(Instant(date).milliseconds == 1_795_000_000_123)
    #expect(Instant(Instant(date).date) == Instant(date))
    #expect(Instant(Date(timeIntervalSince1970: -0.0015)).milliseconds == -2)
    #expect(Instant(Date(timeIntervalSince1970: .infinity)).milliseconds == .max)
    #expect(Instant(Date(timeIntervalSince1970: .nan)).milliseconds == .min)
  }

  @Test func numbersKeepWhatTheyAre() throws {
    let read: JSON = try reading("[1, -2, 1.0, 2.5e3, 9223372036854775807, 9223372036854775808]")
    #expect(read == [1, -2, 1.0, 2500.0, .int(.max), .number(9_223_372_036_854_775_808)])
    #expect(read[2] == .number(1))
  }

  @Test func unknownMembersAreLeftOut() throws {
    let fault: Fault = try reading(
      #"{"new":[{"a":"]"},1,null],"code":"a.b","message":"m","retryable":true,"detail":{"n":1}}"#)
    #expect(fault.code == "a.b")
    #expect(fault.field == nil)
    #expect(fault.detail == ["n": 1])
  }

  @Test func membersMayStandApart() throws {
    let fault: Fault = try reading(
      """
       { "code" : "a.b" ,
      "message":"m", "field" : null , "retryable":false,"detail":{ } }
      """)
    #expect(fault.code == "a.b")
    #expect(!fault.retryable)
    let columns: JSON = try reading(#"{ "a\u00e5\"" : 1, "ø\n":-0 , "":2}"#)
    #expect(columns == .object(["aå\"": .int(1), "ø\n": .int(0), "": .int(2)]))
  }

  @Test func fieldsMayStandInAnyOrder() throws {
    let text = #"{"detail":{"code":7},"field":null,"retryable":true,"message":"m","code":"a.b"}"#
    let fault: Fault = try reading(text)
    #expect(fault == Fault(code: "a.b", message: "m", retryable: true, detail: ["code": 7]))
    let contact: Contact = try reading(#"{"x":{"id":1},"name":"Kari","id":"i","y":[null]}"#)
    #expect(contact.columns == ["x": ["id": 1], "y": [nil]])
    #expect([contact.id, contact.name] == ["i", "Kari"])
  }

  @Test(arguments: ["code", "message", "retryable", "detail"])
  func aFieldThatIsMissingOrNullIsNamed(name: String) throws {
    let fields = ["code": #""a""#, "message": #""m""#, "retryable": "true", "detail": "{}"]
    func fault(_ fields: [String: String]) throws -> Fault {
      try reading("{" + fields.map { "\"\($0)\":\($1)" }.joined(separator: ",") + "}")
    }
    #expect(try fault(fields).message == "m")
    let missing = fields.filter { $0.key != name }
    let error = #expect(throws: Unreadable.self) { try fault(missing) }
    #expect(error?.what == "object with \(name)")
    #expect(throws: Unreadable.self) { try fault(missing.merging([name: "null"]) { $1 }) }
  }

  @Test(arguments: [
    ("0", 0), ("-7", -7), ("999999999999999999", 999_999_999_999_999_999),
    ("9223372036854775807", .max), ("-9223372036854775808", .min),
  ])
  func wholeNumbers(text: String, value: Int) throws {
    #expect(try reading(text) as Int == value)
  }

  @Test(arguments: ["", "-", "1.5", "1e3", "9223372036854775808", "1x", "true"])
  func noWholeNumbers(text: String) {
    #expect(throws: Unreadable.self) { let _: Int = try reading(text) }
  }

  @Test(arguments: ["truth", "tru", "1", "null", "\"true\""])
  func noBooleans(text: String) {
    #expect(throws: Unreadable.self) { let _: Bool = try reading(text) }
  }

  @Test(arguments: [
    "", "{", #"{"a\"#, #"{"code""#, #"{"code":}"#, "[1,", #""a"#, #""\u12"#, "[1 2]", "{,}", "nul",
  ])
  func textThatEndsEarlyIsAnError(text: String) {
    #expect(throws: (any Error).self) { let _: Fault = try reading(text) }
  }

  @Test func anUnknownEventIsKept() throws {
    let event: Event = try reading(#"{"seq":7,"type":"brand_new","x":[1]}"#)
    guard case .other(let other) = event else {
      Issue.record("\(event)")
      return
    }
    #expect(other.type == "brand_new")
    #expect(other.fields["x"] == [1])
    #expect(event.seq == 7)
  }
}

@Suite struct WritingTests {
  @Test func aRequestLeavesOutWhatIsNotSet() throws {
    let text = try written(QueueListRequest(state: .pending, limit: 2))
    #expect(text == #"{"state":"pending","limit":2}"#)
  }

  @Test func nullAndLeftOutDiffer() throws {
    let null = try written(Backend(url: "u", apiKey: "k", memberships: .null))
    #expect(null == #"{"url":"u","api_key":"k","memberships":null}"#)
    #expect(try written(Backend(url: "u", apiKey: "k")) == #"{"url":"u","api_key":"k"}"#)
  }

  @Test func textIsEscaped() throws {
    #expect(try written(["a\u{1}\"\\\n"]) == #"["a\u0001\"\\\u000a"]"#)
  }

  @Test func nestedValuesAreClosed() throws {
    let value: JSON = ["a": [1, ["b": nil], 2.5, true, "x"]]
    #expect(try written(value) == #"{"a":[1,{"b":null},2.5,true,"x"]}"#)
    #expect(try written([["a": [1]], [:]]) == #"[{"a":[1]},{}]"#)
  }

  @Test(arguments: [Double.nan, .infinity, -.infinity])
  func aNumberThatJSONHasNotIsRefusedWithItsPlace(number: Double) {
    let payload: [String: JSON] = ["a/b~c": ["x", .number(number)]]
    let request = QueueEditRequest(id: "i", payload: payload)
    let error = #expect(throws: Writer.NoNumber.self) { try Writer.text(request) }
    #expect(error?.field == "/payload/a~1b~0c/1")
  }
}
