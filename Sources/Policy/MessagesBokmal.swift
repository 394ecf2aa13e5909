import Base

extension Messages {
  /// Norwegian, bokmål. `{organisation}` stands for the name, see `Messages.text`.
  static func bokmal(_ code: MessageCode) -> StaticCString {
    switch code {
    // Reasons: what a decision says.
    case .sessionMissing: "Logg inn for å komme i gang."
    case .sessionCorrupt:
      """
      Den lagrede innloggingen kunne ikke leses. Logg inn på nytt; det du har registrert, er \
      trygt.
      """
    case .tokenExpired: "Det er en stund siden sist. Bekreft at det er deg."
    case .sessionWindow: "Du har vært logget inn lenge. Bekreft at det er deg."
    case .backgroundTimeout: "Appen har vært i bakgrunnen en stund. Bekreft at det er deg."
    case .clockMovedBack: "Klokken på enheten er stilt tilbake. Bekreft at det er deg."
    case .sessionEnded:
      "Innloggingen din er avsluttet. Logg inn på nytt; det du har registrert, er tatt vare på."
    case .offlineLimit:
      "Vi har ikke fått kontakt på lenge. Logg inn på nytt; det du har registrert, er tatt vare på."
    case .signedOut: "Du er logget ut. Logg inn for å fortsette."
    case .keyLost:
      "Den lagrede innloggingen kan ikke lenger låses opp på denne enheten. Logg inn på nytt."
    case .keystoreLocked: "Lås opp enheten eller nøkkelringen, så fortsetter vi."
    case .keystoreFailed:
      "Vi får ikke åpnet det som er lagret på enheten akkurat nå. Prøv igjen om litt."
    case .biometricFailed: "Vi kjente deg ikke igjen. Logg inn for å fortsette."
    case .biometricCancelled: "Opplåsingen ble avbrutt. Logg inn for å fortsette."
    case .biometricLockout: "Det ble for mange forsøk. Vent litt, eller logg inn."
    case .biometricLockoutPermanent:
      "Det ble for mange forsøk. Lås opp enheten med koden, eller logg inn."
    case .biometricNotEnrolled:
      "Fingeravtrykk eller ansikt er ikke satt opp på denne enheten. Logg inn for å fortsette."
    case .biometricUnavailable:
      "Fingeravtrykk og ansikt kan ikke brukes akkurat nå. Logg inn for å fortsette."
    case .biometricWithheld: "Vi fikk ikke låst opp. Prøv en gang til."
    case .biometricOff: "Logg inn på nytt for å fortsette."
    case .userLocked: "Appen er låst. Bekreft at det er deg."
    case .firstChoice: "Velg hvilken organisasjon du vil bruke."
    case .noMembership:
      "Du er ikke med i noen organisasjon her ennå. Be organisasjonen din om å legge deg til."
    case .membershipRevoked:
      "Tilgangen din til {organisation} er avsluttet. Du kan velge en annen organisasjon."
    case .orgDisabled:
      "Tilgangen til {organisation} er stengt for tiden. Du kan velge en annen organisasjon."
    case .roleUnknown:
      """
      Denne appen støtter ikke rollen din i {organisation} ennå. Du kan velge en annen \
      organisasjon.
      """
    case .guardPending: "Sjekker tilgangen din …"
    case .signingIn: "Logger inn …"
    case .signingInAgain: "Vi har ikke fått kontakt ennå. Vi prøver fortsatt …"
    case .signInFailed: "Innloggingen lyktes ikke. Prøv igjen."
    case .signInExpired: "Innloggingen tok for lang tid. Begynn på nytt."
    case .signInCancelled: "Innloggingen ble avbrutt. Prøv igjen når du vil."
    case .signInOffline: "Du er ikke på nett. Logg inn igjen når du er det."
    case .signInUnreachable: "Vi fikk ikke kontakt for å logge deg inn. Prøv igjen."
    case .signInForeign: "Denne innloggingen ble ikke startet her. Begynn på nytt i appen."
    case .routeForbidden: "Den siden hører ikke til rollen din. Her er startsiden din."
    case .serverUnreachable: "Vi får ikke kontakt akkurat nå. Vi fortsetter å prøve."
    // Why a sign-in failed.
    case .wrongPassword: "E-postadressen eller passordet stemmer ikke. Prøv igjen."
    case .unconfirmedAddress:
      "Adressen din er ikke bekreftet ennå. Åpne lenken du har fått tilsendt, og logg inn."
    case .providerDisabled: "Denne måten å logge inn på er slått av. Velg en annen."
    case .wrongAPIKey:
      "Appen er ikke satt opp riktig, så tjenesten avviser den. Si fra til dem som lager den."
    case .wrongURL: "Appen leter etter tjenesten på galt sted. Si fra til dem som lager den."
    case .notSupabase: "Svaret kom ikke fra tjenesten vår. Sjekk nettet, og prøv igjen."
    case .projectPaused: "Tjenesten er satt på pause. Prøv igjen senere."
    case .userBanned: "Denne kontoen er sperret. Ta kontakt med organisasjonen din."
    case .answerLost: "Svaret på innloggingen kom ikke frem. Logg inn på nytt."
    case .keyStore: "Enheten klarte ikke å oppbevare innloggingen trygt. Prøv igjen."
    // Banners.
    case .unlockPrompt: "Lås opp for å fortsette."
    case .erasureOwed: "En nøkkel på enheten er ikke slettet ennå. Appen prøver igjen."
    case .staleData: "Opplysningene kan være utdaterte."
    case .offline: "Du er uten nett. Det du registrerer, blir tatt vare på og sendt senere."
    case .nothingCachedYet: "Her er det ingenting ennå. Det blir hentet når du har nett."
    case .partlyCached: "Ikke alt er hentet ennå. Resten kommer når du har nett."
    case .queuedNotSent: "Noe av det du har registrert, er ikke sendt ennå."
    case .encryptedRequiresConnectivity:
      "Noen opplysninger vises bare når du har nett. Det vi har lagret, vises her."
    // Why nothing is sent.
    case .nothingQueued: "Ingenting venter på å bli sendt."
    case .sending: "Sender nå …"
    case .locked: "Appen er låst. Lås opp, så blir resten sendt."
    case .token: "Innloggingen din blir fornyet. Deretter blir det sendt."
    case .backOff: "Det gikk ikke sist. Vi prøver igjen om litt."
    case .serverPause: "Tjenesten ber oss vente. Vi prøver igjen senere."
    case .organisation: "Venter på at du får tilgang til organisasjonen."
    case .dependency: "Venter på noe annet som må sendes først."
    case .parked: "Noe kunne ikke sendes. Bestem hva som skal skje med det."
    case .otherUser: "Noe hører til en annen bruker og blir sendt når den brukeren logger inn."
    case .ready: "Klart til å bli sendt."
    // Why one item is not sent.
    case .conflict:
      "Dette kunne ikke lagres fordi nummeret er i bruk fra før. Registrer det på nytt."
    case .unknownOutcome: "Vi er ikke sikre på om dette kom fram. Sjekk før du sender det på nytt."
    case .rejected: "Dette ble ikke tatt imot. Se over det og prøv igjen."
    case .invalidValue: "Et felt har en verdi som ikke kan brukes."
    case .missingValue: "Et felt som må fylles ut, er tomt."
    case .tooLong: "Teksten i et felt er for lang."
    case .duplicate: "Dette er allerede registrert."
    case .missingParent: "Noe som dette hører til, finnes ikke."
    case .missingColumn:
      "En av opplysningene tas ikke lenger imot. Se over dette."
    case .serverRule: "Reglene tillater ikke dette."
    case .blocked:
      "Nettverket slipper ikke dette gjennom. Prøv et annet nettverk, eller endre teksten."
    case .schemaNotReady: "Dette kan ikke tas imot ennå. Vi prøver igjen senere."
    case .unreadable: "Dette kan ikke lenger leses på denne enheten. Registrer det på nytt."
    case .dependencyParked: "Venter på en annen registrering som ikke kunne sendes."
    case .dependencyWaiting: "Venter på en annen registrering som blir sendt først."
    case .changedElsewhere: "Noen har endret det samme i mellomtiden. Velg hva som skal stå."
    case .deletedElsewhere: "Noen har slettet dette i mellomtiden."
    case .notAllowed: "Du har ikke lov til å endre dette."
    case .parentDeleted: "Registreringen som dette hører til, er slettet."
    case .waitingTime: "Venter litt før neste forsøk."
    case .waitingOrganisation: "Venter til du har tilgang til organisasjonen igjen."
    case .waitingBlocked: "Nettverket slapp ikke dette gjennom. Vi prøver igjen senere."
    // Events and messages.
    case .syncCompleted: "Ferdig: det som ventet, er sendt."
    case .syncCompletedParked:
      "Ferdig, men noe kunne ikke sendes."
    case .syncCompletedWaiting:
      "Ferdig så langt: det som kunne sendes, er sendt, og resten venter."
    case .storageRecovered:
      "Noe av det som var lagret på enheten, var skadet. Vi har reddet det vi kunne."
    case .storageKeyLost:
      "Enheten har ikke lenger nøkkelen til noe av det som var lagret. Det kan ikke åpnes."
    case .cacheRecovered:
      "Kontakter og tall måtte hentes på nytt. Det du har registrert, er ikke berørt."
    case .contactGone: "Denne kontakten finnes ikke lenger."
    case .contactUnreachable: "Vi fikk ikke hentet opplysningene. Prøv igjen."
    case .contactWithdrawn:
      "Opplysningene vises ikke, fordi appen ble låst eller du byttet organisasjon."
    }
  }
}
