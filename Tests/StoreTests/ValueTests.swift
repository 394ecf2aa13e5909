import Base
import TestSupport
import Testing

@testable import Store

@Suite struct ValueTests {
  @Test func aValueIsReadAsItsOwnKindOnly() {
    let values: [Value] = [.null, .int(5), .blob([1]), .text("x"), .literal("y")]
    expect(values.map { $0.isNull }, equals: [true, false, false, false, false])
    expect(values.map { $0.int }, equals: [nil, 5, nil, nil, nil])
    expect(values.map { $0.blob }, equals: [nil, nil, [1], nil, nil])
    expect(values.map { $0.text }, equals: [nil, nil, nil, "x", nil])
  }

  @Test func anAbsentValueIsNull() {
    expect(Value(Int64?.none).isNull && Value([UInt8]?.none).isNull && Value(String?.none).isNull)
    expect(Value(Int64(0)).int == 0 && Value([UInt8]()).blob == [] && Value("").text == "")
  }
}

/// The smaller tables' rows in a damaged file.
@Suite struct SalvagedRowsTests {
  private func record(_ columns: [Value]) -> Salvage.Record {
    Salvage.Record(rowID: 4, columns: columns)
  }

  @Test func anEventIsForAllOrForOneUser() {
    let common = record([.null, .null, .blob([5])]).durableEvent
    expect(common?.sequence == 4 && common?.owner == nil && common?.sealed == [5])
    let own = record([.null, .blob(tag(1)), .blob([5])]).durableEvent
    expect(own?.sequence == 4 && own?.owner == tag(1) && own?.sealed == [5])
    let longer = record([.null, .null, .blob([5]), .null, .int(1)]).durableEvent
    expect(longer?.sealed, equals: [5], "somebody added columns")
  }

  @Test func aNumberThatTheLibraryCannotHaveStoredIsNone() {
    let most: Int64 = 1 << 56
    for number in [0, 1, -1, most, -most] { expect(Value.int(number).int, equals: number) }
    for number in [most + 1, -most - 1, .max, .min] { expect(Value.int(number).int, equals: nil) }
    for number in [0, 1, 1 << 52] as [Int64] { expect(Value.int(number).count, equals: number) }
    for number in [-1, 1 << 52 + 1, .max, .min] as [Int64] {
      expect(Value.int(number).count, equals: nil)
    }
    expect(Value.text("1").int == nil && Value.text("1").count == nil)
  }

  @Test func aRecordOfAnotherFormIsNoEvent() {
    for columns in [
      [.null, .null], [.int(1), .null, .blob([5])],
      [.null, .null, .null], [.null, .null, .text("x")], [.null, .blob([1]), .blob([5])],
      [.null, .text("x"), .blob([5])],
    ] as [[Value]] {
      expect(record(columns).durableEvent == nil)
    }
  }

  @Test func aRevocationHasItsSealAndFiveColumnsMore() {
    let columns: [Value] = [.null, .blob([5]), .int(1), .int(2), .null, .int(3)]
    expect(record(columns).revocation, equals: [5])
    let strange: [Value] = [.null, .blob([5]), .text("x"), .null, .null, .blob([1])]
    expect(
      record(strange).revocation, equals: [5], "the seal is the proof, and no number is needed")
    for column in [0, 1] {
      var other = columns
      other[column] = .text("x")
      expect(record(other).revocation, equals: nil, "\(column)")
    }
    expect(record(columns + [.null]).revocation, equals: [5], "somebody added a column")
    expect(record(Array(columns.dropLast())).revocation, equals: nil)
  }
}
