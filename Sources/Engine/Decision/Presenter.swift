import Base
import Policy
import Store
import Supabase

/// Renders decisions and the parts that replies share with them as the JSON of the API.
struct Presenter: Rules {
  let parts: Parts
  private var configuration: Configuration { core.configuration }

  func render(_ decision: Decision) throws(Failure) -> JSON {
    let now = core.clock.now()
    let isHome = decision.screen == .home
    let chosen = isHome ? sessions.session?.chosen : nil
    var notices = Banners(decision: decision)
    notices.owesErasure = sessions.keys.erasures.isOwing
    return [
      "screen": .string(decision.screen.rawValue),
      "route": JSON(isHome ? configuration.routes(under: chosen)?.home : nil),
      "org": chosen.map {
        ["id": .string($0.orgID.text), "name": .string($0.name), "role": .string($0.role)]
      } ?? .null,
      "message": message(for: decision),
      "can_unlock": .bool(decision.screen == .unlock || decision.canUnlock),
      "methods": decision.screen == .signIn ? methods() : [],
      "orgs": decision.screen == .selectOrg ? organisations() : [],
      "banners": banners(notices, asOfMS: try sessions.row().membershipsMS),
      "deadline_ms": JSON(deadlineMS(decision, now)),
    ]
  }

  /// When the next decision follows a `wait` at the latest, by the device's clock. The wait for a
  /// key store lasts until the store answers, and `server_unreachable` until the server responds:
  /// their time has no meaning.
  private func deadlineMS(_ decision: Decision, _ now: Instant) -> Int64? {
    if decision.message == .signingIn, let deadlineMS = pendingSignIn.deadlineMS {
      return now.wallMS + deadlineMS - now.monotonicMS
    }
    guard decision.screen == .wait else { return nil }
    return now.wallMS + max(0, check.timeoutLeftMS(now))
  }

  private func message(for decision: Decision) -> JSON {
    guard let code = decision.message else { return .null }
    let isTriedAgain = code == .signingIn && decision.cause != nil
    let told = isTriedAgain ? .signingInAgain : decision.cause?.messageCode
    let message: JSON = [
      "code": .string(code.rawValue),
      "text": .string(
        Messages.text(
          told ?? code, configuration.language, organisation: sessions.session?.chosen?.name)),
    ]
    if let cause = decision.cause { message.set("cause", .string(cause.rawValue)) }
    return message
  }

  private func methods() -> JSON {
    .array(
      configuration.methods.map {
        [
          "id": .string($0.id), "label": .string($0.label), "flow": .string($0.flow.rawValue),
        ]
      })
  }

  func organisations() -> JSON {
    .array(
      (sessions.session?.memberships ?? []).map {
        [
          "org_id": .uuid($0.orgID), "name": .string($0.name), "role": .string($0.role),
          "status": $0.active ? ($0.orgActive ? "active" : "disabled") : "revoked",
          "current": .bool($0.orgID == sessions.session?.choice),
        ]
      })
  }

  // MARK: Banners

  /// The banners of a reply with cached data of this age, which requests of `purpose` bring. `hasSome`: there is
  /// data, whether or not a fetch was ever completed.
  func dataBanners(
    _ purpose: Purpose = .pull, asOfMS: Int64?, hasSome: Bool = false
  ) throws(Failure) -> Banners {
    let isProbing = try pauses.isProbing(purpose)
    return Banners(
      asOfMS: asOfMS, nowMS: core.clock.now().wallMS, online: reachability.isOnline,
      failing: isProbing || reachability.isFailing, hasSome: hasSome)
  }

  /// `asOfMS`: the age of what is shown, for the banners that tell it.
  func banners(_ banners: Banners, asOfMS: Int64?) -> JSON {
    .array(
      banners.banners.map {
        [
          "code": .string($0.rawValue), "tone": .string($0.tone.rawValue),
          "text": core.text(ofCode: $0.rawValue), "as_of_ms": JSON($0.tellsAge ? asOfMS : nil),
        ]
      })
  }
}
