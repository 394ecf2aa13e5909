import Policy
import TestSupport
import Testing

@Suite("How long an item waits for itself, and how large uploads are")
struct ItemPauseTests {
  private static let hour: Int64 = 3_600_000

  /// How often an item fails alone in this time, and how long it took to its last failure.
  private func fail(
    _ failure: UploadFailure, hours: Int64, othersSince: Bool, othersQueued: Bool = false,
    random: UInt64 = 0, until isOver: (Int64) -> Bool = { _ in false }
  ) -> (times: Int, lastMS: Int64) {
    var (count, now, times) = (Int64(0), Int64(0), 0)
    while now <= hours * Self.hour {
      times += 1
      if isOver(count) { return (times, now) }
      count = ItemPause.count(
        after: count, failure, othersSince: othersSince, othersQueued: othersQueued)
      now += ItemPause.pauseMS(count, failure, othersSince: othersSince, random: random)
    }
    return (times, now)
  }

  @Test(
    "FIX-21: an item of a server's defect costs at most 20 requests in a day, and one a day later")
  func defect() {
    expect(fail(.service, hours: 24, othersSince: true).times <= 20)
    let days = fail(.service, hours: 24 * 11, othersSince: true, random: .max).times
    expect((20...30).contains(days))
    // While nothing shows that it is the item's fault, one an hour
    let alone = fail(.service, hours: 24, othersSince: false).times
    expect((24...40).contains(alone))
    // and while others of its kind wait, too, as often as they
    let beside = fail(.service, hours: 24, othersSince: false, othersQueued: true).times
    expect(beside > 100)
  }

  @Test(
    "An item that is refused on the way is parked after 7 refusals in hours, or 16 in half a day",
    arguments: [UInt64(0), .max])
  func firewall(random: UInt64) {
    for (othersSince, times, hours) in [(true, 7, 3...5), (false, 16, 11...19)] {
      let found = fail(.firewall, hours: 48, othersSince: othersSince, random: random) {
        ItemPause.isLast(after: $0, othersSince: othersSince)
      }
      expect(found.times, equals: times)
      expect(hours.contains(Int(found.lastMS / Self.hour)))
    }
  }

  @Test("FIX-25: what an outage gives, too, makes an item wait no longer than uploads at first")
  func gateway() {
    for count in Int64(1)...7 {
      for othersSince in [true, false] {
        let longest = ItemPause.pauseMS(
          count, .gateway, othersSince: othersSince, random: .max)
        expect(longest, equals: Backoff.maxDelayMS(attempt: Int(count)))
      }
    }
    // and counts towards parking only beside others
    var count: Int64 = 0
    for _ in 0..<100 {
      count = ItemPause.count(after: count, .gateway, othersSince: false, othersQueued: false)
    }
    expect(count, equals: 8)
    expect(ItemPause.count(after: 8, .gateway, othersSince: true, othersQueued: true), equals: 9)
    expect(ItemPause.pauseMS(99, .gateway, othersSince: true, random: .max), equals: 5_400_000)
  }

  @Test(
    "Failures of the service are no refusals on the way: after them, too, seven of those park an item",
    arguments: [1, 8, 9, 40, 2000])
  func mixed(failures: Int) {
    var count: Int64 = 0
    for _ in 0..<failures {
      count = ItemPause.count(after: count, .service, othersSince: true, othersQueued: true)
      expect(!ItemPause.isLast(after: count, othersSince: true))
    }
    for refusal in 1...7 {
      expect(ItemPause.isLast(after: count, othersSince: true), equals: refusal == 7)
      count = ItemPause.count(after: count, .firewall, othersSince: true, othersQueued: true)
      // One in between takes none of them back.
      let pause = ItemPause.pauseMS(count, .firewall, othersSince: true, random: 0)
      count = ItemPause.count(after: count, .service, othersSince: true, othersQueued: true)
      expect(ItemPause.pauseMS(count, .service, othersSince: true, random: 0) >= pause)
    }
  }

  @Test("A count never falls, and no number overflows")
  func extremes() {
    for count in [Int64.min, -1, 0, 7, 8, 12, 13, 30, 1023, 1032, 1035, 9000, 1 << 50] {
      for failure in UploadFailure.allCases {
        for since in [true, false] {
          for queued in [true, false] {
            let next = ItemPause.count(
              after: count, failure, othersSince: since, othersQueued: queued)
            expect(next >= max(count, 1))
            let pause = ItemPause.pauseMS(next, failure, othersSince: since, random: .max)
            let longest: Int64 = failure == .service ? 86_400_000 : 5_400_000
            expect((1...longest).contains(pause))
          }
        }
      }
    }
    // A damaged file holds any number.
    for failure in UploadFailure.allCases {
      expect(ItemPause.count(after: .max, failure, othersSince: true, othersQueued: true) > 8)
      let pause = ItemPause.pauseMS(.max, failure, othersSince: true, random: .max)
      expect((1...86_400_000).contains(pause))
    }
  }

  @Test("In an outage a control is asked ever more rarely")
  func control() {
    let asked = (Int64(0)...1000).filter { ItemPause.mayAskControl(after: $0) }
    expect(asked, equals: [0, 1, 2, 4, 8, 16, 32, 64, 128, 256, 512])
  }

  // MARK: Who gets through

  @Test("Others get through after a success in the last 10 min, and at most two failures since")
  func passage() {
    var passage = Passage()
    expect(!passage.works(at: 0))
    passage.judge(at: 0)
    var works: [Bool] = []
    for _ in 0..<3 { works.append(passage.fail(at: 600_000)) }
    expect(works, equals: [true, true, false])
    expect(!passage.manyFail)
    _ = passage.fail(at: 600_000)
    expect(passage.manyFail)
    passage.judge(at: 600_000)
    expect(!passage.manyFail)
    let late = passage.fail(at: 1_200_001)
    expect(!late)
  }

  @Test("Probing ends with a success")
  func probing() {
    var passage = Passage()
    _ = passage.fail(at: 0)
    expect(!passage.isProbing)
    let waits = (1...3).map { _ in passage.wait() }
    expect(waits, equals: [1, 2, 3])
    expect(passage.isProbing)
    passage.judge(at: 1)
    expect(!passage.isProbing)
    let again = passage.wait()
    expect(again, equals: 1)
  }

  // MARK: Sizes

  @Test("From the third answer in a row that an upload is too large on, uploads are half as large")
  func tooLarge() {
    var size = UploadSize()
    var sizes: [Int] = []
    for items in [500, 250, 250, 125, 62, 31, 15, 7, 3, 1] {
      size.refuse(tooLarge: items)
      sizes.append(size.items)
    }
    expect(sizes, equals: [500, 500, 125, 62, 31, 15, 7, 3, 1, 1])
  }

  @Test("TST_1: such answers that are not in a row make no upload smaller, however many there are")
  func scatteredTooLarge() {
    for inARow in 1...2 {
      var size = UploadSize()
      for _ in 0..<30 {
        for _ in 0..<inARow { size.refuse(tooLarge: 500) }
        size.judge()
      }
      expect(size.items, equals: 500)
      // but a third in a row does
      for _ in 0..<3 { size.refuse(tooLarge: 500) }
      expect(size.items, equals: 250)
    }
    var size = UploadSize()
    for _ in 0..<4 { size.refuse(tooLarge: 20) }
    size.refuse(tooLarge: 500)
    expect(size.items, equals: 10)
  }

  @Test(
    "Refusals make uploads small at once, and stored ones make them large again in a few requests")
  func refused() {
    var size = UploadSize()
    size.refuse()
    expect(size.items, equals: 125)
    for _ in 0..<40 { size.refuse() }
    expect(size.items, equals: 1)
    // A smaller upload tells less than the size promises.
    size.store(0)
    expect(size.items, equals: 1)
    var stored = 0
    while size.items < UploadSize.most {
      size.store(size.items)
      stored += 1
    }
    expect((10...30).contains(stored))
  }
}
