import Policy

/// Counts of the events in one second.
struct Second {
  var requests = 0
  /// What the requests take of the server, also those that it refuses, in microseconds of a core.
  var work = 0
  var refused = 0
  var drained = 0
  var renewed = 0
}

/// A discrete-event simulation of many devices and one server, determined by its seed.
struct Fleet {
  private enum Event {
    case wake
    case register
    case answer(Purpose, Outcome, token: Int, floorMS: Int64)
  }

  /// Events are kept in slots of this length.
  private static let slotMS: Int64 = 100

  let pace: Pace
  private(set) var server: Server
  private(set) var devices: [Device] = []
  private(set) var seconds: [Second]
  private var slots: [[(device: Int32, event: Event)]]
  private var random: Generator
  private var itemsPerVisit = 0

  init(seed: UInt64, pace: Pace, server: Server, endMS: Int64) {
    self.pace = pace
    self.server = server
    random = Generator(seed: seed)
    seconds = Array(repeating: Second(), count: Int(endMS / 1_000))
    slots = Array(repeating: [], count: Int(endMS / Fleet.slotMS))
    devices.reserveCapacity(server.chains.count)
    for _ in server.chains.indices {
      devices.append(
        Device(tokenEndsMS: 90_000 + random.below(3_510_000), lastPullMS: -random.below(900_000)))
    }
  }

  /// Every device registers `items` items `visits` times, at random moments within `range`.
  mutating func register(visits: Int, items: Int, within range: Range<Int64>) {
    itemsPerVisit = items
    for device in devices.indices {
      for _ in 0..<visits {
        let at = range.lowerBound + random.below(range.upperBound - range.lowerBound)
        schedule(.register, of: device, at: at, after: -1)
      }
    }
  }

  /// All devices start within `range`, with expired access tokens.
  mutating func start(within range: Range<Int64>) {
    for device in devices.indices {
      let at = range.lowerBound + random.below(range.upperBound - range.lowerBound)
      devices[device] = Device(tokenEndsMS: 0, lastPullMS: at)
      devices[device].arrive()
      devices[device].wakeMS = at / Fleet.slotMS
      schedule(.wake, of: device, at: at, after: -1)
    }
  }

  mutating func run() {
    for slot in slots.indices {
      let nowMS = Int64(slot) * Fleet.slotMS
      let events = slots[slot]
      slots[slot] = []
      for (device, event) in events { handle(event, of: Int(device), at: nowMS) }
    }
  }

  /// An event happens in a later slot than its cause.
  private mutating func schedule(_ event: Event, of device: Int, at ms: Int64, after slot: Int) {
    let at = max(Int(ms / Fleet.slotMS), slot + 1)
    if at < slots.count { slots[at].append((Int32(device), event)) }
  }

  private mutating func handle(_ event: Event, of device: Int, at nowMS: Int64) {
    let slot = Int(nowMS / Fleet.slotMS)
    switch event {
    case .wake: guard devices[device].wakeMS == Int64(slot) else { return }
    case .register: devices[device].register(itemsPerVisit)
    case .answer(let purpose, let outcome, let token, let floorMS):
      let before = devices[device].queued
      let endsBefore = devices[device].tokenEndsMS
      devices[device].complete(
        purpose, outcome, newToken: token, floorMS: floorMS, at: nowMS, pace, &random)
      seconds[Int(nowMS / 1_000)].drained += before - devices[device].queued
      if devices[device].refreshes == 1, devices[device].tokenEndsMS != endsBefore {
        seconds[Int(nowMS / 1_000)].renewed += 1
      }
    }
    while let purpose = devices[device].nextRequest(at: nowMS) {
      let work = server.costs.of(purpose, items: devices[device].uploading)
      let reply = server.receive(
        purpose, of: work, from: device, holding: devices[device].token, at: nowMS, &random)
      seconds[Int(nowMS / 1_000)].requests += 1
      seconds[Int(nowMS / 1_000)].work += work
      if reply.outcome == .unavailable || reply.outcome == .limited {
        seconds[Int(nowMS / 1_000)].refused += 1
      }
      schedule(
        .answer(purpose, reply.outcome, token: reply.token, floorMS: reply.floorMS), of: device,
        at: nowMS + reply.afterMS, after: slot)
    }
    guard let wake = devices[device].nextWakeMS(after: nowMS) else { return }
    let at = max((wake + Fleet.slotMS - 1) / Fleet.slotMS, Int64(slot) + 1)
    guard at != devices[device].wakeMS else { return }
    devices[device].wakeMS = at
    schedule(.wake, of: device, at: at * Fleet.slotMS, after: slot)
  }
}
