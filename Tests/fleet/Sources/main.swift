/// Runs every scenario and writes `summary.csv`, `outage.csv` and `address.csv` into the given
/// folder; the results are the same in every run.

import Glibc

private let hourMS: Int64 = 3_600_000
private let downMS = 300_000..<(300_000 + hourMS)
private let endMS = downMS.upperBound + 5_400_000
private let deviceCount = 100_000
/// The backend's capacity; the part that ordinary load does not use is free.
private let capacity = 3_000
private let stepS = 10

private func outage(
  _ kind: Server.Outage, free: Int, pace: Pace = .library, devices: Int = deviceCount
) -> Fleet {
  var fleet = Fleet(
    seed: 1, pace: pace,
    server: Server(
      devices: devices, outage: kind, downMS: downMS, capacity: free, losesOneIn: 200),
    endMS: endMS)
  fleet.register(visits: 4, items: 5, within: downMS)
  fleet.run()
  return fleet
}

private func address(_ pace: Pace) -> Fleet {
  var fleet = Fleet(
    seed: 1, pace: pace,
    server: Server(
      devices: 300, outage: .silent, downMS: 0..<0, capacity: capacity,
      bucket: Server.Bucket(burst: 30, periodMS: 2_000)),
    endMS: hourMS)
  fleet.start(within: 0..<60_000)
  fleet.run()
  return fleet
}

/// The second after `start` in which the last item was stored or the last token issued.
private func doneS(_ fleet: Fleet, after start: Int, by count: (Second) -> Int) -> Int {
  (fleet.seconds.lastIndex { count($0) > 0 } ?? start) - start
}

private func write(_ text: String, _ name: String, in folder: String) {
  let path = folder + "/" + name
  guard let file = fopen(path, "w") else {
    perror(path)
    exit(1)
  }
  fputs(text, file)
  fclose(file)
}

private func row(_ name: String, _ fleet: Fleet, scale: Int, start: Int, free: Int) -> String {
  let after = fleet.seconds[start...]
  let peak = (after.map(\.requests).max() ?? 0) * scale
  let during = fleet.seconds[..<start].map(\.requests).max() ?? 0
  let left = fleet.devices.reduce(0) { $0 + $1.queued }
  let out = fleet.devices.reduce(0) { $0 + ($1.isSignedOut ? 1 : 0) }
  let stale = fleet.devices.reduce(0) { $0 + ($1.refreshes == 0 ? 1 : 0) }
  return [
    name, String(fleet.devices.count * scale), String(free * scale), String(during * scale),
    String(peak), String(after.reduce(0) { $0 + $1.requests } * scale),
    String(after.reduce(0) { $0 + $1.refused } * scale),
    String(doneS(fleet, after: start) { $0.drained + $0.renewed }), String(left), String(out),
    String(stale),
  ].joined(separator: ",") + "\n"
}

guard CommandLine.arguments.count == 2 else {
  print("usage: fleet FOLDER")
  exit(2)
}
let folder = CommandLine.arguments[1]

var quiet = Fleet(
  seed: 1, pace: .library,
  server: Server(devices: deviceCount, outage: .silent, downMS: 0..<0, capacity: .max),
  endMS: downMS.upperBound)
quiet.register(visits: 4, items: 5, within: downMS)
quiet.run()
let ordinary = quiet.seconds[300...].map(\.requests).max() ?? 0
let free = capacity - ordinary

let silent = outage(.silent, free: free)
let unavailable = outage(.unavailable, free: free)
let announced = outage(.announced, free: free)
// A tenth of the fleet on a tenth of the backend: the whole fleet would send 70 million requests.
let fixed = outage(
  .unavailable, free: free / 10, pace: .fixed(ms: 5_000), devices: deviceCount / 10)
let shop = address(.library)
let shopFixed = address(.fixed(ms: 5_000))

let end = Int(downMS.upperBound / 1_000)
write(
  "scenario,devices,free,before_peak,after_peak,after_requests,after_refused,done_s,left,"
    + "signed_out,never_renewed\n"
    + row("ordinary", quiet, scale: 1, start: 300, free: capacity)
    + row("silent", silent, scale: 1, start: end, free: free)
    + row("unavailable", unavailable, scale: 1, start: end, free: free)
    + row("announced", announced, scale: 1, start: end, free: free)
    + row("fixed", fixed, scale: 10, start: end, free: free / 10)
    + row("address", shop, scale: 1, start: 0, free: capacity)
    + row("address_fixed", shopFixed, scale: 1, start: 0, free: capacity),
  "summary.csv", in: folder)

/// Requests per second, as means over ten seconds.
private func rates(_ names: [String], _ fleets: [(Fleet, Int)], upTo limit: Int) -> String {
  var text = "second," + names.joined(separator: ",") + "\n"
  for start in stride(from: 0, to: limit, by: stepS) {
    let cells = fleets.map { fleet, scale in
      let sum = fleet.seconds[start..<(start + stepS)].reduce(0) { $0 + $1.requests }
      let tenths = sum * scale * 10 / stepS
      return "\(tenths / 10).\(tenths % 10)"
    }
    text += "\(start)," + cells.joined(separator: ",") + "\n"
  }
  return text
}

write(
  rates(
    ["silent", "unavailable", "announced", "fixed"],
    [(silent, 1), (unavailable, 1), (announced, 1), (fixed, 10)], upTo: end + 1_500),
  "outage.csv", in: folder)
write(
  rates(["library", "fixed"], [(shop, 1), (shopFixed, 1)], upTo: 1_800), "address.csv", in: folder)
