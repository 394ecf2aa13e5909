import Base

/// The languages that Holdfast speaks. The raw values are those of `locale` (BCP 47).
public enum Language: String, CaseIterable, Sendable {
  /// Norwegian, bokmål.
  case nb
  /// Norwegian, nynorsk.
  case nn
  /// English.
  case en
}

/// What is said to people: short, calm, without the words of our trade (LAB-1).
///
/// Every language has a file of its own, a switch over all of `MessageCode`: a code without a text in one
/// of them does not compile.
public enum Messages {
  /// The text of `code`. Where it speaks of an organisation (ORG-2: which, and why), it names
  /// `organisation`, or says "the organisation" when there is no name at hand.
  public static func text(
    _ code: MessageCode, _ language: Language, organisation: String? = nil
  ) -> String {
    let text =
      switch language {
      case .nb: bokmal(code)
      case .nn: nynorsk(code)
      case .en: english(code)
      }
    return named(text.string, organisation ?? unnamed(language))
  }

  private static func unnamed(_ language: Language) -> String {
    switch language {
    case .nb, .nn: "organisasjonen"
    case .en: "the organisation"
    }
  }

  /// `text` with `name` in the place of `{organisation}`.
  private static func named(_ text: String, _ name: String) -> String {
    let bytes = text.utf8
    guard let start = bytes.firstIndex(of: UInt8(ascii: "{")),
      let end = bytes.firstIndex(of: UInt8(ascii: "}")), start < end
    else { return text }
    var result = String(text[..<start])
    result += name
    result += text[bytes.index(after: end)...]
    return result
  }
}
