import Policy
import Testing

@Suite struct BatchPolicyTests {
  /// What a plan led to.
  private struct Run {
    var requests = 0
    var stored: [Int] = []
    var alone: [Int] = []
  }

  /// Carries a plan out against a server that refuses parts with `bad` items, and parts of more
  /// than `most` items for their weight.
  private func run(_ count: Int, bad: Set<Int>, most: Int = .max) -> Run {
    var plan = BatchPlan(count: count)
    var run = Run()
    while let part = plan.next {
      run.requests += 1
      if part.count > most {
        if let item = plan.tooHeavy() { run.alone.append(item) }
      } else if part.contains(where: bad.contains) {
        if let item = plan.refused() { run.alone.append(item) }
      } else {
        run.stored += part
        plan.stored()
      }
    }
    return run
  }

  private func log2(_ count: Int) -> Int {
    count <= 1 ? 0 : Int.bitWidth - (count - 1).leadingZeroBitCount
  }

  @Test("QUE-3: one bad item of n is found alone with 2·⌈log2 n⌉ requests more at most")
  func oneBadItem() {
    for count in Array(1...70) + [100, 255, 256, 257, 499, 500] {
      for bad in Set([0, 1, count / 2, count - 2, count - 1]).filter({ 0..<count ~= $0 }) {
        let run = run(count, bad: [bad])
        #expect(run.alone == [bad])
        #expect(run.stored == (0..<count).filter { $0 != bad })
        #expect(run.requests - 1 <= 2 * log2(count))
      }
    }
  }

  @Test("QUE-3: every one of 500 places costs 18 requests more at most")
  func everyPlaceOf500() {
    for bad in 0..<500 {
      let run = run(500, bad: [bad])
      #expect(run.alone == [bad])
      #expect(run.requests - 1 <= 18)
    }
  }

  @Test("Any number of bad items: each is found, all others are stored once, in their order")
  func manyBadItems() {
    var random = Random(seed: 5)
    for _ in 0..<500 {
      let count = Int(random.next() % 500) + 1
      let bad = Set((0..<Int(random.next() % 12)).map { _ in Int(random.next() % UInt64(count)) })
      let run = run(count, bad: bad)
      #expect(run.alone == bad.sorted())
      #expect(run.stored == (0..<count).filter { !bad.contains($0) })
      #expect(run.requests <= 1 + bad.count * (2 * log2(count) + 2))
    }
  }

  @Test("What was too heavy once is not sent again: all that follows is cut beforehand")
  func weight() {
    for count in [1, 2, 3, 7, 100, 500] {
      for most in [1, 2, 3, 50, 250, 500] {
        let run = run(count, bad: [], most: most)
        #expect(run.alone.isEmpty)
        #expect(run.stored == Array(0..<count))
        let refusals = max(0, log2(count) - log2(most) + 1)
        #expect(run.requests <= refusals + 2 * count / most + 2)
      }
    }
  }

  @Test("An item that is too heavy alone is named, and the others go on")
  func heavyAlone() {
    let run = run(5, bad: [], most: 0)
    #expect(run.alone == [0, 1, 2, 3, 4])
  }

  @Test("Both at once: heavy parts and bad items")
  func weightAndFault() {
    let run = run(500, bad: [3, 77, 498], most: 60)
    #expect(run.alone == [3, 77, 498])
    #expect(run.stored == (0..<500).filter { ![3, 77, 498].contains($0) })
  }

  @Test("Without an answer the same part is next; with nothing left nothing happens")
  func idle() {
    var plan = BatchPlan(count: 10)
    #expect(plan.next == 0..<10)
    #expect(plan.next == 0..<10)
    plan.stored()
    #expect(plan.next == nil)
    plan.stored()
    #expect(plan.refused() == nil)
    #expect(plan.tooHeavy() == nil)
    for count in [0, -1, Int.min] { #expect(BatchPlan(count: count).next == nil) }
  }

  @Test("A batch holds 500 items or 1 MB, and at least one item")
  func length() {
    #expect(BatchPolicy.length(of: []) == 0)
    #expect(BatchPolicy.length(of: Array(repeating: 10, count: 3)) == 3)
    #expect(BatchPolicy.length(of: Array(repeating: 10, count: 501)) == 500)
    #expect(BatchPolicy.length(of: Array(repeating: 300_000, count: 10)) == 3)
    #expect(BatchPolicy.length(of: [5_000_000, 1]) == 1)
    #expect(BatchPolicy.length(of: [999_999, 1, 1]) == 2)
    #expect(BatchPolicy.length(of: [Int.max, Int.max]) == 1)
    #expect(BatchPolicy.length(of: [-5, 0, 1]) == 3)
  }
}
