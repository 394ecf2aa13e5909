import Policy

/// One axis of the product of all situations: the names of its values, and a bit for each in a mask.
public struct Axis: Sendable {
  public let name: String
  public let values: [String]
  let shift: Int
  let set: @Sendable (inout Situation, Int) -> Void
  let get: @Sendable (Situation) -> Int

  func bit(_ value: Int) -> UInt64 { 1 << UInt64(shift + value) }
  public var bits: UInt64 { values.indices.reduce(0) { $0 | bit($1) } }

  /// All axes, in the order of the cells' numbers and of the document's columns.
  public static let all: [Axis] = {
    var shift = 0
    func axis<Value: CaseIterable & Equatable & Sendable>(
      _ name: String, _ path: WritableKeyPath<Situation, Value> & Sendable
    ) -> Axis where Value.AllCases == [Value] {
      let cases = Value.allCases
      defer { shift += cases.count }
      return Axis(
        name: name, values: cases.map { "\($0)" }, shift: shift,
        set: { $0[keyPath: path] = cases[$1] },
        get: { situation in cases.firstIndex(of: situation[keyPath: path]) ?? -1 })
    }
    func flag(_ name: String, _ path: WritableKeyPath<Situation, Bool> & Sendable) -> Axis {
      defer { shift += 2 }
      return Axis(
        name: name, values: ["no", "yes"], shift: shift,
        set: { $0[keyPath: path] = $1 == 1 }, get: { $0[keyPath: path] ? 1 : 0 })
    }
    return [
      axis("keys", \.keys), axis("record", \.record), axis("window", \.window),
      axis("occasion", \.occasion), axis("outcome", \.outcome),
      axis("presence", \.presence), flag("locked", \.lockedByUser), axis("absence", \.absence),
      axis("clock", \.clock), axis("token", \.token), axis("membership", \.membership),
      axis("freshness", \.freshness), axis("network", \.network),
    ]
  }()

  static func named(_ name: some StringProtocol) -> Axis? { all.first { $0.name == name } }
}

extension Situation {
  /// The start of a scenario: signed in, online, nothing unusual.
  public static let plain = Situation(
    occasion: .resume, keys: .ready, record: .open, clock: .steady, token: .valid, window: .inside,
    absence: .brief, network: .online, presence: .available, outcome: .none, membership: .active,
    freshness: .cached, lockedByUser: false)

  /// `plain` with a change.
  public static func with(_ change: (inout Situation) -> Void) -> Situation {
    var situation = plain
    change(&situation)
    return situation
  }
}
