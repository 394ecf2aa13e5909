import TestSupport
import Testing

@testable import Base

@Suite struct BinarySearchTests {
  @Test("Finds every element and nothing else", arguments: 0..<40)
  func finds(count: Int) {
    let odd = (0..<count).map { 2 * $0 + 1 }
    for number in -1...(2 * count + 2) {
      expect(odd.sortedContains(number), equals: odd.contains(number))
    }
  }

  @Test("Equal elements")
  func equal() {
    let sevens = Array(repeating: 7, count: 500)
    expect(sevens.sortedContains(7) && !sevens.sortedContains(6) && !sevens.sortedContains(8))
  }
}
