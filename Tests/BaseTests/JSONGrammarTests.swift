import TestSupport
import Testing

@testable import Base

@Suite struct JSONGrammarTests {
  private func isSure(_ text: [UInt8]) -> Bool {
    text.withUnsafeBytes { JSONGrammar.surelyAccepts($0) }
  }

  private func isRead(_ text: [UInt8]) -> Bool {
    text.withUnsafeBytes { (try? JSON.parse($0, .tolerant, scalars: true)) != nil }
  }

  @Test(
    "Usual values are certain",
    arguments: [
      #"{"id":"0f000000-0000-4000-8000-000000000001","name":"Kåre \"K\" Moen","x":null}"#, "{}",
      "[]", " [ { } , [ ] ] ", #""""#, #""\\\/\b\f\n\r\t""#, "0", "-0", "10", "-1.50", "true",
      "false",
      "null", #"{"a":[1,{"b":[[],{}]}],"c":2}"#, "123456789012345678", "[1,[2,[3,[4]]],5]",
    ])
  func certain(text: String) {
    expect(isSure(Array(text.utf8)))
    expect(isRead(Array(text.utf8)))
  }

  @Test(
    "Other texts are not",
    arguments: [
      "", " ", "{", "[", "]", "}", "[1,]", "[,1]", #"{"a":1,}"#, #"{"a"}"#, #"{a:1}"#, "[1 2]",
      "1 2",
      "truex", "nul", "01", "-", "-a", "1.", ".5", "+1", #"{"a":1]"#, "[1}", "\"", "\"\n\"",
      "\"\\x\"",
      "\"\\", #"{"a":,}"#, #"{1:2}"#, "[[]", "{}{}", "'a'", "1a", "--1", "1-2", #"{"a" "b"}"#,
    ])
  func uncertain(text: String) {
    expect(!isSure(Array(text.utf8)))
    expect(!isRead(Array(text.utf8)))
  }

  @Test(
    "jansson is asked about rare parts",
    arguments: [
      #""\u00e5""#, "1e3", "1234567890123456789",
      String(repeating: "[", count: 64)
        + String(repeating: "]", count: 64),
    ])
  func rare(text: String) {
    expect(!isSure(Array(text.utf8)))
    expect(isRead(Array(text.utf8)))
  }

  @Test("jansson reads every text that is certain")
  func property() {
    var random = RandomJSON(seed: 27)
    var certain = 0
    for number in 0..<sized(1_500, full: 6_000) {
      var text: [UInt8] = []
      random.write(&text, depth: number % 2, size: 12)
      let whole = text
      // Half of them are damaged in a place or two.
      for _ in 0..<(number % 4 < 2 ? 0 : random.below(2) + 1) {
        let place = random.below(text.count)
        switch random.below(3) {
        case 0: text.remove(at: place)
        case 1: text.insert(Array(#"{}[]",:\09-.eltfnu "#.utf8)[random.below(19)], at: place)
        default: text[place] = Array(#"{}[]",:\09-.eltfnu "#.utf8)[random.below(19)]
        }
        if text.isEmpty { text = whole }
      }
      // The texts of responses are UTF-8.
      guard isSure(text), String(validating: text, as: UTF8.self) != nil else { continue }
      certain += 1
      expect(isRead(text), "\(String(decoding: text, as: UTF8.self))")
    }
    expect(certain > sized(200, full: 1_000))
  }
}
