import Policy
import TestSupport
import Testing

@Suite("Items that are refused on the way")
struct BlockedItemPolicyTests {
  /// The refusals until the item is parked, and the shortest and longest time that they take.
  private func course(
    othersWereJudged: Bool, mayPass: Bool = false
  ) -> (tries: Int, least: Int64, most: Int64) {
    var (count, tries) = (Int64(0), 0)
    var (least, most) = (Int64(0), Int64(0))
    while true {
      count = BlockedItemPolicy.count(
        after: count, othersWereJudged: othersWereJudged, mayPass: mayPass)
      tries += 1
      if count >= BlockedItemPolicy.limit { return (tries, least / 60_000, most / 60_000) }
      least += BlockedItemPolicy.pauseMS(count: count, random: 0)
      most += BlockedItemPolicy.pauseMS(count: count, random: .max)
    }
  }

  @Test("ATK-9: parked after seven refusals in three to five hours")
  func othersAreSent() {
    let course = course(othersWereJudged: true)
    expect(course.tries, equals: 7)
    expect(course.least >= 3 * 60)
    expect(course.most <= 5 * 60)
  }

  @Test("ATK-9: while nothing else is sent, after half a day")
  func nothingElseIsSent() {
    let course = course(othersWereJudged: false)
    expect(course.tries, equals: 21)
    expect(course.least >= 9 * 60)
    expect(course.most <= 18 * 60)
  }

  @Test("B3: an answer that an outage gives, too, counts only while others are judged")
  func anAnswerThatMayPass() {
    expect(course(othersWereJudged: true, mayPass: true).tries, equals: 7)
    for count in Int64(0)..<BlockedItemPolicy.limit {
      let next = BlockedItemPolicy.count(after: count, othersWereJudged: false, mayPass: true)
      expect(next, equals: max(count, 1))
    }
  }

  @Test(
    "The shortest pauses: 5 minutes, doubling to an hour, after three refusals each",
    arguments: [
      (1, 5), (3, 5), (4, 10), (6, 10), (7, 20), (9, 20), (10, 40), (12, 40), (13, 60), (20, 60),
    ] as [(Int64, Int64)])
  func steps(count: Int64, minutes: Int64) {
    expect(BlockedItemPolicy.pauseMS(count: count, random: 0), equals: minutes * 60_000)
  }

  @Test("Pauses grow, and differ")
  func pauses() {
    var last: Int64 = 0
    for count in 1..<BlockedItemPolicy.limit {
      let pause = BlockedItemPolicy.pauseMS(count: count, random: 0)
      let longest = BlockedItemPolicy.pauseMS(count: count, random: .max)
      expect(pause >= last)
      expect(longest, equals: pause + pause / 2)
      expect(longest <= BlockedItemPolicy.maxPauseMS)
      last = pause
    }
  }
}
