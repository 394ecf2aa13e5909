import Base
import Policy
import Store

/// The last decision that was made for the host.
struct Shown {
  /// Identifies the decision: screen, route, organisation, role and banners; for `select_org` also
  /// the reason and the organisations offered. Empty: no decision was made yet.
  var fingerprint = ""
  var decision: Decision?
  /// The host was told to wait: another screen must follow.
  var isWaiting = false
  /// The host was told that a biometric prompt may open the session. A sign-in that is tried meanwhile
  /// changes nothing in that.
  var canUnlock = false
  /// The generation of the session row at that time.
  var generation: Int64 = 0
  /// When the user of that row was last authenticated.
  var authenticatedMS: Int64 = 0
  /// When the membership check had begun, from which the deadline of a `wait` follows.
  var checkSinceMS: Int64 = 0

  var screen: Screen? { decision?.screen }
  var message: MessageCode? { decision?.message }
  /// The host was told to wait for a sign-in.
  var isSigningIn: Bool { screen == .wait && message == .signingIn }
}

/// Whether a user is at this handle.
enum Visit {
  /// Nobody was seen: neither resume, foreground, unlock nor a sign-in was called. Queued items may be
  /// sent, but nothing is shown or changed.
  case nobody
  /// Somebody was seen, and a lock or the sign-in stands before the data.
  case outside
  /// A user was let in.
  case inside
}

/// Remembers what the host shows, so that it gets a changed decision, and no unchanged one.
final class HostView {
  private(set) var shown = Shown()
  private(set) var visit = Visit.nobody
  /// The host has not said that the app left the screen. Off it nobody arrives but by a proof.
  var isOnScreen = true

  /// The wrap of the session whose lock the file has not taken; nil: it has, or there was none.
  var owedLock: [UInt8]?

  /// When the user was last authenticated whose start was refused because no biometric key opens the session;
  /// nil: none was.
  private var refusedMS: Int64?
  /// The digest of the access token that the host was given or told of; empty: it waits for one; nil: it
  /// never asked, and is not told. (`SessionToken` writes it.)
  var toldToken: [UInt8]?

  // MARK: The user

  /// A user has come; `isIn`: and was let in.
  func arrive(isIn: Bool) { visit = isIn ? .inside : .outside }

  /// Remember a start that was refused because no biometric key opens the session.
  func note(_ decision: Decision, on occasion: Situation.Occasion, _ row: SessionRow) {
    guard occasion == .resume else { return }
    refusedMS = decision.message == .biometricNotEnrolled ? row.authenticatedMS : nil
  }

  /// Whether the user is outside because a start was refused, and nobody has proved to be present since.
  func isRefused(_ row: SessionRow) -> Bool {
    visit != .inside && refusedMS == row.authenticatedMS
  }

  /// A user has come, or begins a sign-in.
  func noteVisitor() { if visit != .inside { visit = .outside } }

  // MARK: Decisions

  func remember(
    _ decision: Decision, _ rendered: JSON, over row: SessionRow = SessionRow(),
    checkSinceMS: Int64 = 0
  ) {
    let before = shown.canUnlock
    shown = Shown(
      fingerprint: HostView.fingerprint(of: rendered), decision: decision,
      isWaiting: decision.screen == .wait, canUnlock: rendered.bool("can_unlock") ?? false,
      generation: row.generation, authenticatedMS: row.authenticatedMS, checkSinceMS: checkSinceMS)
    if shown.isSigningIn { shown.canUnlock = before }
  }

  /// The next decision is given even if it looks the same.
  func expectDecision() { shown.isWaiting = true }

  /// The host was told a deadline for the membership check, so the check must keep its start.
  var wasToldDeadline: Bool { shown.message == .guardPending || shown.message == .signingIn }

  static func fingerprint(of decision: JSON) -> String {
    var parts: [String] = []
    parts.append(decision.string("screen") ?? "")
    parts.append(decision.string("route") ?? "")
    parts.append(decision["org"]?.string("id") ?? "")
    parts.append(decision["org"]?.string("role") ?? "")
    for banner in decision["banners"]?.elements ?? [] {
      parts.append(banner.string("code") ?? "")
    }
    for org in decision["orgs"]?.elements ?? [] {
      parts.append(decision["message"]?.string("code") ?? "")
      parts.append(org.string("org_id") ?? "")
      parts.append(org.string("status") ?? "")
    }
    return parts.joined(separator: "|")
  }
}
