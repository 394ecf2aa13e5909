import Base
import Store
import Supabase
import TestSupport
import Testing

@testable import Engine

@Suite struct UnsentFiguresTests {
  /// Add items without the checks of a call; every third one lies before the period.
  private func fill(_ rig: Rig, _ numbers: Range<Int>) throws {
    let session = try rig.session
    let keys = try rig.core.keys()
    try rig.core.database.transaction { () throws(Failure) in
      for number in numbers {
        let item = QueueItem(
          id: id(number), kind: "activity", org: number % 5 == 0 ? orgB : orgA,
          payload: ["type": "visit", "minutes": .int(Int64(number % 90))], dependsOn: [],
          occurredAtMS: number % 3 == 0 ? 500 : 2000)
        let row = QueueRow()
        row.item = keys.itemTag(item.id, session.owner)
        row.owner = session.owner
        row.org = keys.orgTag(item.org)
        row.batchKey = [UInt8](repeating: 8, count: 16)
        let (body, size) = try item.sealed(row.item, row.owner, session.queueKey)
        (row.body, row.size) = (body, size)
        _ = try rig.core.queue.insert(row)
      }
    }
  }

  private func sum(_ rig: Rig, since: Int64? = 1000, org: UUID? = orgA) throws -> [Int64] {
    let unsent = try UnsentFigures(rig.core, rig.session, in: org, since: since).sum()
    return [unsent.figures.activities, unsent.figures.minutes, unsent.items]
  }

  /// The same without any sum that was kept.
  private func scan(_ rig: Rig, since: Int64? = 1000, org: UUID? = orgA) throws -> [Int64] {
    let session = try rig.session
    var result: [Int64] = [0, 0, 0]
    try rig.core.queue.eachRow(of: session.owner, state: nil) { (row) throws(Failure) in
      guard row.state != .parked, let item = try row.read(session.queueKey),
        org == nil || item.org == org
      else { return }
      result[2] += 1
      if !item.mayBeCounted, since == nil || item.occurredAtMS ?? 0 >= since ?? 0 {
        result[0] += 1
        result[1] += item.payload.int("minutes") ?? 0
      }
    }
    return result
  }

  private func blocks(_ rig: Rig) throws -> Int64 {
    try rig.core.database.first("SELECT count(*) FROM queue_block") {
      (row) throws(Failure) in row.int(0)
    } ?? 0
  }

  @Test func aShortQueueKeepsNoSums() throws {
    let rig = try Rig.atHome()
    try fill(rig, 0..<64)
    try expect(sum(rig), equals: scan(rig))
    try expect(blocks(rig), equals: 0)
  }

  @Test func theSumsOfALongQueueAreThoseOfAScan() throws {
    let rig = try Rig.atHome()
    try fill(rig, 0..<4300)
    try expect(sum(rig), equals: scan(rig))
    // 67 blocks of 64, one of 4096, and the root.
    try expect(blocks(rig), equals: 69)
    for (since, org) in [(nil, orgA), (1000, nil), (nil, orgB), (1000, orgA)] as [(Int64?, UUID?)] {
      try expect(sum(rig, since: since, org: org), equals: scan(rig, since: since, org: org))
    }
  }

  @Test(arguments: 1...sized(2, full: 6))
  func afterAnyChangesTheSumsAreThoseOfAScan(seed: Int) throws {
    let rig = try Rig.atHome()
    try fill(rig, 0..<300)
    let keys = try rig.core.keys()
    let session = try rig.session
    var (state, added) = (UInt64(seed), 300)
    func below(_ limit: Int) -> Int {
      state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
      return Int((state >> 33) % UInt64(limit))
    }
    for _ in 0..<60 {
      let number = below(added)
      let row = try rig.core.queue.find(keys.itemTag(id(number), session.owner))
      switch below(7) {
      case 0:
        try fill(rig, added..<added + 30)
        added += 30
      case 1: if let row { try rig.core.queue.remove(row.item) }
      case 2: if let row { try rig.core.queue.transition(row.sequence, .parked) }
      case 3: _ = try rig.core.queue.retry(below(2) == 0 ? nil : row?.item, of: session.owner)
      case 4:
        if let row, let item = try row.read(session.queueKey) {
          try rig.core.queue.noteCounted(item, row, session.queueKey)
        }
      case 5:
        if let row, let item = try row.read(session.queueKey) {
          item.payload = ["type": "visit", "minutes": 7]
          (row.body, row.size) = try item.sealed(row.item, row.owner, session.queueKey)
          row.beginAnew()
          try rig.core.queue.write(row)
        }
      default: if let row { try rig.core.queue.transition(row.sequence, .waiting(.kind)) }
      }
      try expect(sum(rig), equals: scan(rig))
    }
    try expect(blocks(rig) > 0)
  }

  /// Another handle's change forgets what this one has kept.
  @Test func theSumsBelongToTheFile() throws {
    let rig = try Rig.atHome()
    try fill(rig, 0..<200)
    _ = try sum(rig)
    let other = try Rig(folder: rig.folder, keyStore: rig.keyStore, at: rig.now)
    try other.core.queue.remove(rig.core.keys().itemTag(id(7), rig.session.owner))
    try expect(sum(rig), equals: scan(rig))
  }

  @Test func aSumThatSomebodyHasChangedIsMadeAnew() throws {
    let rig = try Rig.atHome()
    try fill(rig, 0..<200)
    let expected = try sum(rig)
    try rig.core.database.execute("UPDATE queue_block SET sealed = x'00'")
    try expect(sum(rig), equals: expected)
    try rig.core.database.execute(
      "UPDATE queue_block SET sealed = (SELECT sealed FROM queue_block WHERE level = 0 LIMIT 1)")
    try expect(sum(rig), equals: expected)
  }

  @Test func onAFullDiskTheQueueIsRead() throws {
    let rig = try Rig.atHome()
    try fill(rig, 0..<200)
    rig.core.database.isTight = true
    try expect(sum(rig), equals: scan(rig))
    try expect(blocks(rig), equals: 0)
  }
}
