import Base

extension Messages {
  /// English. `{organisation}` stands for the name, see `Messages.text`.
  static func english(_ code: MessageCode) -> StaticCString {
    switch code {
    // Reasons: what a decision says.
    case .sessionMissing: "Sign in to get started."
    case .sessionCorrupt:
      """
      Your saved sign-in could not be read. Please sign in again; what you have registered is \
      safe.
      """
    case .tokenExpired: "It has been a while. Please confirm that it is you."
    case .sessionWindow: "You have been signed in for a long time. Please confirm that it is you."
    case .backgroundTimeout:
      "The app has been in the background for a while. Please confirm that it is you."
    case .clockMovedBack: "The clock on this device was set back. Please confirm that it is you."
    case .sessionEnded:
      "Your session has ended. Please sign in again; what you have registered is kept."
    case .offlineLimit:
      "We have not got through for too long. Please sign in again; what you have registered is kept."
    case .signedOut: "You are signed out. Sign in to continue."
    case .keyLost:
      "Your saved sign-in can no longer be unlocked on this device. Please sign in again."
    case .keystoreLocked: "Unlock your device or its keyring, and we will carry on."
    case .keystoreFailed:
      "We cannot open what is saved on this device right now. Please try again shortly."
    case .biometricFailed: "We did not recognise you. Please sign in to continue."
    case .biometricCancelled: "Unlocking was cancelled. Please sign in to continue."
    case .biometricLockout: "There were too many attempts. Wait a little, or sign in."
    case .biometricLockoutPermanent:
      "There were too many attempts. Unlock your device with its code, or sign in."
    case .biometricNotEnrolled:
      "No fingerprint or face is set up on this device. Please sign in to continue."
    case .biometricUnavailable:
      "Fingerprint and face cannot be used right now. Please sign in to continue."
    case .biometricWithheld: "We could not unlock. Please try once more."
    case .biometricOff: "Please sign in again to continue."
    case .userLocked: "The app is locked. Please confirm that it is you."
    case .firstChoice: "Choose which organisation to use."
    case .noMembership:
      "You are not a member of any organisation here yet. Ask your organisation to add you."
    case .membershipRevoked:
      "Your access to {organisation} has ended. You can choose another organisation."
    case .orgDisabled:
      "Access to {organisation} is closed for now. You can choose another organisation."
    case .roleUnknown:
      """
      This app does not yet support your role in {organisation}. You can choose another \
      organisation.
      """
    case .guardPending: "Checking your access …"
    case .signingIn: "Signing in …"
    case .signingInAgain: "We have not got through yet. We are still trying …"
    case .signInFailed: "Sign-in did not work. Please try again."
    case .signInExpired: "Sign-in took too long. Please start again."
    case .signInCancelled: "Sign-in was cancelled. Try again whenever you like."
    case .signInOffline: "You are not connected. Sign in again when you are."
    case .signInUnreachable: "We could not get through to sign you in. Please try again."
    case .signInForeign: "That sign-in was not started here. Please start again in this app."
    case .routeForbidden: "That page is not part of your role. Here is your home page."
    case .serverUnreachable: "We cannot get through right now. We will keep trying."
    // Why a sign-in failed.
    case .wrongPassword: "The e-mail address or the password is not right. Please try again."
    case .unconfirmedAddress:
      "Your address is not confirmed yet. Open the link that was sent to you, then sign in."
    case .providerDisabled: "This way of signing in is switched off. Please choose another."
    case .wrongAPIKey:
      "This app is not set up right, so the service refuses it. Please tell those who made it."
    case .wrongURL:
      "This app looks for the service in the wrong place. Please tell those who made it."
    case .notSupabase: "The answer did not come from our service. Check the network, and try again."
    case .projectPaused: "The service is paused for now. Please try again later."
    case .userBanned: "This account is blocked. Please contact your organisation."
    case .answerLost: "The answer to your sign-in did not arrive. Please sign in again."
    case .keyStore: "This device could not keep the sign-in safe. Please try again."
    // Banners.
    case .unlockPrompt: "Unlock to continue."
    case .erasureOwed: "A key on this device is not erased yet. The app keeps trying."
    case .staleData: "This information may be out of date."
    case .offline: "You are offline. What you register is kept and sent later."
    case .nothingCachedYet: "There is nothing here yet. It will be fetched when you are connected."
    case .partlyCached: "Not everything is fetched yet. The rest comes while you are connected."
    case .queuedNotSent: "Some of what you have registered is not sent yet."
    case .encryptedRequiresConnectivity:
      "Some details are shown only when you are connected. What we have saved is shown here."
    // Why nothing is sent.
    case .nothingQueued: "Nothing is waiting to be sent."
    case .sending: "Sending now …"
    case .locked: "The app is locked. Unlock it, and the rest will be sent."
    case .token: "Your sign-in is being renewed. Then it will be sent."
    case .backOff: "It did not go through last time. We will try again shortly."
    case .serverPause: "The service asked us to wait. We will try again later."
    case .organisation: "Waiting for your access to the organisation."
    case .dependency: "Waiting for something else that must be sent first."
    case .parked: "Something could not be sent. Please decide what happens to it."
    case .otherUser: "Some of it belongs to another user and will be sent when they sign in."
    case .ready: "Ready to be sent."
    // Why one item is not sent.
    case .conflict:
      "This could not be stored because its number is in use. Please register it again."
    case .unknownOutcome:
      "We are not sure that this got through. Please check before you send it again."
    case .rejected: "This was not accepted. Please look it over and try again."
    case .invalidValue: "A field has a value that cannot be used."
    case .missingValue: "A field that must be filled in is empty."
    case .tooLong: "The text in a field is too long."
    case .duplicate: "This is already registered."
    case .missingParent: "Something that this belongs to does not exist."
    case .missingColumn:
      "One of these details is no longer accepted. Please look it over."
    case .serverRule: "The rules do not allow this."
    case .blocked:
      "The network does not let this through. Try another network, or change the text."
    case .schemaNotReady: "This cannot be accepted yet. We will try again later."
    case .unreadable: "This can no longer be read on this device. Please register it again."
    case .dependencyParked: "Waiting for another entry that could not be sent."
    case .dependencyWaiting: "Waiting for another entry that is sent first."
    case .changedElsewhere:
      "Somebody has changed the same in the meantime. Choose which value stands."
    case .deletedElsewhere: "Somebody has deleted this in the meantime."
    case .notAllowed: "You are not allowed to change this."
    case .parentDeleted: "The entry that this belongs to is deleted."
    case .waitingTime: "Waiting a little before the next attempt."
    case .waitingOrganisation: "Waiting until you have access to the organisation again."
    case .waitingBlocked: "The network did not let this through. We will try again later."
    // Events and messages.
    case .syncCompleted: "Done: what was waiting has been sent."
    case .syncCompletedParked:
      "Done, but something could not be sent."
    case .syncCompletedWaiting:
      "Done for now: what could be sent has been sent, and the rest is waiting."
    case .storageRecovered:
      "Some of what was saved on this device was damaged. We have rescued what we could."
    case .storageKeyLost:
      "This device no longer has the key to some of what was saved on it. That cannot be opened."
    case .cacheRecovered:
      "Contacts and figures had to be fetched again. What you have registered is not affected."
    case .contactGone: "This contact is no longer there."
    case .contactUnreachable: "The details could not be fetched. Please try again."
    case .contactWithdrawn:
      "The details are not shown, because the app was locked or you changed organisation."
    }
  }
}
