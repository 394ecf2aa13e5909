import Testing

@testable import Base

@Suite struct IndexSortTests {
  @Test("Any numbers", arguments: 0..<40)
  func sorts(count: Int) {
    var random = SystemRandomNumberGenerator()
    var numbers = (0..<count).map { _ in UInt8.random(in: 0...9, using: &random) }
    let expected = numbers.sorted()
    IndexSort.sort(
      count, precedes: { numbers[$0] < numbers[$1] }, swap: { numbers.swapAt($0, $1) })
    #expect(numbers == expected)
  }

  @Test("Sorted, reversed and equal ones")
  func extremes() {
    for start in [Array(0..<500), Array((0..<500).reversed()), Array(repeating: 7, count: 500)] {
      var numbers = start
      IndexSort.sort(
        numbers.count, precedes: { numbers[$0] < numbers[$1] }, swap: { numbers.swapAt($0, $1) })
      #expect(numbers == start.sorted())
    }
  }
}
