import Base
import Policy
import Store

private enum LogoutScope: String, CaseIterable { case local, global }
/// What becomes of items that were not sent.
private enum UnsentChoice: String, CaseIterable { case keep, discard }

extension AppLifecycle {
  /// Log out. One transaction clears the session, the pending sign-ins and, on request, the queue,
  /// and stores an order to revoke the session at the server.
  func logOut(_ request: JSON) throws(Failure) -> JSON {
    let fields = try Fields(request, known: ["scope", "unsent", "confirm_unsent"])
    let scope = try fields.choice(ifPresent: "scope", LogoutScope.self) ?? .local
    let choice = try fields.choice(ifPresent: "unsent", UnsentChoice.self)
    let discard = choice == .discard
    let confirmed = try fields.integer(ifPresent: "confirm_unsent", in: 0...Fields.safe.upperBound)
    _ = try decider.assess(.navigate)
    // On a full disk one transaction has no room for a long queue: what is discarded goes before it.
    let discarded = discard && core.database.isTight ? try discardItems(confirmed) : 0
    var unsent = discarded
    // Read the row inside the transaction, because another process may just have changed it: what
    // is cleared must be what is revoked and confirmed.
    try sessions.end(.loggedOut) { () throws(Failure) in
      let row = try sessions.row()
      if let owner = row.owner {
        unsent =
          try discarded
          + (discard ? core.queue.countRows(of: owner) : core.queue.counts(of: owner).total)
        if discard {
          try AppLifecycle.require(confirmed, unsent)
          try core.queue.removeAll(of: owner)
        } else if choice == nil, unsent > 0 {
          try AppLifecycle.require(nil, unsent)
        }
      }
      if try sessions.reload(row) == .open, let session = sessions.session {
        try revocations.add(session, expiresMS: row.expiresMS, global: scope == .global)
      }
      try core.signIns.removeAll()
    }
    pendingSignIn.end()
    try uploader.abandonReadBacks()
    try pauses.clearAuth()
    try decider.show(Decision(.signIn, .signedOut))
    return ["unsent": .int(unsent)]
  }

  /// Delete the unsent items, a few in each transaction; returns how many there were.
  private func discardItems(_ confirmed: Int64?) throws(Failure) -> Int64 {
    guard let owner = try sessions.row().owner else { return 0 }
    let unsent = try core.queue.countRows(of: owner)
    try AppLifecycle.require(confirmed, unsent)
    try core.queue.removeAllInSlices(of: owner)
    return unsent
  }

  /// The host must have said what becomes of the unsent items, and confirmed their number to delete them.
  private static func require(_ confirmed: Int64?, _ unsent: Int64) throws(Failure) {
    guard confirmed ?? 0 == unsent else {
      throw Failure(
        .sessionConfirmUnsent,
        "items are unsent: \"unsent\":\"keep\", or \"discard\" with their number as confirm_unsent",
        field: "/confirm_unsent", detail: ["unsent": .int(unsent)])
    }
  }
}
