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
    #expect(fold("Åse Ødegård ÆRLIG") == " ase odegard aerlig")
    #expect(fold("José Müller Łukasz Đoković Šime") == " jose muller lukasz dokovic sime")
    #expect(fold("Nguyễn Ánne Ŧŋ Straße Þór") == " nguyen anne tn strasse thor")
    // Composed and decomposed forms fold to the same.
    #expect(fold("A\u{30A}se") == fold("Åse"))
    #expect(fold("ΑΘΗΝΑ МОСКВА ЁЖ") == " αθηνα москва ёж")
    #expect(fold("יוֹסֵף") == fold("יוסף"))
  }

  @Test(
    "Words end at any scalar that is not a letter; apostrophes and unseen scalars are left out")
  func words() {
    #expect(fold("  Anne-Lise,  O'Brien\t(Moe) ") == " anne lise obrien moe")
    #expect(fold("O\u{2019}Brien") == " obrien")
    #expect(fold("\u{202E}Ka\u{200D}ri\u{AD}\u{A0}Li") == " kari li")
    #expect(fold("") == "" && fold("-- %_!") == "" && fold("\u{301}\u{200F}") == "")
    #expect(fold("3 × 4") == " 3 4")
  }

  @Test("The old spelling of å")
  func doubleA() {
    #expect(fold("Aase Haaland Aaa") == " ase haland a")
    #expect(fold("Anna Aas") == " anna as", "not across words")
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
          #expect(whole.contains(folded), "\(part) in \(word)")
        }
      }
    }
  }

  @Test("Norwegian order: æ, ø, å after z")
  func order() {
    let names = [
      "Aasen", "Berg", "Lie, Anne", "Lie Bo", "Zara", "Ärlig", "Æsa", "Øyvind", "Åse", "A\u{30A}sz",
    ]
    for (one, next) in zip(names, names.dropFirst()) {
      #expect(sortKey(one).lexicographicallyPrecedes(sortKey(next)), "\(one) before \(next)")
    }
  }
}
