import Policy
import TestSupport
import Testing

/// LAB-1: a stable code and a text in every language.
@Suite struct MessagesTests {
  @Test("LAB-1: every code has a text in every language", arguments: Language.allCases)
  func everyText(language: Language) {
    for code in MessageCode.allCases {
      let text = Messages.text(code, language)
      expect(text.count > 5, "\(code)")
      expect(text.first?.isUppercase, equals: true, "\(code): \(text)")
      expect(text.hasSuffix(".") || text.hasSuffix(" …"), "\(code): \(text)")
      expect(!text.contains("  ") && !text.contains("\n"), "\(code): \(text)")
      expect(!text.contains("!") && !text.contains("{"), "\(code): \(text)")
      expect(text.count <= 140, "\(code): \(text)")
    }
  }

  @Test("LAB-1: no two codes have the same text", arguments: Language.allCases)
  func distinct(language: Language) {
    var seen: [String: MessageCode] = [:]
    for code in MessageCode.allCases {
      let text = Messages.text(code, language)
      expect(seen[text], equals: nil, "\(code) and \(seen[text].map { "\($0)" } ?? ""): \(text)")
      seen[text] = code
    }
  }

  @Test("LAB-1: the languages differ")
  func languagesDiffer() {
    var same = 0
    for code in MessageCode.allCases {
      let english = Messages.text(code, .en)
      expect(english != Messages.text(code, .nb))
      expect(english != Messages.text(code, .nn))
      if Messages.text(code, .nb) == Messages.text(code, .nn) { same += 1 }
    }
    expect(same * 10 <= MessageCode.allCases.count)
  }

  @Test("LAB-1: no technical terms", arguments: Language.allCases)
  func noJargon(language: Language) {
    let terms = [
      "token", "server", "tenant", "sync", "synk", "cache", "database", "queue", "kø", "http",
      "api", "error", "feil", "payload", "biometr", "null", "schema", "skjema", "autentiser",
      "authenticat", "invalid", "ugyldig", "400", "401", "403", "500", "timeout", "json",
      "holdfast",
    ]
    for code in MessageCode.allCases {
      let text = Messages.text(code, language).lowercased()
      for term in terms {
        let isThere = text.split { !$0.isLetter && !$0.isNumber }.contains { $0.hasPrefix(term) }
        expect(!isThere, "\(code): \(text)")
      }
    }
  }

  @Test("Bokmål and nynorsk do not mix")
  func norwegian() {
    let onlyBokmal: Set = [
      "ikke", "jeg", "hva", "hvilken", "enheten", "noe", "noen", "fra", "ble", "ennå", "senere",
      "fortsette", "innloggingen", "klokken", "nå", "være", "hvor", "mer", "selv",
    ]
    let onlyNynorsk: Set = [
      "ikkje", "eg", "kva", "eininga", "noko", "nokon", "frå", "vart", "enno", "seinare", "halde",
      "innlogginga", "klokka", "vere", "meir", "sjølv", "ei", "ein", "eit",
    ]
    for code in MessageCode.allCases {
      let bokmal = Set(words(Messages.text(code, .nb)))
      let nynorsk = Set(words(Messages.text(code, .nn)))
      expect(bokmal.isDisjoint(with: onlyNynorsk), "\(code): \(bokmal)")
      expect(nynorsk.isDisjoint(with: onlyBokmal), "\(code): \(nynorsk)")
    }
  }

  @Test("ORG-2: the text names the organisation, or works without its name")
  func organisation() {
    let naming: [MessageCode] = [.membershipRevoked, .orgDisabled, .roleUnknown]
    for code in MessageCode.allCases {
      for language in Language.allCases {
        let named = Messages.text(code, language, organisation: "Likepersonene {x} ÆØÅ")
        expect(named.contains("Likepersonene {x} ÆØÅ"), equals: naming.contains(code), "\(code)")
      }
    }
    expect(
      Messages.text(.membershipRevoked, .nb),
      equals: "Tilgangen din til organisasjonen er avsluttet. Du kan velge en annen organisasjon.")
  }

  @Test("Every banner has the message of its own code")
  func codes() {
    for banner in Banner.allCases { expect(MessageCode(rawValue: banner.rawValue) != nil) }
  }

  @Test("The codes are in lower case, unique, and found by their raw values")
  func stableCodes() {
    for code in MessageCode.allCases {
      expect(code.rawValue.allSatisfy { $0.isASCII && ($0.isLowercase || $0 == "_") })
    }
    expect(Set(MessageCode.allCases.map(\.rawValue)).count, equals: MessageCode.allCases.count)
    for code in MessageCode.allCases { expect(MessageCode(rawValue: code.rawValue), equals: code) }
    expect(MessageCode(rawValue: "") == nil && MessageCode(rawValue: "Offline") == nil)
  }

  private func words(_ text: String) -> [String] {
    text.lowercased().split { !$0.isLetter }.map(String.init)
  }
}
