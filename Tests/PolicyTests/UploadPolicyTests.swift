import Policy
import PolicyOracle
import TestSupport
import Testing

/// Every 11th of all situations. Tests/situations compares all of them in a program that is optimised.
/// The step is prime, so that the sample has every value of every axis.
@Suite struct UploadPolicyTests {
  @Test func thePolicyAndTheOracleAgree() {
    let failures = UploadProduct.failures(step: 11)
    expect(failures.isEmpty, "\(failures.joined(separator: "\n"))")
  }

  @Test func theProductHasEverySituationOnce() {
    let axes = [
      UploadSituation.Request.allCases.count, UploadSituation.Cause.allCases.count,
      UploadSituation.Answer.allCases.count, UploadSituation.Attempts.allCases.count,
      UploadSituation.History.allCases.count, UploadSituation.Membership.allCases.count,
    ]
    expect(axes.reduce(1 << 7, *), equals: UploadProduct.count)
    let (first, last) = (
      UploadProduct.situation(0), UploadProduct.situation(UploadProduct.count - 1)
    )
    expect(!first.isCurrent && !first.mayAskControl && first.request == .upload)
    expect(last.isCurrent && last.mayAskControl && last.request == .control)
  }

  @Test(arguments: [
    (Int64(0), UploadSituation.Attempts.few), (1, .few), (2, .several), (7, .several), (8, .many),
  ])
  func attemptsAreCountedAsFewSeveralAndMany(_ number: Int64, _ attempts: UploadSituation.Attempts)
  {
    expect(UploadSituation.Attempts(number), equals: attempts)
  }

  @Test("The page is short enough to read")
  func pageIsShort() {
    expect(UploadsDocument().tables.reduce(0) { $0 + $1.rows.count } <= 160)
  }
}
