import Policy

/// The product of all axes of `Situation`: each cell with the decision of `SessionPolicy`.
///
/// The number of a cell is a mixed-radix number. The last three axes (membership, freshness,
/// network) change fastest, so that the cells of a block of `Product.places` differ only in them.
struct Product {
  static let shared = Product()
  /// The number of combinations of the three fastest axes.
  static let places =
    Situation.Membership.allCases.count * Situation.Freshness.allCases.count
    * Situation.Network.allCases.count

  /// The packed decisions, by the number of the cell.
  let codes: [UInt16]

  private init() {
    var codes: [UInt16] = []
    codes.reserveCapacity(Axis.all.reduce(1) { $0 * $1.values.count })
    Product.forEachBlock { situation, _ in
      for membership in Situation.Membership.allCases {
        situation.membership = membership
        for freshness in Situation.Freshness.allCases {
          situation.freshness = freshness
          for network in Situation.Network.allCases {
            situation.network = network
            codes.append(SessionPolicy.decide(situation).code)
          }
        }
      }
    }
    self.codes = codes
  }

  /// Visits every combination of the eleven slower axes, in the order of the cells' numbers. `cell`
  /// is the one-hot mask of the combination (see `Axis`).
  static func forEachBlock(_ body: (_ situation: inout Situation, _ cell: UInt64) -> Void) {
    let axes = Axis.slow
    var digits = [Int](repeating: 0, count: axes.count)
    var situation = Situation.plain
    var cell: UInt64 = 0
    for axis in axes {
      axis.set(&situation, 0)
      cell |= axis.bit(0)
    }
    while true {
      body(&situation, cell)
      // Increment the number: set only the axes whose digits change.
      var position = axes.count - 1
      while position >= 0 {
        let axis = axes[position]
        cell &= ~axis.bit(digits[position])
        digits[position] = (digits[position] + 1) % axis.values.count
        axis.set(&situation, digits[position])
        cell |= axis.bit(digits[position])
        if digits[position] != 0 { break }
        position -= 1
      }
      if position < 0 { return }
    }
  }

  /// The number of the cell of `situation`.
  static func number(of situation: Situation) -> Int {
    Axis.all.reduce(0) { $0 * $1.values.count + $1.get(situation) }
  }

  /// The cell with the number `number`.
  static func situation(_ number: Int) -> Situation {
    var situation = Situation.plain
    var rest = number
    for axis in Axis.all.reversed() {
      axis.set(&situation, rest % axis.values.count)
      rest /= axis.values.count
    }
    return situation
  }
}

/// One axis of the product: the names of its values, and a bit for each in a one-hot mask.
struct Axis: Sendable {
  let name: String
  let values: [String]
  let shift: Int
  let set: @Sendable (inout Situation, Int) -> Void
  let get: @Sendable (Situation) -> Int

  func bit(_ value: Int) -> UInt64 { 1 << UInt64(shift + value) }
  var bits: UInt64 { values.indices.reduce(0) { $0 | bit($1) } }

  /// All axes, in the order of the cells' numbers and of the document's columns.
  static let all: [Axis] = {
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
  static let slow = Array(all.prefix(all.count - 3))
  static let fast = Array(all.suffix(3))
}

extension Situation {
  /// The start of a scenario: signed in, online, nothing unusual.
  static let plain = Situation(
    occasion: .resume, keys: .ready, record: .open, clock: .steady, token: .valid, window: .inside,
    absence: .brief, network: .online, presence: .available, outcome: .none, membership: .active,
    freshness: .cached, lockedByUser: false)

  /// `plain` with a change.
  static func with(_ change: (inout Situation) -> Void) -> Situation {
    var situation = plain
    change(&situation)
    return situation
  }
}

extension Decision {
  /// The decision in sixteen bits: screen and reason, then the seven flags.
  var code: UInt16 {
    // Reads the case number from memory: `allCases.firstIndex` would take most of the time of the
    // whole sweep.
    let screen = UInt16(unsafeBitCast(self.screen, to: UInt8.self))
    let reason = UInt16(unsafeBitCast(self.reason, to: UInt8.self))
    var flags: UInt16 = 0
    if lock { flags |= 1 }
    if forget { flags |= 2 }
    if quarantine { flags |= 4 }
    if chooseOnly { flags |= 8 }
    if stale { flags |= 16 }
    if offline { flags |= 32 }
    if canUnlock { flags |= 64 }
    return (screen * UInt16(Reason.allCases.count) + reason) << 8 | flags
  }

  init(code: UInt16) {
    let head = Int(code >> 8)
    self.init(
      Screen.allCases[head / Reason.allCases.count], Reason.allCases[head % Reason.allCases.count],
      lock: code & 1 != 0, forget: code & 2 != 0, quarantine: code & 4 != 0,
      chooseOnly: code & 8 != 0,
      canUnlock: code & 64 != 0, stale: code & 16 != 0, offline: code & 32 != 0)
  }
}
