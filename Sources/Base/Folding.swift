import CPlatform

/// Folds names for search and for sorting, without regard to case, diacritics and punctuation.
///
/// All forms consist of the letters (and digits) of a text in UTF-8, in lower case; each word begins with
/// `wordStart`. A character counts as the letters and marks that it consists of, so all spellings of a
/// letter give the same: composed or apart, with or without joiners and apostrophes. Whatever else is no
/// letter ends the word. The tables are made from Unicode's data (mk/letters.py).
public enum Folding {
  /// The byte before every word.
  public static var wordStart: UInt8 { UInt8(ascii: " ") }
  /// The byte before every mark of the exact form.
  public static var markStart: UInt8 { 1 }

  /// Appends the form for search: letters without marks, strokes and hooks (å→a, ø→o, æ→ae, é→e, й→и,
  /// が→か). The old spelling "aa" folds as "å" does, to one "a". Every part of a word folds to a part of
  /// the folded word, so that a search can match inside words.
  public static func append(_ text: String, to result: inout [UInt8]) {
    forEachPart(of: text, &result) { letter, isMark, result in
      guard !isMark else { return }
      let start = result.count
      appendBase(of: letter, to: &result)
      // A byte stands before every letter, at least `wordStart`.
      if result[start] == UInt8(ascii: "a"), result[start - 1] == UInt8(ascii: "a") {
        result.remove(at: start)
      }
    }
  }

  /// Appends the exact form: the letters of the form for search as they are written, followed by their
  /// marks. A part of it with a mark behind it is another letter.
  public static func appendExact(_ text: String, to result: inout [UInt8]) {
    forEachPart(of: text, &result) { letter, isMark, result in
      if isMark { result.append(markStart) }
      appendUTF8(letter, to: &result)
    }
  }

  /// Appends the form for sorting in Norwegian order. It differs from the form for search in two
  /// ways: æ, ø and å (and ä and ö) become the three bytes after "z", and "aa" stays "aa".
  public static func appendSortKey(of text: String, to result: inout [UInt8]) {
    forEachPart(of: text, &result) { letter, isMark, result in
      let last = result.count - 1
      switch (letter, result.last) {
      case (0xE6, _): result.append(0x7B)
      case (0xF8, _): result.append(0x7C)
      case (0x308, UInt8(ascii: "a")): result[last] = 0x7B
      case (0x308, UInt8(ascii: "o")): result[last] = 0x7C
      case (0x30A, UInt8(ascii: "a")): result[last] = 0x7D
      default: if !isMark { appendBase(of: letter, to: &result) }
      }
    }
  }

  // MARK: Characters

  /// Calls `append` for every letter of a text and every mark upon one; `wordStart` is there already.
  private static func forEachPart(
    of text: String, _ result: inout [UInt8],
    _ append: (_ letter: UInt32, _ isMark: Bool, _ result: inout [UInt8]) -> Void
  ) {
    var isInWord = false
    var parts = [UInt32](repeating: 0, count: Int(PLATFORM_LETTER_PARTS))
    for scalar in text.unicodeScalars {
      let count = Int(platform_letter_parts(scalar.value, &parts))
      for part in parts[..<count] {
        switch platform_letter_kind(part) {
        case CInt(PLATFORM_GAP): isInWord = false
        case CInt(PLATFORM_MARK): if isInWord { append(part, true, &result) }
        case CInt(PLATFORM_LETTER):
          if !isInWord { result.append(wordStart) }
          isInWord = true
          append(part, false, &result)
        default: continue
        }
      }
    }
  }

  private static func appendBase(of letter: UInt32, to result: inout [UInt8]) {
    switch letter {
    case 0xE6: appendPair("a", "e", to: &result)
    case 0x153: appendPair("o", "e", to: &result)
    case 0xFE: appendPair("t", "h", to: &result)
    default: appendUTF8(platform_letter_base(letter), to: &result)
    }
  }

  private static func appendPair(
    _ first: Unicode.Scalar, _ second: Unicode.Scalar, to result: inout [UInt8]
  ) {
    result.append(UInt8(ascii: first))
    result.append(UInt8(ascii: second))
  }

  private static func appendUTF8(_ letter: UInt32, to result: inout [UInt8]) {
    guard letter >= 0x80 else { return result.append(UInt8(truncatingIfNeeded: letter)) }
    guard let scalar = Unicode.Scalar(letter) else { return }
    for byte in UTF8.encode(scalar) ?? .init() { result.append(byte) }
  }
}
