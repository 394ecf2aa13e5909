import Base

extension Messages {
  /// Norwegian, nynorsk. `{organisation}` stands for the name, see `Messages.text`.
  static func nynorsk(_ code: MessageCode) -> StaticCString {
    switch code {
    // Reasons: what a decision says.
    case .sessionMissing: "Logg inn for å kome i gang."
    case .sessionCorrupt:
      "Den lagra innlogginga kunne ikkje lesast. Logg inn på nytt; det du har registrert, er trygt."
    case .tokenExpired: "Det er ei stund sidan sist. Stadfest at det er deg."
    case .sessionWindow: "Du har vore logga inn lenge. Stadfest at det er deg."
    case .backgroundTimeout: "Appen har vore i bakgrunnen ei stund. Stadfest at det er deg."
    case .clockMovedBack: "Klokka på eininga er stilt tilbake. Stadfest at det er deg."
    case .sessionEnded:
      "Innlogginga di er avslutta. Logg inn på nytt; det du har registrert, er teke vare på."
    case .offlineLimit:
      "Vi har ikkje fått kontakt på lenge. Logg inn på nytt; det du har registrert, er teke vare på."
    case .signedOut: "Du er logga ut. Logg inn for å halde fram."
    case .keyLost:
      "Den lagra innlogginga kan ikkje lenger låsast opp på denne eininga. Logg inn på nytt."
    case .keystoreLocked: "Lås opp eininga eller nøkkelringen, så held vi fram."
    case .keystoreFailed:
      "Vi får ikkje opna det som er lagra på eininga akkurat no. Prøv igjen om litt."
    case .biometricFailed: "Vi kjende deg ikkje igjen. Logg inn for å halde fram."
    case .biometricCancelled: "Opplåsinga vart avbroten. Logg inn for å halde fram."
    case .biometricLockout: "Det vart for mange forsøk. Vent litt, eller logg inn."
    case .biometricLockoutPermanent:
      "Det vart for mange forsøk. Lås opp eininga med koden, eller logg inn."
    case .biometricNotEnrolled:
      "Fingeravtrykk eller ansikt er ikkje sett opp på denne eininga. Logg inn for å halde fram."
    case .biometricUnavailable:
      "Fingeravtrykk og ansikt kan ikkje brukast akkurat no. Logg inn for å halde fram."
    case .biometricWithheld: "Vi fekk ikkje låst opp. Prøv ein gong til."
    case .biometricOff: "Logg inn på nytt for å halde fram."
    case .userLocked: "Appen er låst. Stadfest at det er deg."
    case .firstChoice: "Vel kva organisasjon du vil bruke."
    case .noMembership:
      "Du er ikkje med i nokon organisasjon her enno. Be organisasjonen din leggje deg til."
    case .membershipRevoked:
      "Tilgangen din til {organisation} er avslutta. Du kan velje ein annan organisasjon."
    case .orgDisabled:
      "Tilgangen til {organisation} er stengd for tida. Du kan velje ein annan organisasjon."
    case .roleUnknown:
      """
      Denne appen støttar ikkje rolla di i {organisation} enno. Du kan velje ein annan \
      organisasjon.
      """
    case .guardPending: "Sjekkar tilgangen din …"
    case .signingIn: "Loggar inn …"
    case .signingInAgain: "Vi har ikkje fått kontakt enno. Vi prøver framleis …"
    case .signInFailed: "Innlogginga lukkast ikkje. Prøv igjen."
    case .signInExpired: "Innlogginga tok for lang tid. Start på nytt."
    case .signInCancelled: "Innlogginga vart avbroten. Prøv igjen når du vil."
    case .signInOffline: "Du er ikkje på nett. Logg inn igjen når du er det."
    case .signInUnreachable: "Vi fekk ikkje kontakt for å logge deg inn. Prøv igjen."
    case .signInForeign: "Denne innlogginga vart ikkje starta her. Start på nytt i appen."
    case .routeForbidden: "Den sida høyrer ikkje til rolla di. Her er startsida di."
    case .serverUnreachable: "Vi får ikkje kontakt akkurat no. Vi held fram med å prøve."
    // Why a sign-in failed.
    case .wrongPassword: "E-postadressa eller passordet stemmer ikkje. Prøv igjen."
    case .unconfirmedAddress:
      "Adressa di er ikkje stadfesta enno. Opne lenkja du har fått tilsend, og logg inn."
    case .providerDisabled: "Denne måten å logge inn på er slått av. Vel ein annan."
    case .wrongAPIKey:
      "Appen er ikkje sett opp rett, så tenesta avviser han. Sei frå til dei som lagar han."
    case .wrongURL: "Appen leitar etter tenesta på gal stad. Sei frå til dei som lagar han."
    case .notSupabase: "Svaret kom ikkje frå tenesta vår. Sjekk nettet, og prøv igjen."
    case .projectPaused: "Tenesta er sett på pause. Prøv igjen seinare."
    case .userBanned: "Denne kontoen er sperra. Ta kontakt med organisasjonen din."
    case .answerLost: "Svaret på innlogginga kom ikkje fram. Logg inn på nytt."
    case .keyStore: "Eininga klarte ikkje å oppbevare innlogginga trygt. Prøv igjen."
    // Banners.
    case .unlockPrompt: "Lås opp for å halde fram."
    case .erasureOwed: "Ein nøkkel på eininga er ikkje sletta enno. Appen prøver igjen."
    case .staleData: "Opplysningane kan vere utdaterte."
    case .offline: "Du er utan nett. Det du registrerer, blir teke vare på og sendt seinare."
    case .nothingCachedYet: "Her er det ingenting enno. Det blir henta når du har nett."
    case .partlyCached: "Ikkje alt er henta enno. Resten kjem når du har nett."
    case .queuedNotSent: "Noko av det du har registrert, er ikkje sendt enno."
    case .encryptedRequiresConnectivity:
      "Nokre opplysningar blir viste berre når du har nett. Det vi har lagra, står her."
    // Why nothing is sent.
    case .nothingQueued: "Ingenting ventar på å bli sendt."
    case .sending: "Sender no …"
    case .locked: "Appen er låst. Lås opp, så blir resten send."
    case .token: "Innlogginga di blir fornya. Deretter blir det sendt."
    case .backOff: "Det gjekk ikkje sist. Vi prøver igjen om litt."
    case .serverPause: "Tenesta bed oss vente. Vi prøver igjen seinare."
    case .organisation: "Ventar på at du får tilgang til organisasjonen."
    case .dependency: "Ventar på noko anna som må sendast først."
    case .parked: "Noko kunne ikkje sendast. Bestem kva som skal skje med det."
    case .otherUser: "Noko høyrer til ein annan brukar og blir sendt når den brukaren loggar inn."
    case .ready: "Klart til å bli sendt."
    // Why one item is not sent.
    case .conflict:
      "Dette kunne ikkje lagrast fordi nummeret er i bruk frå før. Registrer det på nytt."
    case .unknownOutcome: "Vi er ikkje sikre på om dette kom fram. Sjekk før du sender det på nytt."
    case .rejected: "Dette vart ikkje teke imot. Sjå over det og prøv igjen."
    case .invalidValue: "Eit felt har ein verdi som ikkje kan brukast."
    case .missingValue: "Eit felt som må fyllast ut, er tomt."
    case .tooLong: "Teksten i eit felt er for lang."
    case .duplicate: "Dette er alt registrert."
    case .missingParent: "Noko som dette høyrer til, finst ikkje."
    case .missingColumn:
      "Ei av opplysningane vert ikkje lenger teken imot. Sjå over dette."
    case .serverRule: "Reglane opnar ikkje for dette."
    case .blocked:
      "Nettverket slepper ikkje dette gjennom. Prøv eit anna nettverk, eller endre teksten."
    case .schemaNotReady: "Dette kan ikkje takast imot enno. Vi prøver igjen seinare."
    case .unreadable: "Dette kan ikkje lenger lesast på denne eininga. Registrer det på nytt."
    case .dependencyParked: "Ventar på ei anna registrering som ikkje kunne sendast."
    case .dependencyWaiting: "Ventar på ei anna registrering som blir send først."
    case .changedElsewhere: "Nokon har endra det same i mellomtida. Vel kva som skal stå."
    case .deletedElsewhere: "Nokon har sletta dette i mellomtida."
    case .notAllowed: "Du har ikkje lov til å endre dette."
    case .parentDeleted: "Registreringa som dette høyrer til, er sletta."
    case .waitingTime: "Ventar litt før neste forsøk."
    case .waitingOrganisation: "Ventar til du har tilgang til organisasjonen igjen."
    case .waitingBlocked: "Nettverket sleppte ikkje dette gjennom. Vi prøver igjen seinare."
    // Events and messages.
    case .syncCompleted: "Ferdig: det som venta, er sendt."
    case .syncCompletedParked:
      "Ferdig, men noko kunne ikkje sendast."
    case .syncCompletedWaiting:
      "Ferdig så langt: det som kunne sendast, er sendt, og resten ventar."
    case .storageRecovered:
      "Noko av det som var lagra på eininga, var skada. Vi har redda det vi kunne."
    case .storageKeyLost:
      "Eininga har ikkje lenger nøkkelen til noko av det som var lagra. Det kan ikkje opnast."
    case .cacheRecovered:
      "Kontaktar og tal måtte hentast på nytt. Det du har registrert, er ikkje røyrt."
    case .contactGone: "Denne kontakten finst ikkje lenger."
    case .contactUnreachable: "Vi fekk ikkje henta opplysningane. Prøv igjen."
    case .contactWithdrawn:
      "Opplysningane blir ikkje viste, fordi appen vart låst eller du bytte organisasjon."
    }
  }
}
