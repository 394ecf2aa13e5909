import TestSupport
import Testing

@testable import Base

@Suite struct SuggestionTests {
  private let words = ["callback_url", "id", "id_token", "nonce", "email", "password"]

  @Test(
    "The nearest name within a third of its length",
    arguments: [
      ("calback_url", "callback_url"), ("callbackUrl", "callback_url"), ("idtoken", "id_token"),
      ("ID", nil), ("ix", "id"), ("nonse", "nonce"), ("e-mail", "email"), ("pasword", "password"),
      ("completely_other", nil), ("", nil), ("password", "password"), ("pass", nil),
    ] as [(String, String?)])
  func nearest(text: String, expected: String?) {
    expect(Suggestion.nearest(to: text, among: words), equals: expected)
  }

  @Test("Of equally near names, the first")
  func ties() {
    expect(Suggestion.nearest(to: "cat", among: ["bat", "hat"]), equals: "bat")
  }

  @Test("A long text counts with its first 64 bytes")
  func longTexts() {
    let name = (0..<60).map { String($0 % 10) }.joined() as String
    let more = String(repeating: "x", count: 40)
    expect(Suggestion.nearest(to: name + more, among: [name]), equals: name)
    expect(Suggestion.nearest(to: more + name, among: [name]), equals: nil)
  }

  @Test("No names, empty names and very long texts are handled")
  func edges() {
    expect(Suggestion.nearest(to: "a", among: []), equals: nil)
    expect(Suggestion.nearest(to: "abcd", among: [""]), equals: nil)
    expect(
      Suggestion.nearest(to: String(repeating: "x", count: 1_000_000), among: words), equals: nil)
  }
}
