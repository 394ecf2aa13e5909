import TestSupport
import Testing

@testable import Base

/// OFF-7: contacts are found by any part of the name, without regard to diacritics.
@Suite struct FoldingTests {
  private func fold(_ text: String) -> String {
    var bytes: [UInt8] = []
    Folding.append(text, to: &bytes)
    return String(decoding: bytes, as: UTF8.self)
  }

  private func sortKey(_ text: String) -> [UInt8] {
    var bytes: [UInt8] = []
    Folding.appendSortKey(of: text, to: &bytes)
    return bytes
  }

  @Test("Marks and case are ignored")
  func marks() {
    expect(fold("Åse Ødegård ÆRLIG"), equals: " ase odegard aerlig")
    expect(fold("José Müller Łukasz Đoković Šime"), equals: " jose muller lukasz dokovic sime")
    expect(fold("Nguyễn Ánne Ŧŋ Straße Þór"), equals: " nguyen anne tn strasse thor")
    // Composed and decomposed forms fold to the same.
    expect(fold("A\u{30A}se"), equals: fold("Åse"))
    expect(fold("ΑΘΉΝΑ Γιώργος МОСКВА ЁЖ"), equals: " αθηνα γιωργοσ москва еж")
    expect(fold("Ґалаґан Ə Ɗ ɗ ՊԵՏ և"), equals: " галаган ə d d պետ եւ")
    expect(fold("ǅ ﬃ Ĳ ŉ Ŀ"), equals: " dz ffi ij n l")
    expect(fold("が ガ"), equals: " か カ")
    expect(fold("한글"), equals: fold("\u{1112}\u{1161}\u{11AB}\u{1100}\u{1173}\u{11AF}"))
    expect(fold("하"), equals: " \u{1112}\u{1161}")
    expect(fold("آمنة"), equals: fold("ا\u{653}منة"))
    expect(fold("\u{10400}\u{1E943}"), equals: fold("\u{10428}\u{1E943}"))
    expect(fold("יוֹסֵף"), equals: fold("יוסף"))
  }

  @Test(
    "Words end at any scalar that is not a letter; apostrophes and unseen scalars are left out")
  func words() {
    expect(fold("  Anne-Lise,  O'Brien\t(Moe) "), equals: " anne lise obrien moe")
    expect(fold("O\u{2019}Brien"), equals: " obrien")
    expect(fold("\u{202E}Ka\u{200D}ri\u{AD}\u{A0}Li"), equals: " kari li")
    expect(fold("") == "" && fold("-- %_!") == "" && fold("\u{301}\u{200F}") == "")
    expect(fold("3 × 4"), equals: " 3 4")
  }

  /// The first and the last scalar of each range, and some between.
  @Test(
    "Unseen scalars do not end a word",
    arguments: [
      0x27, 0x60, 0xAD, 0xB4, 0x2B9, 0x2BF, 0x300, 0x36F, 0x483, 0x489, 0x591, 0x5BD, 0x5BF, 0x5C1,
      0x5C2, 0x5C4, 0x5C5, 0x610, 0x61A, 0x640, 0x64B, 0x65F, 0x670, 0x6D6, 0x6ED, 0x1AB0,
      0x1DC0, 0x1DFF, 0x20D0, 0x20F0, 0xFE00, 0xFE0F, 0xFE20, 0xFE2F, 0x61C, 0x200B, 0x200F, 0x2018,
      0x201B, 0x202A, 0x202E, 0x2060, 0x206F, 0xFEFF,
    ] as [UInt32])
  func unseen(value: UInt32) throws {
    let scalar = try #require(Unicode.Scalar(value))
    expect(fold("b\(scalar)c"), equals: " bc")
  }

  @Test(
    "Punctuation and spaces end a word",
    arguments: [
      0x00, 0x26, 0x28, 0x2F, 0x3A, 0x40, 0x5B, 0x5F, 0x7B, 0x7F, 0x80, 0xA0, 0xBF, 0xD7, 0xF7,
      0x5BE, 0x30FB, 0x2000, 0x200A, 0x2010, 0x2017, 0x201C, 0x2029, 0x202F, 0x205F, 0x3000, 0x3003,
      0x60C, 0x61B,
      0x61F,
    ] as [UInt32])
  func gaps(value: UInt32) throws {
    let scalar = try #require(Unicode.Scalar(value))
    expect(fold("b\(scalar)c"), equals: " b c")
  }

  @Test("The ends of the alphabets")
  func ends() {
    expect(fold("A Z a z 0 9"), equals: " a z a z 0 9")
    expect(fold("ΑΩ АЯ ЀЏ"), equals: " αω ая еџ")
    expect(fold("Œuvre Sœur"), equals: " oeuvre soeur")
  }

  @Test("The old spelling of å")
  func doubleA() {
    expect(fold("Aase Haaland Aaa"), equals: " ase haland a")
    expect(fold("Anna Aas"), equals: " anna as", "not across words")
  }

  @Test("Any part of a word folds to a part of the folded word")
  func parts() {
    for word in ["Haakon", "Åaå", "Cæcilie", "Straßen", "Œuvre", "Ægæa", "A\u{30A}aA\u{30A}"] {
      let scalars = Array(word.unicodeScalars)
      let whole = fold(word)
      for start in scalars.indices {
        for end in start..<scalars.count {
          var part = String.UnicodeScalarView()
          part.append(contentsOf: scalars[start...end])
          let folded = fold(String(part)).dropFirst()
          expect(whole.contains(folded), "\(part) in \(word)")
        }
      }
    }
  }

  @Test("The exact form keeps letters, with their marks behind them")
  func exact() {
    func exact(_ text: String) -> String {
      var bytes: [UInt8] = []
      Folding.appendExact(text, to: &bytes)
      return String(decoding: bytes, as: UTF8.self)
    }
    expect(exact("Aage O'Brien-Øe"), equals: " aage obrien øe")
    expect(exact("Å"), equals: " a\u{1}\u{30A}")
    expect(exact("ế"), equals: " e\u{1}\u{302}\u{1}\u{301}")
    for (one, other) in [
      ("Å", "a\u{30A}"), ("ΐ", "Ι\u{308}\u{301}"), ("が", "か\u{3099}"), ("ẞ", "ss"),
    ] {
      expect(exact(one), equals: exact(other))
    }
    expect(exact("\u{301}- ?"), equals: "")
  }

  @Test("A combining ring belongs to an a of the same word")
  func rings() {
    expect(sortKey("A\u{30A}"), equals: sortKey("Å"))
    expect(sortKey("A \u{30A}"), equals: sortKey("A"))
    expect(sortKey("E\u{30A}"), equals: sortKey("E"))
    expect(sortKey("O\u{308}a\u{308}"), equals: sortKey("Öä"))
  }

  @Test("Norwegian order: æ, ø, å after z")
  func order() {
    let names = [
      "Aasen", "Berg", "Lie, Anne", "Lie Bo", "Zara", "Ärlig", "Æsa", "Øyvind", "Åse", "A\u{30A}sz",
    ]
    for (one, next) in zip(names, names.dropFirst()) {
      expect(sortKey(one).lexicographicallyPrecedes(sortKey(next)), "\(one) before \(next)")
    }
  }
}
