/// Folds names for search and for sorting, without regard to case, diacritics and punctuation.
///
/// Both forms go through the text scalar by scalar. A scalar is one of three kinds: a letter (or
/// digit) is folded to base letters in UTF-8; an unseen scalar (combining mark, joiner, direction
/// sign, apostrophe) is left out; any other scalar ends the word. Each word starts with
/// `wordStart`.
///
/// Latin letters are looked up in two tables of base letters. Greek and Cyrillic capitals are moved
/// to lower case by an offset. Other scripts stay as they are.
public enum Folding {
  /// The byte before every word of a folded text.
  public static var wordStart: UInt8 { UInt8(ascii: " ") }

  /// Appends the form for search: lower case, Latin letters without their marks (å→a, ø→o, æ→ae,
  /// é→e, ß→ss). The old spelling "aa" folds as "å" does, to one "a". Every part of a word folds to
  /// a part of the folded word, so that a search can match inside words.
  public static func append(_ text: String, to result: inout [UInt8]) {
    var isInWord = false
    for scalar in text.unicodeScalars {
      switch kind(of: scalar.value) {
      case .unseen: continue
      case .gap: isInWord = false
      case .letter:
        if !isInWord { result.append(wordStart) }
        let start = result.count
        appendLetter(scalar, to: &result)
        if isInWord, result[start] == UInt8(ascii: "a"), result[start - 1] == UInt8(ascii: "a") {
          result.remove(at: start)
        }
        isInWord = true
      }
    }
  }

  /// Appends the form for sorting in Norwegian order. It differs from the form for search in two
  /// ways: æ, ø and å (and ä and ö) become the three bytes after "z", and "aa" stays "aa".
  public static func appendSortKey(of text: String, to result: inout [UInt8]) {
    var isInWord = false
    for scalar in text.unicodeScalars {
      switch kind(of: scalar.value) {
      case .unseen:
        // A combining ring after "a" makes it "å".
        if scalar.value == 0x30A, isInWord, result.last == UInt8(ascii: "a") {
          result[result.count - 1] = 0x7D
        }
      case .gap: isInWord = false
      case .letter:
        if !isInWord { result.append(wordStart) }
        isInWord = true
        switch scalar.value {
        case 0xC6, 0xE6, 0xC4, 0xE4: result.append(0x7B)
        case 0xD8, 0xF8, 0xD6, 0xF6: result.append(0x7C)
        case 0xC5, 0xE5: result.append(0x7D)
        default: appendLetter(scalar, to: &result)
        }
      }
    }
  }

  // MARK: Characters

  private enum Kind { case letter, gap, unseen }

  private static func kind(of value: UInt32) -> Kind {
    switch value {
    case 0x30...0x39, 0x41...0x5A, 0x61...0x7A: return .letter
    case 0x27, 0x60: return .unseen  // ' `
    case 0x00...0x7F: return .gap
    case 0xAA, 0xB5, 0xBA: return .letter
    case 0xAD, 0xB4: return .unseen  // soft hyphen, acute accent
    case 0x80...0xBF, 0xD7, 0xF7: return .gap
    case 0x2B9...0x2BF: return .unseen  // modifier letters that look like apostrophes
    // Combining marks of Latin, Cyrillic, Hebrew and Arabic.
    case 0x300...0x36F, 0x483...0x489, 0x591...0x5BD, 0x5BF, 0x5C1...0x5C2, 0x5C4...0x5C5,
      0x610...0x61A, 0x640, 0x64B...0x65F, 0x670, 0x6D6...0x6ED, 0x1AB0...0x1AFF, 0x1DC0...0x1DFF,
      0x20D0...0x20FF, 0xFE00...0xFE0F, 0xFE20...0xFE2F:
      return .unseen
    // Joiners and direction signs; quotation marks that are used as apostrophes.
    case 0x61C, 0x200B...0x200F, 0x2018...0x201B, 0x202A...0x202E, 0x2060...0x206F, 0xFEFF:
      return .unseen
    case 0x2000...0x206F, 0x3000...0x3003, 0x60C, 0x61B, 0x61F: return .gap
    default: return .letter
    }
  }

  private static func appendLetter(_ scalar: Unicode.Scalar, to result: inout [UInt8]) {
    let value = scalar.value
    var base = UInt8(ascii: "?")
    switch value {
    case 0x00...0x7F:
      let byte = UInt8(truncatingIfNeeded: value)
      result.append(byte >= 0x41 && byte <= 0x5A ? byte + 32 : byte)
      return
    case 0xC0...0x24F: base = latin.utf8Start[Int(value - 0xC0)]
    case 0x1E00...0x1EFF: base = latinAdditional.utf8Start[Int(value - 0x1E00)]
    default: break
    }
    switch base {
    case UInt8(ascii: "1"): appendPair("a", "e", to: &result)
    case UInt8(ascii: "2"): appendPair("s", "s", to: &result)
    case UInt8(ascii: "3"): appendPair("o", "e", to: &result)
    case UInt8(ascii: "4"): appendPair("t", "h", to: &result)
    case UInt8(ascii: "?"):
      for byte in UTF8.encode(Unicode.Scalar(otherAlphabet(value)) ?? scalar) ?? .init() {
        result.append(byte)
      }
    default: result.append(base)
    }
  }

  private static func appendPair(
    _ first: Unicode.Scalar, _ second: Unicode.Scalar, to result: inout [UInt8]
  ) {
    result.append(UInt8(ascii: first))
    result.append(UInt8(ascii: second))
  }

  /// Lower case for Greek and Cyrillic capitals. The standard library's tables for all scripts
  /// would be larger than this whole module.
  private static func otherAlphabet(_ value: UInt32) -> UInt32 {
    switch value {
    case 0x391...0x3A9, 0x410...0x42F: return value + 0x20
    case 0x400...0x40F: return value + 0x50
    default: return value
    }
  }

  // The tables hold one base letter per scalar: from the decompositions of the Unicode Character
  // Database, and for letters with a stroke, hook or bar, which have no decomposition.
  // 1: ae, 2: ss, 3: oe, 4: th, ?: the scalar itself.

  /// U+00C0 to U+024F: Latin-1 Supplement, Latin Extended-A and -B.
  private static var latin: StaticString {
    """
    aaaaaa1ceeeeiiiidnooooo?ouuuuy42aaaaaa1ceeeeiiiidnooooo?ouuuuy4yaaaaaaccccccccdd\
    ddeeeeeeeeeegggggggghhhhiiiiiiiiiiiijjkkkllllllllllnnnnnnnnnoooooo33rrrrrrssssss\
    ssttttttuuuuuuuuuuuuwwyyyzzzzzzsbbbb??occdddd?eeeffgg?iikkl?mnnoooooppr??s?ttttu\
    uuvyyzzz????????????dddlllnnnaaiioouuuuuuuuuueaaaa11ggggkkoooozzjdddgg??nnaa11oo\
    aaaaeeeeiiiioooorrrruuuusstt??hhnd??zzaaeeooooooooyylntj??accltsz??buveejjqqrryy
    """
  }

  /// U+1E00 to U+1EFF: Latin Extended Additional.
  private static var latinAdditional: StaticString {
    """
    aabbbbbbccddddddddddeeeeeeeeeeffgghhhhhhhhhhiiiikkkkkkllllllllmmmmmmnnnnnnnnoooo\
    oooopppprrrrrrrrssssssssssttttttttuuuuuuuuuuvvvvwwwwwwwwwwxxxxyyzzzzzzhtwyas??2d\
    aaaaaaaaaaaaaaaaaaaaaaaaeeeeeeeeeeeeeeeeiiiioooooooooooooooooooooooouuuuuuuuuuuu\
    uuyyyyyyyyllvvyy
    """
  }
}
