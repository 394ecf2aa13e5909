import Policy
import TestSupport
import Testing

@Suite("Items that are refused on the way")
struct BlockedItemPolicyTests {
  /// The refusals until the item is parked, and the shortest and longest time that they take.
  private func course(
    othersGotThrough: Bool, mayPass: Bool = false
  ) -> (tries: Int, least: Int64, most: Int64) {
    var (count, tries) = (Int64(0), 0)
    var (least, most) = (Int64(0), Int64(0))
    while true {
      tries += 1
      count = BlockedItemPolicy.count(
        after: count, tries: tries, othersGotThrough: othersGotThrough, mayPass: mayPass)
      if count >= BlockedItemPolicy.limit { return (tries, least / 60_000, most / 60_000) }
      least += BlockedItemPolicy.pauseMS(count: count, tries: tries, mayPass: mayPass, random: 0)
      most += BlockedItemPolicy.pauseMS(
        count: count, tries: tries, mayPass: mayPass, random: .max)
    }
  }

  @Test("ATK-9: parked after seven refusals in three to five hours")
  func othersAreSent() {
    let course = course(othersGotThrough: true)
    expect(course.tries, equals: 7)
    expect(course.least >= 3 * 60)
    expect(course.most <= 5 * 60)
  }

  @Test("ATK-9: while nothing else is sent, after half a day")
  func nothingElseIsSent() {
    let course = course(othersGotThrough: false)
    expect(course.tries, equals: 21)
    expect(course.least >= 9 * 60)
    expect(course.most <= 18 * 60)
  }

  @Test("B3: an answer that an outage gives, too, counts only while others are judged")
  func anAnswerThatMayPass() {
    // and not at the first failures, which a healthy item may have, too (FIX-25)
    let course = course(othersGotThrough: true, mayPass: true)
    expect(course.tries, equals: 7 + 7)
    expect(course.least >= 3 * 60)
    for count in Int64(0)..<BlockedItemPolicy.limit {
      for tries in [1, 7, 8, 99] {
        let next = BlockedItemPolicy.count(
          after: count, tries: tries, othersGotThrough: false, mayPass: true)
        expect(next, equals: max(count, 1))
      }
    }
  }

  @Test("FIX-25: at the first failures that an outage gives, too, an item waits like an upload")
  func firstPauses() {
    for tries in 1..<Backoff.aloneAfter {
      for random: UInt64 in [0, 1 << 63, .max] {
        expect(
          BlockedItemPolicy.pauseMS(count: 1, tries: tries, mayPass: true, random: random),
          equals: Backoff.delayMS(attempt: tries, random: random))
      }
    }
  }

  @Test(
    "The shortest pauses: 5 minutes, doubling to an hour, after three refusals each",
    arguments: [
      (1, 5), (3, 5), (4, 10), (6, 10), (7, 20), (9, 20), (10, 40), (12, 40), (13, 60), (20, 60),
    ] as [(Int64, Int64)])
  func steps(count: Int64, minutes: Int64) {
    expect(
      BlockedItemPolicy.pauseMS(count: count, tries: 1, mayPass: false, random: 0),
      equals: minutes * 60_000)
  }

  @Test("Pauses grow, and differ")
  func pauses() {
    var last: Int64 = 0
    for count in 1..<BlockedItemPolicy.limit {
      let pause = BlockedItemPolicy.pauseMS(count: count, tries: 1, mayPass: false, random: 0)
      let longest = BlockedItemPolicy.pauseMS(
        count: count, tries: 1, mayPass: false, random: .max)
      expect(pause >= last)
      expect(longest, equals: pause + pause / 2)
      expect(longest <= BlockedItemPolicy.maxPauseMS)
      last = pause
    }
  }
}
