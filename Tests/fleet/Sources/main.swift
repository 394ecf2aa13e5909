/// Runs every scenario and writes `summary.csv`, `outage.csv` and `address.csv` into the given
/// folder. The results depend on the arguments alone.

import Glibc

guard CommandLine.arguments.count == 11, let deviceCount = Int(CommandLine.arguments[2]),
  let cores = Int(CommandLine.arguments[3]), let fewerCores = Int(CommandLine.arguments[4]),
  deviceCount >= 10, fewerCores > 0, cores > fewerCores,
  let costs = Costs(Array(CommandLine.arguments[5...]))
else {
  print(
    "usage: fleet FOLDER DEVICES CORES FEWER_CORES REFRESH MEMBERSHIP UPLOAD ITEM CONTACTS SUMMARY")
  exit(2)
}
let folder = CommandLine.arguments[1]

private let hourMS: Int64 = 3_600_000
private let downMS = 300_000..<(300_000 + hourMS)
private let endMS = downMS.upperBound + 5_400_000
/// The work that the server does in a second; the part that ordinary load does not use is free.
private let capacity = cores * 1_000_000
private let stepS = 10

private func outage(
  _ kind: Server.Outage, free: Int, pace: Pace = .library, devices: Int
) -> Fleet {
  var fleet = Fleet(
    seed: 1, pace: pace,
    server: Server(
      devices: devices, outage: kind, downMS: downMS, capacity: free, costs: costs,
      losesOneIn: 200),
    endMS: endMS)
  fleet.register(visits: 4, items: 5, within: downMS)
  fleet.run()
  return fleet
}

private func address(_ pace: Pace) -> Fleet {
  var fleet = Fleet(
    seed: 1, pace: pace,
    server: Server(
      devices: 300, outage: .silent, downMS: 0..<0, capacity: capacity, costs: costs,
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
  let peak = (after.map(\.work).max() ?? 0) * scale
  let during = fleet.seconds[..<start].map(\.work).max() ?? 0
  let left = fleet.devices.reduce(0) { $0 + $1.queued }
  let out = fleet.devices.reduce(0) { $0 + ($1.isSignedOut ? 1 : 0) }
  let stale = fleet.devices.reduce(0) { $0 + ($1.refreshes == 0 ? 1 : 0) }
  return [
    name, String(fleet.devices.count * scale), String(free * scale), String(during * scale),
    String(peak), String((after.map(\.requests).max() ?? 0) * scale),
    String(after.reduce(0) { $0 + $1.requests } * scale),
    String(after.reduce(0) { $0 + $1.refused } * scale),
    String(doneS(fleet, after: start) { $0.drained + $0.renewed }), String(left), String(out),
    String(stale),
  ].joined(separator: ",") + "\n"
}

var quiet = Fleet(
  seed: 1, pace: .library,
  server: Server(
    devices: deviceCount, outage: .silent, downMS: 0..<0, capacity: .max, costs: costs),
  endMS: downMS.upperBound)
quiet.register(visits: 4, items: 5, within: downMS)
quiet.run()
let ordinary = quiet.seconds[300...].map(\.work).max() ?? 0
let free = max(0, capacity - ordinary)

let silent = outage(.silent, free: free, devices: deviceCount)
let unavailable = outage(.unavailable, free: free, devices: deviceCount)
let announced = outage(.announced, free: free, devices: deviceCount)
/// The same on fewer cores.
let fewerFree = max(0, fewerCores * 1_000_000 - ordinary)
let fewer = outage(.unavailable, free: fewerFree, devices: deviceCount)
// A tenth of the fleet on a tenth of the backend: the whole fleet would send 70 million requests.
let fixed = outage(
  .unavailable, free: free / 10, pace: .fixed(ms: 5_000), devices: deviceCount / 10)
let shop = address(.library)
let shopFixed = address(.fixed(ms: 5_000))

let end = Int(downMS.upperBound / 1_000)
write(
  "scenario,devices,free,before_peak,after_peak,after_peak_requests,after_requests,"
    + "after_refused,done_s,left,signed_out,never_renewed\n"
    + row("ordinary", quiet, scale: 1, start: 300, free: capacity)
    + row("silent", silent, scale: 1, start: end, free: free)
    + row("unavailable", unavailable, scale: 1, start: end, free: free)
    + row("announced", announced, scale: 1, start: end, free: free)
    + row("fewer", fewer, scale: 1, start: end, free: fewerFree)
    + row("fixed", fixed, scale: 10, start: end, free: free / 10)
    + row("address", shop, scale: 1, start: 0, free: capacity)
    + row("address_fixed", shopFixed, scale: 1, start: 0, free: capacity),
  "summary.csv", in: folder)

/// Means over ten seconds of a count; `unit` of it are written as 1, with three decimals.
private func rates(
  _ names: [String], _ fleets: [(Fleet, Int)], upTo limit: Int, of count: (Second) -> Int,
  unit: Int
) -> String {
  var text = "second," + names.joined(separator: ",") + "\n"
  for start in stride(from: 0, to: limit, by: stepS) {
    let cells = fleets.map { fleet, scale in
      let sum = fleet.seconds[start..<(start + stepS)].reduce(0) { $0 + count($1) }
      let thousandths = sum * scale * 1_000 / unit / stepS
      let decimals = String(thousandths % 1_000 + 1_000).dropFirst()
      return "\(thousandths / 1_000).\(decimals)"
    }
    text += "\(start)," + cells.joined(separator: ",") + "\n"
  }
  return text
}

/// Cores that the requests keep busy.
write(
  rates(
    ["silent", "unavailable", "announced", "fixed"],
    [(silent, 1), (unavailable, 1), (announced, 1), (fixed, 10)], upTo: end + 1_500,
    of: \.work, unit: 1_000_000),
  "outage.csv", in: folder)
/// Requests a second.
write(
  rates(
    ["library", "fixed"], [(shop, 1), (shopFixed, 1)], upTo: 1_800, of: \.requests, unit: 1),
  "address.csv", in: folder)
