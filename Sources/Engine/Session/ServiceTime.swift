import Base
import Store
import Supabase
import Vault

/// Learns the service's time, which `Core.serverMS` tells: from the header `Date` of its answers, as
/// far as a token confirms it.
///
/// A gateway before the service has a clock of its own, and a cache gives an answer later than it was
/// made. But a token that the service accepts or issues is valid at that moment. So a `Date` counts
/// only if the token was valid then; else, or if there is none, the present estimate stays, moved to
/// where the token is valid. What is refused proves nothing: the token may be too old.
struct ServiceTime: Rules {
  /// Clocks of services differ, and they accept a token for a moment after its end.
  private static var toleranceMS: Int64 { 60_000 }
  /// A lifetime may be told shorter than it is, for instance as what was left of it.
  private static var leastLifetimeMS: Int64 { 3_600_000 }

  let parts: Parts

  func learn(
    from response: HTTPResponse, to request: InFlightRequest, _ now: Instant
  ) throws(Failure) {
    guard (200..<300).contains(response.status), response.isOwn(request.purpose) else { return }
    // The header counts whole seconds; the middle of the second is the best guess.
    let date = response.dateMS.map { $0 + 500 }
    switch request.content {
    case .refresh, .signIn, .revoke:
      guard let reply = try response.tokens() else { return }
      if let end = reply.expiresAtS {
        let validity = ServiceTime.validity(endMS: end * 1000, reply.expiresInS * 1000)
        try learn(date.flatMap { validity.contains($0) ? $0 : nil }, within: validity, now)
      } else if let date {
        try learn(date, within: date...date, now)
      }
    default:
      let row = try sessions.row()
      guard let session = sessions.session, session.generation == request.generation,
        row.generation == request.generation
      else { return }
      let validity = ServiceTime.validity(endMS: row.expiresMS, session.lifetimeMS)
      try learn(try confirmed(date, validity, session), within: validity, now)
    }
  }

  /// When a token with this end was valid, by the service's time.
  private static func validity(endMS: Int64, _ lifetimeMS: Int64) -> ClosedRange<Int64> {
    let issuedMS = endMS - max(lifetimeMS, leastLifetimeMS)
    return (issuedMS - toleranceMS)...(endMS + toleranceMS)
  }

  /// The time, if the session's token was valid then.
  private func confirmed(
    _ timeMS: Int64?, _ validity: ClosedRange<Int64>, _ session: OpenSession
  ) throws(Failure) -> Int64? {
    guard let timeMS else { return nil }
    if validity.contains(timeMS) { return timeMS }
    // Where no server told the end of the token, it was computed by a clock that may be wrong.
    guard let end = try TokenReply.end(of: session.accessToken) else { return nil }
    let own = ServiceTime.validity(endMS: end * 1000, session.lifetimeMS)
    return own.contains(timeMS) ? timeMS : nil
  }

  /// `timeMS`: nil: the answer does not tell it.
  private func learn(
    _ timeMS: Int64?, within validity: ClosedRange<Int64>, _ now: Instant
  ) throws(Failure) {
    let known = try core.meta.int(.clockOffset)
    let estimateMS = now.wallMS + (known ?? 0)
    let best = timeMS ?? min(max(estimateMS, validity.lowerBound), validity.upperBound)
    if known == nil || abs(best - estimateMS) > 2000 {
      try core.meta.set(.clockOffset, .int(best - now.wallMS))
    }
  }
}
