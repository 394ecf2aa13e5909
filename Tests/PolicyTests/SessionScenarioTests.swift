import Policy
import PolicyOracle
import TestSupport
import Testing

/// The acceptance criteria that depend on the decision alone.
@Suite struct SessionScenarioTests {
  private func decide(_ change: (inout Situation) -> Void) -> Decision {
    SessionPolicy.decide(.with(change))
  }

  @Test("RES-1: given an active session inside its window, when the app starts, then home at once")
  func activeSessionGoesHome() {
    for freshness in Situation.Freshness.allCases where freshness != .unreachable {
      let decision = decide { $0.freshness = freshness }
      expect(decision.screen, equals: .home)
      expect(!decision.stale)
    }
  }

  @Test("RES-2: given an expired access token, when the app starts, then unlock")
  func expiredTokenAsksForBiometrics() {
    expect(
      decide { $0.token = .expired }, equals: Decision(.unlock, .tokenExpired, lock: true))
    expect(
      decide {
        $0.token = .expired
        $0.record = .sealed
      }, equals: Decision(.unlock, .tokenExpired))
  }

  @Test("RES-2: given no biometrics, when the app starts, then expiry alone does not lock")
  func expiryWithoutBiometrics() {
    for presence in [Situation.Presence.off, .unenrolled] {
      let decision = decide {
        $0.token = .expired
        $0.presence = presence
      }
      expect(decision, equals: Decision(.home))
    }
    expect(
      decide {
        $0.token = .expired
        $0.presence = .requiredButMissing
      }, equals: Decision(.signIn, .biometricNotEnrolled))
  }

  @Test("RES-3: given RES-2 online, when biometrics succeed, then a refresh comes before home")
  func unlockRefreshesFirst() {
    let unlocked = Situation.with {
      $0.occasion = .unlock
      $0.outcome = .success
      $0.record = .sealed
      $0.token = .expired
    }
    expect(SessionPolicy.decide(unlocked), equals: Decision(.wait, .guardPending))

    let refreshed = decide {
      $0.occasion = .navigate
      $0.freshness = .confirmed
    }
    expect(refreshed, equals: Decision(.home))

    var timedOut = unlocked
    timedOut.freshness = .unreachable
    expect(SessionPolicy.decide(timedOut), equals: Decision(.home, stale: true))
  }

  @Test("RES-5: given a missing or damaged session, when the app starts, then sign-in")
  func damagedSession() {
    expect(decide { $0.record = .missing }, equals: Decision(.signIn, .sessionMissing))
    expect(
      decide { $0.record = .corrupt }, equals: Decision(.signIn, .sessionCorrupt, forget: true))
  }

  @Test(
    "RES-6: given a prompt that fails, then sign-in, with a reason for each cause",
    arguments: [
      (Situation.Outcome.failed, MessageCode.biometricFailed, true),
      (.cancelled, .biometricCancelled, true), (.lockout, .biometricLockout, true),
      (.lockoutPermanent, .biometricLockoutPermanent, false),
      (.notEnrolled, .biometricNotEnrolled, false),
      (.unavailable, .biometricUnavailable, true), (.invalidated, .keyLost, false),
    ])
  func failedPrompt(outcome: Situation.Outcome, message: MessageCode, again: Bool) {
    let decision = decide {
      $0.occasion = .unlock
      $0.record = .sealed
      $0.outcome = outcome
    }
    expect(decision, equals: Decision(.signIn, message, canUnlock: again))
  }

  @Test("RES-7: given a key store that is locked or fails, then wait, and nothing is cleared")
  func silentKeyStore() {
    for record in Situation.Record.allCases {
      let locked = decide {
        $0.keys = .locked
        $0.record = record
      }
      expect(locked, equals: Decision(.wait, .keystoreLocked))
      let failed = decide {
        $0.keys = .failed
        $0.record = record
      }
      expect(failed, equals: Decision(.wait, .keystoreFailed))
    }
  }

  @Test("KEEP-2: given a valid session, when locked before, then biometrics; else silently")
  func closedAndOpened() {
    expect(decide { _ in }.screen, equals: .home)
    expect(
      decide {
        $0.record = .sealed
        $0.lockedByUser = true
      }, equals: Decision(.unlock, .userLocked))
  }

  @Test(
    "KEEP-3: given a session that ended or passed its limit, then sign-in, each with its reason")
  func endedSession() {
    for occasion in Situation.Occasion.allCases {
      let ended = decide {
        $0.occasion = occasion
        $0.record = .ended
      }
      expect(ended, equals: Decision(.signIn, .sessionEnded))
      for outcome in Situation.Outcome.allCases {
        let past = decide {
          $0.occasion = occasion
          $0.window = .pastLimit
          $0.outcome = outcome
        }
        expect(past, equals: Decision(.signIn, .offlineLimit))
      }
    }
  }

  @Test("KEEP-6: given a long absence, when the app returns in any way, then unlock")
  func longAbsence() {
    for occasion in Situation.Occasion.allCases {
      let decision = decide {
        $0.occasion = occasion
        $0.absence = .long
      }
      expect(decision, equals: Decision(.unlock, .backgroundTimeout, lock: true))
    }
  }

  @Test("KEEP-7: given the server's proof of the end, then it wins over every lock")
  func endWinsOverLock() {
    let decision = decide {
      $0.record = .ended
      $0.lockedByUser = true
      $0.absence = .long
    }
    expect(decision, equals: Decision(.signIn, .sessionEnded))
  }

  @Test("ORG-1: given a choice, when biometrics succeed, then straight home")
  func rememberedChoice() {
    let decision = decide {
      $0.occasion = .unlock
      $0.outcome = .success
      $0.record = .sealed
    }
    expect(decision, equals: Decision(.home))
  }

  @Test("ORG-2: given a revoked membership or a disabled organisation, then a choice that says why")
  func lostAccess() {
    let confirmed = Situation.Freshness.confirmed
    expect(
      decide {
        $0.membership = .revoked
        $0.freshness = confirmed
      }, equals: Decision(.selectOrg, .membershipRevoked))
    expect(
      decide {
        $0.membership = .disabled
        $0.freshness = confirmed
      }, equals: Decision(.selectOrg, .orgDisabled))
    expect(
      decide {
        $0.membership = .unknownRole
        $0.freshness = confirmed
      }, equals: Decision(.selectOrg, .roleUnknown))
  }

  @Test("ORG-3: given no network and cached memberships, then home with both banners")
  func offlineStart() {
    for freshness in [Situation.Freshness.cached, .pending, .unreachable] {
      for occasion in Situation.Occasion.allCases {
        let decision = decide {
          $0.network = .offline
          $0.freshness = freshness
          $0.occasion = occasion
        }
        expect(decision, equals: Decision(.home, stale: true, offline: true))
      }
    }
  }

  @Test("ORG-6: given no choice yet, then one is chosen, several are offered, none is reported")
  func firstChoice() {
    let one = decide { $0.membership = .single }
    expect(one.screen, equals: .home)
    expect(one.chooseOnly)
    expect(decide { $0.membership = .unchosen }.message, equals: .firstChoice)
    expect(decide { $0.membership = .noneAtAll }.message, equals: .noMembership)
    expect(decide { $0.membership = .unasked }, equals: Decision(.wait, .guardPending))
  }

  @Test(
    "ORG-7: given a membership check in flight, when the host navigates, then wait, then the cache")
  func guardInFlight() {
    let waiting = decide {
      $0.occasion = .navigate
      $0.freshness = .pending
    }
    expect(waiting.screen, equals: .wait)
    expect(waiting.message, equals: .guardPending)
    let timedOut = decide {
      $0.occasion = .navigate
      $0.freshness = .unreachable
    }
    expect(timedOut, equals: Decision(.home, stale: true))
  }

  @Test("OFF-2: given no network, when biometrics succeed, then home with both banners")
  func offlineUnlock() {
    let decision = decide {
      $0.occasion = .unlock
      $0.outcome = .success
      $0.record = .sealed
      $0.token = .expired
      $0.network = .offline
    }
    expect(decision, equals: Decision(.home, stale: true, offline: true))
  }

  @Test("SES-7: given a clock moved back, then biometrics, or nothing where there are none")
  func clockMovedBack() {
    expect(decide { $0.clock = .movedBack }, equals: Decision(.unlock, .clockMovedBack, lock: true))
    for presence in [Situation.Presence.off, .unenrolled, .requiredButMissing] {
      let decision = decide {
        $0.clock = .movedBack
        $0.presence = presence
      }
      expect(decision.screen, equals: .home)
    }
  }

  @Test("SES-9: given an invalidated biometric key, then sign-in with key_lost")
  func invalidatedKey() {
    let invalidated = decide {
      $0.occasion = .unlock
      $0.record = .sealed
      $0.outcome = .invalidated
    }
    expect(invalidated, equals: Decision(.signIn, .keyLost))
    for presence in [Situation.Presence.off, .unenrolled, .requiredButMissing] {
      let gone = decide {
        $0.record = .sealed
        $0.presence = presence
      }
      expect(gone, equals: Decision(.signIn, .keyLost))
      // A lock by the user erased the key: it was not lost.
      let locked = decide {
        $0.record = .sealed
        $0.presence = presence
        $0.lockedByUser = true
      }
      let message: MessageCode = presence == .off ? .biometricOff : .biometricNotEnrolled
      expect(locked, equals: Decision(.signIn, message))
    }
  }

  @Test("SES-10: given a claim of success without the key, then it stays locked")
  func claimWithoutKey() {
    let withheld = decide {
      $0.occasion = .unlock
      $0.record = .sealed
      $0.outcome = .withheld
    }
    expect(withheld, equals: Decision(.unlock, .biometricWithheld))
    let noWrap = decide {
      $0.occasion = .unlock
      $0.record = .sealed
      $0.outcome = .success
      $0.presence = .requiredButMissing
    }
    expect(noWrap, equals: Decision(.signIn, .keyLost))
  }

  @Test("SES-11: given files without their device key, then sign-in, and nothing is cleared")
  func restoredElsewhere() {
    for record in Situation.Record.allCases {
      let decision = decide {
        $0.keys = .lost
        $0.record = record
      }
      expect(decision, equals: Decision(.signIn, .keyLost))
    }
  }
}
