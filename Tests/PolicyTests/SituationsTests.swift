import Policy
import PolicyOracle
import TestSupport
import Testing

/// Every 89th of all situations, 110,454 of 9,830,400. Tests/situations examines all of them in a
/// program that is optimised. The step is prime, so that the sample has every value of every axis.
@Suite struct SituationsTests {
  private static let sample = Examination(step: 89)

  @Test(arguments: sample.checks.indices)
  func checkHoldsInTheSample(number: Int) {
    let check = Self.sample.checks[number]
    expect(check.failures.isEmpty, "\(check.name): \(check.failures.joined(separator: "\n"))")
  }

  @Test("The sample has 110,454 situations and all 68 decisions")
  func sampleIsLarge() {
    expect(Self.sample.cells, equals: 110_454)
    expect(Self.sample.decisions.count, equals: 68)
  }

  @Test(
    "A cell's number and its situation convert into each other, and a step leads to the same cell")
  func numbering() {
    Product.visit(step: 104_729) { cell in
      expect(Product.number(of: cell.situation), equals: cell.number)
      expect(Product.cell(cell.number).situation, equals: cell.situation)
      expect(Product.cell(cell.number).mask, equals: cell.mask)
    }
  }
}
