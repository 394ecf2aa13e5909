import TestSupport
import Testing

@testable import Store

@Suite struct ItemStateTests {
  private static let all: [ItemState] = [
    .pending, .sending, .waiting(.dependency), .waiting(.time(Pause(since: 0, until: 8))),
    .waiting(.organisation), .waiting(.kind), .waiting(.server(Pause(since: 0, until: 8))),
    .waiting(.blocked(Pause(since: 0, until: 8))), .parked,
  ]

  /// The numbers are in users' files: they must not change.
  @Test func theStoredNumbersStay() {
    expect(ItemStateTests.all.map { $0.code.rawValue }, equals: [0, 1, 2, 2, 2, 2, 2, 2, 3])
    expect(
      ItemStateTests.all.map { $0.waitReason?.code ?? 0 }, equals: [0, 0, 1, 2, 3, 4, 5, 6, 0])
    expect(
      ItemStateTests.all.map { $0.pause.until.ms },
      equals: [0, 0, 0, 8, 0, 0, 8, 8, 0])
  }

  @Test(arguments: all) func aStateIsReadFromItsNumbers(_ state: ItemState) {
    let read = ItemState(
      code: state.code.rawValue, waitReason: state.waitReason?.code ?? 0, Pause(since: 0, until: 8))
    expect(read, equals: state)
    expect(ItemState.Code(word: state.word), equals: state.code)
  }

  @Test(arguments: [(Int64(-1), Int64(0)), (4, 0), (2, 0), (2, 7), (2, -1)] as [(Int64, Int64)])
  func otherNumbersAreNoState(code: Int64, reason: Int64) {
    expect(ItemState(code: code, waitReason: reason, .none), equals: nil)
  }

  @Test(arguments: ["", "Pending", "stored"]) func otherWordsAreNoState(
    word: String
  ) {
    expect(ItemState.Code(word: word), equals: nil)
  }
}
