import Policy
import Testing

/// LAB-1: a stable code and a text in every language.
@Suite struct MessagesTests {
  @Test("LAB-1: every code has a text in every language", arguments: Language.allCases)
  func everyText(language: Language) {
    for word in MessageCode.allCases {
      let text = Messages.text(word, language)
      #expect(text.count > 5, "\(word)")
      #expect(text.first?.isUppercase == true, "\(word): \(text)")
      #expect(text.hasSuffix(".") || text.hasSuffix(" …"), "\(word): \(text)")
      #expect(!text.contains("  ") && !text.contains("\n"), "\(word): \(text)")
      #expect(!text.contains("!") && !text.contains("{"), "\(word): \(text)")
      #expect(text.count <= 140, "\(word): \(text)")
    }
  }

  @Test("LAB-1: no two codes say the same", arguments: Language.allCases)
  func distinct(language: Language) {
    var seen: [String: MessageCode] = [:]
    for word in MessageCode.allCases {
      let text = Messages.text(word, language)
      #expect(seen[text] == nil, "\(word) and \(seen[text].map { "\($0)" } ?? ""): \(text)")
      seen[text] = word
    }
  }

  @Test("LAB-1: the languages differ")
  func languagesDiffer() {
    var same = 0
    for word in MessageCode.allCases {
      let english = Messages.text(word, .en)
      #expect(english != Messages.text(word, .nb))
      #expect(english != Messages.text(word, .nn))
      if Messages.text(word, .nb) == Messages.text(word, .nn) { same += 1 }
    }
    #expect(same * 10 <= MessageCode.allCases.count)
  }

  @Test("LAB-1: no words of our trade", arguments: Language.allCases)
  func noJargon(language: Language) {
    let trade = [
      "token", "server", "tenant", "sync", "synk", "cache", "database", "queue", "kø", "http",
      "api", "error", "feil", "payload", "biometr", "null", "schema", "skjema", "autentiser",
      "authenticat", "invalid", "ugyldig", "400", "401", "403", "500", "timeout", "json",
      "holdfast",
    ]
    for word in MessageCode.allCases {
      let text = Messages.text(word, language).lowercased()
      for term in trade {
        let isThere = text.split { !$0.isLetter && !$0.isNumber }.contains { $0.hasPrefix(term) }
        #expect(!isThere, "\(word): \(text)")
      }
    }
  }

  @Test("Each Norwegian keeps to its own words")
  func norwegian() {
    let onlyBokmal: Set = [
      "ikke", "jeg", "hva", "hvilken", "enheten", "noe", "noen", "fra", "ble", "ennå", "senere",
      "fortsette", "innloggingen", "klokken", "nå", "være", "hvor", "mer", "selv",
    ]
    let onlyNynorsk: Set = [
      "ikkje", "eg", "kva", "eininga", "noko", "nokon", "frå", "vart", "enno", "seinare", "halde",
      "innlogginga", "klokka", "vere", "meir", "sjølv", "ei", "ein", "eit",
    ]
    for word in MessageCode.allCases {
      let bokmal = Set(words(Messages.text(word, .nb)))
      let nynorsk = Set(words(Messages.text(word, .nn)))
      #expect(bokmal.isDisjoint(with: onlyNynorsk), "\(word): \(bokmal)")
      #expect(nynorsk.isDisjoint(with: onlyBokmal), "\(word): \(nynorsk)")
    }
  }

  @Test("ORG-2: the text names the organisation, or does without")
  func organisation() {
    for word in MessageCode.allCases {
      for language in Language.allCases {
        let named = Messages.text(word, language, organisation: "Likepersonene {x} ÆØÅ")
        #expect(named.contains("Likepersonene {x} ÆØÅ") == word.namesOrganisation, "\(word)")
      }
    }
    #expect(
      Messages.text(.membershipRevoked, .nb)
        == "Tilgangen din til organisasjonen er avsluttet. Du kan velge en annen organisasjon.")
  }

  @Test("Every reason and banner that says something says it under its own code")
  func codes() {
    for reason in Reason.allCases {
      guard let word = reason.word else { continue }
      #expect(word.rawValue == reason.rawValue)
    }
    for banner in Banner.allCases { #expect(banner.word.rawValue == banner.rawValue) }
    for fault in ItemFault.allCases { #expect(fault.word.rawValue == fault.rawValue) }
    let silent = Reason.allCases.filter { $0.word == nil }
    #expect(silent == [.active, .unlocked, .chosen, .switched])
  }

  @Test("The codes are stable words")
  func stableCodes() {
    for word in MessageCode.allCases {
      #expect(word.rawValue.allSatisfy { $0.isASCII && ($0.isLowercase || $0 == "_") })
    }
    #expect(Set(MessageCode.allCases.map(\.rawValue)).count == MessageCode.allCases.count)
    for word in MessageCode.allCases { #expect(MessageCode(rawValue: word.rawValue) == word) }
    for reason in Reason.allCases { #expect(Reason(rawValue: reason.rawValue) == reason) }
    #expect(MessageCode(rawValue: "") == nil && Reason(rawValue: "Active") == nil)
  }

  private func words(_ text: String) -> [String] {
    text.lowercased().split { !$0.isLetter }.map(String.init)
  }
}
