import Testing

@testable import HoldfastKit

@Suite struct KeychainAnswersTests {
  @Test func onlyItemNotFoundIsNotFound() {
    let found = (-35_000...1000).filter { KeychainAnswers.result(of: $0) == .notFound }
    #expect(found == [-25300])
  }

  @Test(arguments: [
    (0, KeyResult.ok), (-25308, .locked), (-128, .cancelled), (-25293, .failed),
    (-34018, .failed), (-25291, .failed), (1, .failed),
  ])
  func aStatusHasItsResult(status: Int, result: KeyResult) {
    #expect(KeychainAnswers.result(of: Int32(status)) == result)
  }

  @Test(arguments: [
    (nil, Outcome.success), (-1, .failed), (-2, .cancelled), (-3, .cancelled),
    (-4, .cancelled), (-9, .cancelled), (-1004, .cancelled), (-8, .lockoutPermanent),
    (-5, .notEnrolled), (-7, .notEnrolled), (-6, .unavailable), (-12, .unavailable),
    (-13, .unavailable), (-10, .failed),
  ])
  func aPromptHasItsOutcome(code: Int?, outcome: Outcome) {
    #expect(KeychainAnswers.outcome(of: code) == outcome)
  }
}
