import TestSupport
import Testing

@testable import Base

@Suite struct FailureTests {
  @Test("The error reply has the form that the header describes")
  func reply() throws {
    let failure = Failure(
      .queueItemTooLarge, "at most 256 kB", field: "/payload/note", detail: ["size": 300_000])
    try expect(
      failure.reply.text().string,
      equals: #"{"error":{"code":"queue.item_too_large","message":"at most 256 kB","#
        + #""field":"/payload/note","retryable":false,"detail":{"size":300000}}}"#)
    try expect(
      Failure.defect("why").reply.text().string,
      equals: #"{"error":{"code":"internal.defect","message":"why","field":null,"retryable":false,"#
        + #""detail":{}}}"#)
  }

  @Test("Codes have the form noun.reason in lower case and are unique")
  func codes() {
    let codes = ErrorCode.allCases.map { $0.rawValue }
    expect(Set(codes).count, equals: codes.count)
    for code in codes {
      let parts = code.split(separator: ".", omittingEmptySubsequences: false)
      expect(parts.count, equals: 2)
      for part in parts {
        expect(!part.isEmpty && part.allSatisfy { $0 == "_" || $0.isLowercase })
      }
    }
  }

  @Test("No failure has the status OK, and an invalid request is never retryable")
  func classes() {
    for code in ErrorCode.allCases {
      expect(code.status != .ok)
      if code.status == .invalid { expect(!code.retryable) }
    }
    expect(ErrorCode.queueInFlight.retryable)
    expect(ErrorCode.storageBusy.status, equals: .busy)
    expect(ErrorCode.storageFull.status, equals: .full)
  }
}
