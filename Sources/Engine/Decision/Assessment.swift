import Base
import Policy
import Store
import Supabase

/// Everything that a decision depends on, as it was read.
struct Facts {
  let occasion: Situation.Occasion
  let keys: Situation.Keys
  let record: Situation.Record
  let row: SessionRow
  /// The readable session, when `record` is `open`.
  let session: OpenSession?
  let now: Instant
  /// The user has left this process, and the session goes on in it alone (`SessionKeys.withdraw`).
  let isOnlyHeld: Bool
  /// How long the access token is still valid.
  let tokenLifeLeftMS: Int64
  let isOnline: Bool
  let freshness: Situation.Freshness
}

/// A situation judged from facts, and the session row behind it. Pure: it reads no clock, no file and
/// no key store.
final class Assessment {
  /// The device's clock may be this far behind an earlier reading before it counts as moved back.
  private static var clockToleranceMS: Int64 { 60_000 }

  let situation: Situation
  let row: SessionRow

  /// What is assessed for `navigate`, decided as a return: use asks for no proof of the user, and what the host shows
  /// does not wait for a membership check.
  var asReturn: Situation {
    var situation = situation
    situation.occasion = .foreground
    return situation
  }

  init(_ facts: Facts, _ configuration: Configuration) {
    let limits = configuration.limits
    row = facts.row
    situation = Situation(
      occasion: facts.occasion, keys: facts.keys, record: facts.record,
      clock: Assessment.clock(facts), token: facts.tokenLifeLeftMS <= 0 ? .expired : .valid,
      window: Assessment.window(facts, limits), absence: Assessment.absence(facts, limits),
      network: facts.isOnline ? .online : .offline,
      presence: limits.presence(facts.row), outcome: .none,
      membership: Assessment.membership(facts, configuration),
      freshness: facts.freshness, lockedByUser: facts.row.locked)
  }

  /// While the app is used, a clock that is set back does not lock it.
  private static func clock(_ facts: Facts) -> Situation.Clock {
    guard facts.occasion != .navigate else { return .steady }
    let row = facts.row
    let newest = max(
      row.seenWallMS, row.authenticatedMS, row.validatedMS, row.backgroundWallMS ?? 0)
    return facts.now.wallMS < newest - clockToleranceMS ? .movedBack : .steady
  }

  /// The window is not enforced during use, only on resume, foreground and unlock.
  private static func window(_ facts: Facts, _ limits: Limits) -> Situation.Window {
    if facts.row.validatedAgeMS(facts.now) > limits.offlineLimitMS { return .pastLimit }
    if facts.occasion == .navigate { return .inside }
    return facts.row.authenticatedAgeMS(facts.now) > limits.sessionWindowMS ? .outside : .inside
  }

  private static func absence(_ facts: Facts, _ limits: Limits) -> Situation.Absence {
    guard let since = facts.row.backgroundWallMS else { return .brief }
    // With a biometric key, leaving has erased the session's key, which says it.
    if limits.lockOnBackground == .atOnce, !facts.isOnlyHeld, !limits.canOpenByBiometrics(facts.row)
    {
      return .long
    }
    let awayMS = facts.now.ageMS(
      wallMS: since, monotonicMS: facts.row.backgroundMonotonicMS,
      bootID: facts.row.backgroundBoot)
    return awayMS > limits.backgroundTimeoutMS ? .long : .brief
  }

  private static func membership(
    _ facts: Facts, _ configuration: Configuration
  ) -> Situation.Membership {
    // Without organisations nothing stands between an open session and its data.
    guard configuration.backend.hasOrganisations else { return .active }
    // A list that the server has not confirmed for too long counts as never fetched.
    guard let session = facts.session, let list = session.memberships,
      facts.row.membershipsAgeMS(facts.now) <= configuration.limits.offlineLimitMS
    else { return .unasked }
    if session.choice != nil { return configuration.state(of: session.chosen) }
    let usable = list.filter { $0.isUsable }
    if usable.count == 1 {
      return configuration.state(of: usable[0]) == .active ? .single : .unknownRole
    }
    return usable.isEmpty && !list.contains(where: { $0.active }) ? .noneAtAll : .unchosen
  }
}

extension Configuration {
  /// Whether the user can work under a membership; nil: they have none. Only here is that said: the server decides about
  /// membership and organisation, and the configuration about the role. For a role without routes there is no screen, so
  /// nothing is read or added for it either. (What was queued is sent: for that the server's word is enough.)
  func state(of membership: Membership?) -> Situation.Membership {
    guard let membership, membership.active else { return .revoked }
    if !membership.orgActive { return .disabled }
    return routes(for: membership.role) == nil ? .unknownRole : .active
  }

  /// Whether what a server sends of an organisation may be cached and shown: the user can work there, and its cache
  /// was not erased by a switch. nil: the organisation of an app without any.
  func mayCache(_ org: UUID?, _ session: OpenSession) -> Bool {
    guard backend.hasOrganisations else { return true }
    guard let org, org == session.choice || !limits.eraseOnSwitch else { return false }
    return state(of: session.membership(in: org)) == .active
  }
}

extension Limits {
  /// Whether a biometric prompt can open the session of this row. Only here is that said; when one is asked for says
  /// `LockPolicy`.
  @inline(never) func presence(_ row: SessionRow) -> Situation.Presence {
    switch biometric {
    case .off: return .off
    case .required: return row.wrapBiometric == nil ? .requiredButMissing : .available
    case .preferred: return row.wrapBiometric == nil ? .unenrolled : .available
    }
  }

  func canOpenByBiometrics(_ row: SessionRow) -> Bool { presence(row) == .available }
}
