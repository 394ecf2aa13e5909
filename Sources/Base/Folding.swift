/// Text as people search it: without case and diacritics.
public enum Folding {
  /// Folded UTF-8: lower case, Latin letters without their marks (å→a, ø→o, æ→ae, é→e, ß→ss).
  public static func fold(_ text: String) -> [UInt8] {
    var result: [UInt8] = []
    result.reserveCapacity(text.utf8.count)
    for scalar in text.unicodeScalars {
      let value = scalar.value
      if value < 0x80 {
        let byte = UInt8(value)
        result.append(byte >= 0x41 && byte <= 0x5A ? byte + 32 : byte)
      } else if value >= 0x300, value <= 0x36F {
        continue  // a combining mark
      } else if let letters = latin(value) {
        result.append(contentsOf: letters.utf8)
      } else {
        let lower = Unicode.Scalar(otherAlphabet(value)) ?? scalar
        result.append(contentsOf: String(lower).utf8)
      }
    }
    return result
  }

  /// Whether `part` stands anywhere in `text`; both folded.
  public static func contains(_ text: [UInt8], _ part: [UInt8]) -> Bool {
    guard let first = part.first else { return true }
    guard text.count >= part.count else { return false }
    var at = 0
    while at <= text.count - part.count {
      if text[at] == first, text[at..<at + part.count].elementsEqual(part) { return true }
      at += 1
    }
    return false
  }

  /// Greek and Cyrillic capitals in lower case; the standard library's tables of every alphabet would
  /// weigh more than all of this module.
  private static func otherAlphabet(_ value: UInt32) -> UInt32 {
    switch value {
    case 0x391...0x3A9, 0x410...0x42F: return value + 0x20
    case 0x400...0x40F: return value + 0x50
    default: return value
    }
  }

  /// Latin-1 Supplement and Latin Extended-A.
  private static func latin(_ value: UInt32) -> String? {
    switch value {
    case 0xC0...0xC5, 0xE0...0xE5, 0x100...0x105: return "a"
    case 0xC6, 0xE6: return "ae"
    case 0xC7, 0xE7, 0x106...0x10D: return "c"
    case 0xD0, 0xF0, 0x10E...0x111: return "d"
    case 0xC8...0xCB, 0xE8...0xEB, 0x112...0x11B: return "e"
    case 0x11C...0x123: return "g"
    case 0x124...0x127: return "h"
    case 0xCC...0xCF, 0xEC...0xEF, 0x128...0x131: return "i"
    case 0x134...0x135: return "j"
    case 0x136...0x138: return "k"
    case 0x139...0x142: return "l"
    case 0xD1, 0xF1, 0x143...0x14B: return "n"
    case 0xD2...0xD6, 0xD8, 0xF2...0xF6, 0xF8, 0x14C...0x151: return "o"
    case 0x152, 0x153: return "oe"
    case 0x154...0x159: return "r"
    case 0x15A...0x161, 0x17F: return "s"
    case 0xDF, 0x1E9E: return "ss"
    case 0x162...0x167: return "t"
    case 0xDE, 0xFE: return "th"
    case 0xD9...0xDC, 0xF9...0xFC, 0x168...0x173: return "u"
    case 0x174, 0x175: return "w"
    case 0xDD, 0xFD, 0xFF, 0x176...0x178: return "y"
    case 0x179...0x17E: return "z"
    default: return nil
    }
  }
}
