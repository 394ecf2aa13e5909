import Base
import Policy
import TestSupport
import Testing

@testable import Engine

@Suite struct HostViewTests {
  private func decision(_ changes: String = "") throws -> JSON {
    let base = try json(
      #"{"screen":"home","route":"/a","org":{"id":"1","name":"N","role":"r"},"#
        + #""message":null,"banners":[],"orgs":[],"deadline_ms":null}"#)
    if changes.isEmpty { return base }
    for (key, value) in try json("{\(changes)}").members { base.set(member: key, value) }
    return base
  }

  /// A change of a decision, and whether the host should be told.
  @Test(arguments: [
    (#""screen":"unlock""#, true), (#""route":"/b""#, true),
    (#""org":{"id":"2","name":"N","role":"r"}"#, true),
    (#""org":{"id":"1","name":"N","role":"s"}"#, true), (#""banners":[{"code":"offline"}]"#, true),
    (#""orgs":[{"org_id":"1","status":"active"}]"#, true),
    (#""org":{"id":"1","name":"M","role":"r"}"#, false), (#""deadline_ms":5"#, false),
    (#""message":{"code":"x"}"#, false),
  ])
  func aFingerprintSaysWhatTheHostShows(_ change: String, _ isOther: Bool) throws {
    let before = HostView.fingerprint(of: try decision())
    expect(HostView.fingerprint(of: try decision(change)) != before, equals: isOther)
  }

  @Test func anotherBannerIsToldToTheHost() throws {
    func fingerprint(_ code: String) throws -> String {
      HostView.fingerprint(of: try decision(#""banners":[{"code":"\#(code)"}]"#))
    }
    try expect(fingerprint("offline") != fingerprint("stale"))
  }

  @Test func theChoiceOfOrganisationsAlsoSaysWhyAndShowsEachOrganisationWithItsStatus() throws {
    func fingerprint(_ code: String, _ status: String, _ id: String = "1") throws -> String {
      HostView.fingerprint(
        of: try decision(
          #""message":{"code":"\#(code)"},"orgs":[{"org_id":"\#(id)","status":"\#(status)"}]"#))
    }
    let before = try fingerprint("first_choice", "active")
    try expect(fingerprint("org_disabled", "active") != before)
    try expect(fingerprint("first_choice", "disabled") != before)
    try expect(fingerprint("first_choice", "active", "2") != before)
  }

  @Test func itRemembersWhatWasShown() throws {
    // Given
    let view = HostView()
    expect(view.shown.fingerprint.isEmpty && !view.shown.isWaiting)
    // When
    view.remember(Decision(.home), try decision())
    let home = view.shown
    view.remember(Decision(.wait, .guardPending), try decision(#""screen":"wait""#))
    // Then
    expect(view.shown.isWaiting)
    expect(view.wasToldDeadline)
    view.remember(Decision(.home), try decision())
    expect(!view.shown.isWaiting && !view.wasToldDeadline)
    view.expectDecision()
    expect(view.shown.isWaiting)
    expect(view.shown.fingerprint, equals: home.fingerprint)
  }
}
