import Base

/// The languages of the messages. The raw values are those of `locale` (BCP 47).
public enum Language: String, CaseIterable, Sendable {
  /// Norwegian, bokmål.
  case nb
  /// Norwegian, nynorsk.
  case nn
  /// English.
  case en
}

/// The texts of the messages to users: short, calm, without technical terms (LAB-1).
///
/// Every language has its own file with a switch over all of `MessageCode`, so that a code without
/// a text does not compile.
public enum Messages {
  /// The text of `code`. A text about an organisation (ORG-2) names `organisation`, or says "the
  /// organisation" when the name is nil.
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
