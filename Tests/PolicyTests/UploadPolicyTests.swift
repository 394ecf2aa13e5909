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
    // Inserts: every request, cause and answer but those of a comparison. Changes and deletions: an upload has no
    // cause; a question for the rows or a control, each for five causes. Of inserts that were taken
    // back, the ids.
    let answers = UploadSituation.Answer.allCases.count
    let inserts =
      UploadSituation.Request.allCases.count * UploadSituation.Cause.allCases.count * (answers - 4)
    let corrections = (answers - 4) + 5 * answers + 5 * (answers - 4)
    let axes = [
      UploadSituation.Attempts.allCases.count, UploadSituation.History.allCases.count,
      UploadSituation.Membership.allCases.count,
    ]
    let shapes = inserts + 2 * corrections + (answers - 4)
    expect(axes.reduce(1 << 7, *) * shapes, equals: UploadProduct.count)
    expect(UploadProduct.count, equals: 4_884_480)
    let (first, last) = (
      UploadProduct.situation(0), UploadProduct.situation(UploadProduct.count - 1)
    )
    expect(!first.isCurrent && !first.mayAskControl && first.request == .upload)
    expect(first.operation == .insert)
    expect(last.isCurrent && last.mayAskControl && last.request == .control)
    expect(last.operation == .deletion)
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
