import Base
import Policy
import Store
import Supabase
import TestSupport
import Testing

@testable import Engine

/// One row, its user with one device, and others who change it, while requests and answers are lost or late.
///
/// Every value is set once, so the world knows whose it is and when it was set: the user's are counted from 1, those of
/// others from 1,000,000.
private final class World {
  private struct Row {
    var values: [String: Int64]
    var version = 1
    var isDeleted = false
  }

  private static let columns = ["type", "minutes"]
  private static let others: Int64 = 1_000_000

  private let rig: Rig
  private let isByFunction: Bool
  private var random: Seeded
  private var row: Row?
  private var last: Int64 = 0
  private var lastOfOthers = World.others
  /// What the user has seen of others, and what of theirs has been stored.
  private var seen: Set<Int64> = []
  private var landed: Set<Int64> = []
  /// The user's last values.
  private var wanted: [String: Int64] = [:]
  private var wantsDeletion = false
  /// Older values of theirs that they have seen again and kept, after they took newer ones back.
  private var restored: Set<Int64> = []
  private var isAllowed = true
  /// Corrections that reach the server after their answer was given up.
  private var late: [Correction] = []
  private(set) var failures: [String] = []
  private(set) var story: [String] = []

  init(_ seed: UInt64) throws {
    random = Seeded(seed)
    isByFunction = seed % 2 == 0
    rig = try Rig.atHome(backend: isByFunction ? byFunction : corrected())
    let values = Dictionary(uniqueKeysWithValues: Self.columns.map { ($0, next()) })
    wanted = values
    _ = try rig.intake.add(["kind": "activity", "id": .uuid(id(1)), "payload": json(values)])
  }

  private func next() -> Int64 {
    last += 1
    return last
  }

  private func json(_ values: [String: Int64]) -> JSON {
    let json: JSON = [:]
    for column in Self.columns {
      if let value = values[column] { json.set(member: column, .int(value)) }
    }
    return json
  }

  private func fail(_ what: String) { failures.append(what) }
  private func chance(_ limit: Int) -> Bool { random.below(limit) == 0 }

  // MARK: The user

  /// The queued item as `item_list` shows it; nil: it is not queued.
  private func view() throws -> JSON? {
    guard let item = try rig.item(id(1)) else { return nil }
    let row = try kept() ?? item.stored?.row ?? [:]
    let view = item.stored == nil ? item.payload : row.laidOver(by: item.payload)
    see(view)
    return view
  }

  /// The row as the user's list shows it, which may be an old one; nil: it does not.
  private func kept() throws -> JSON? {
    let kind = try #require(rig.core.configuration.backend.kind("activity"))
    guard let found = try rig.ownRows.find(id(1), kind, orgA, try rig.session) else { return nil }
    let values: JSON = [:]
    for column in Self.columns { values.set(member: column, found.values[member: column] ?? .null) }
    see(values)
    return values
  }

  private func see(_ values: JSON) {
    for (_, value) in values.members { if let value = value.int { seen.insert(value) } }
  }

  /// A form with all values, of which the user has changed one.
  private func changed(_ shown: JSON, _ column: String, _ value: Int64) -> JSON {
    for (other, value) in shown.members where wanted[other] == nil {
      restored.insert(value.int ?? 0)
    }
    let values = shown.shallowCopy
    values.set(member: column, .int(value))
    return values
  }

  private func edit() throws {
    let column = Self.columns[random.below(2)]
    let value = next()
    if let view = try view() {
      let values = changed(view, column, value)
      do throws(Failure) {
        _ = try rig.intake.edit(["id": .uuid(id(1)), "payload": values])
      } catch {
        if error.code != .queueInFlight { fail("an edit is refused: \(error.code.rawValue)") }
        return
      }
    } else if chance(2), let kept = try kept() {
      _ = try rig.intake.edit(["id": .uuid(id(1)), "payload": changed(kept, column, value)])
    } else {
      // The user edits the stored row, as the last pull has brought it.
      guard let row, !row.isDeleted else { return }
      see(json(row.values))
      try rig.correct(1, json([column: value]), of: json(row.values), version: "v\(row.version)")
    }
    story.append("edit \(column) \(value)")
    wanted[column] = value
    wantsDeletion = false
  }

  private func takeBack() throws {
    if try view() != nil {
      let isParked = try rig.row(id(1))?.state == .parked
      _ = try rig.intake.cancel(["id": .uuid(id(1))])
      // What is parked is given up.
      wantsDeletion = !isParked
    } else if chance(2), try kept() != nil {
      _ = try rig.intake.cancel(["id": .uuid(id(1))])
      wantsDeletion = true
    } else {
      guard let row, !row.isDeleted else { return }
      see(json(row.values))
      try rig.correct(1, nil, of: json(row.values), version: "v\(row.version)")
      wantsDeletion = true
    }
    // It takes the changes along that are not stored.
    wanted = [:]
    story.append("take back")
  }

  /// The user has read why the item is parked.
  private func choose() throws {
    guard let row = try rig.row(id(1)), row.state == .parked else { return }
    let reason = try #require(try ParkReason.read(row, try rig.session.queueKey))
    story.append("choose: \(reason.string("code") ?? "")")
    if let conflict = reason["conflict"], !conflict.isNull, !chance(3) {
      see(conflict["row"] ?? [:])
      _ = try rig.intake.retry(["id": .uuid(id(1)), "overwrite": true])
    } else if chance(2) {
      _ = try rig.intake.retry(["id": .uuid(id(1))])
    } else {
      try chance(2) ? edit() : takeBack()
    }
  }

  // MARK: Others

  private func changeElsewhere() {
    guard row?.isDeleted == false else { return }
    let column = Self.columns[random.below(2)]
    lastOfOthers += 1
    row?.values[column] = lastOfOthers
    row?.version += 1
    if chance(12) { row?.isDeleted = true }
    story.append("others set \(column) \(lastOfOthers)")
  }

  // MARK: The server

  private var version: String { "v\(row?.version ?? 0)" }

  /// Insert a row that is not there.
  private func insert(_ payload: JSON) -> Bool {
    guard row == nil else { return false }
    var values: [String: Int64] = [:]
    for (column, value) in payload.members {
      values[column] = value.int
      landed.insert(value.int ?? 0)
    }
    row = Row(values: values)
    story.append("inserted \(values)")
    return true
  }

  /// Make a correction, if the row has its version.
  private func apply(_ correction: Correction) -> Bool {
    guard isAllowed, var changed = row, correction.version == version else { return false }
    // JSON has a nil of its own.
    let isDeletion = correction.columns.map { _ in false } ?? true
    for column in Self.columns {
      guard let old = changed.values[column] else { continue }
      let new = correction.columns.map { $0[member: column]?.int ?? old }
      if new != old, old >= Self.others, !seen.contains(old) {
        fail("\(column): \(old) of others is gone unseen")
      }
      if let new, old < Self.others, new < old, !restored.contains(new) {
        fail("\(column): \(new) replaces \(old), which is newer")
      }
      if let new {
        changed.values[column] = new
        landed.insert(new)
      }
    }
    if isDeletion { changed.isDeleted = true }
    changed.version += 1
    row = changed
    story.append("applied \(isDeletion ? "a deletion" : "\(changed.values)"), now \(version)")
    return true
  }

  private var shown: String {
    guard let row else { return "" }
    let values = Self.columns.map { "\"\($0)\":\(row.values[$0] ?? 0)" }.joined(separator: ",")
    return
      #"{"id":"\#(id(1).text)",\#(values),"updated_at":"\#(version)","deleted_at":\#(row.isDeleted ? "\"x\"" : "null")}"#
  }

  private func answer(_ batch: UploadBatch) -> String {
    let name = #"{"id":"\#(id(1).text)","updated_at":"\#(version)""#
    switch batch.request {
    case .control: return "[]"
    case .rows, .ids: return "[\(shown)]"
    case .upload:
      guard let content = batch.items.first?.content else { return "[]" }
      guard let correction = content.correction else {
        let isNew = insert(content.payload)
        return isNew ? #"[{"id":"\#(id(1).text)","updated_at":"\#(version)"}]"# : "[]"
      }
      let isMade = apply(correction)
      if !batch.isByFunction {
        return isMade ? #"[{"id":"\#(id(1).text)","updated_at":"\#(version)"}]"# : "[]"
      }
      if isMade {
        return #"[{"id":"\#(id(1).text)","updated_at":"\#(version)","status":"stored"}]"#
      }
      if row == nil { return #"[\#(name),"status":"gone"}]"# }
      if correction.version == version { return #"[\#(name),"status":"not_allowed"}]"# }
      return #"[\#(name),"status":"changed","row":\#(shown)}]"#
    }
  }

  // MARK: Requests

  private func meanwhile() throws {
    if chance(4) { try edit() }
    if chance(12) { try takeBack() }
    if chance(4) { changeElsewhere() }
  }

  /// Send what is due and answer it. `isCalm`: nothing is lost, and nobody does anything meanwhile.
  private func exchange(isCalm: Bool) throws {
    try rig.core.pauses.clear("upload")
    var batch: UploadBatch
    if let question = rig.uploads.readBacks.first {
      rig.uploads.readBacks.removeFirst()
      batch = question
    } else {
      guard try rig.core.queue.hasPending(of: try rig.session.owner) else { return try wake() }
      try rig.uploader.send(try rig.session, rig.now)
      guard let request = rig.inFlight.requests.last, case .upload(let sent) = request.content
      else { return }
      rig.inFlight.finish(request.id)
      batch = sent
    }
    story.append("\(batch.request) \(batch.operation)")
    if isCalm { return try finish(batch, try response(200, answer(batch))) }
    try meanwhile()
    switch random.below(8) {
    case 0: try finish(batch, try response(0))
    case 1:
      _ = answer(batch)
      try meanwhile()
      try finish(batch, try response(chance(2) ? 0 : 503))
    case 2:
      _ = answer(batch)
      try finish(batch, try response(200, ""))
    case 3:
      if batch.request == .upload, let correction = batch.items.first?.content?.correction {
        late.append(correction)
      }
      try finish(batch, try response(0))
    default:
      let body = answer(batch)
      try meanwhile()
      try finish(batch, try response(200, body))
    }
  }

  private func finish(_ batch: UploadBatch, _ response: HTTPResponse) throws {
    rig.advance(1000)
    try rig.settlement.finish(batch, isCurrent: true, response, rig.now)
    story.append("\(response.status): \(try rig.state(id(1)))")
  }

  /// What the item waits for has come.
  private func wake() throws {
    guard let row = try rig.row(id(1)), row.state != .parked else { return }
    if row.state == .waiting(.organisation) {
      return try rig.list(member(orgA), member(orgB))
    }
    _ = try rig.intake.retry(["id": .uuid(id(1))])
  }

  // MARK: Running

  func run(_ steps: Int) throws {
    for _ in 0..<steps where failures.isEmpty {
      switch random.below(14) {
      case 0: try edit()
      case 1: try chance(4) ? takeBack() : edit()
      case 2: changeElsewhere()
      case 3: if !late.isEmpty { _ = apply(late.removeFirst()) }
      case 4: try choose()
      case 5: if chance(6) { isAllowed.toggle() }
      default: try exchange(isCalm: false)
      }
    }
    for one in late { _ = apply(one) }
    var rest = 100
    while failures.isEmpty, let row = try rig.row(id(1)), row.state != .parked, rest > 0 {
      try exchange(isCalm: true)
      rest -= 1
    }
    if rest == 0 { fail("the item is neither stored nor shown") }
    if try rig.row(id(1)) == nil { check() }
  }

  /// The item has left the queue.
  private func check() {
    if wantsDeletion {
      if row?.isDeleted == false { fail("the deletion is lost") }
      return
    }
    for (column, value) in wanted {
      let present = row?.values[column] ?? 0
      if present == value || landed.contains(value) && present >= Self.others { continue }
      fail("\(column): the user's \(value) is lost, the server has \(present)")
    }
  }
}

@Suite struct CorrectionWorldTests {
  /// The user's last value of a column is on the server, or the item is shown as waiting or parked; no value of
  /// somebody else disappears that the user has not seen.
  @Test(arguments: 1...sized(60, full: 2000))
  func noValueIsLostAndNoneOfOthersIsOverwrittenUnseen(seed: UInt64) throws {
    let world = try World(seed)
    try world.run(60)
    expect(world.failures.isEmpty, "\(world.failures)\n\(world.story.joined(separator: "\n"))")
  }
}
