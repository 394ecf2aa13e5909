import TestSupport
import Testing

@testable import Policy

@Suite("Uploads whose failure blames no item")
struct DoubtPolicyTests {
  private func step(
    _ fault: UploadFault, attempts: Int64 = 0, isSetAside: Bool = false, works: Bool = false,
    asksForPause: Bool = false
  ) -> DoubtPolicy.Step {
    DoubtPolicy.step(
      fault, attempts: attempts, isSetAside: isSetAside, works: works, asksForPause: asksForPause)
  }

  @Test("While nothing gets through, all wait", arguments: UploadFault.allCases, [Int64(0), 2, 99])
  func nothingWorks(fault: UploadFault, attempts: Int64) {
    expect(step(fault, attempts: attempts), equals: .wait)
  }

  @Test("While others get through, the item is found; on the way, the service is asked first")
  func othersWork() {
    expect(step(.batchKey, works: true), equals: .find)
    // What often passes is an item's fault from the third failure on.
    expect(step(.service, attempts: 1, works: true), equals: .wait)
    expect(step(.service, attempts: 2, works: true), equals: .find)
    expect(step(.onTheWay, attempts: 1, works: true), equals: .wait)
    expect(step(.onTheWay, attempts: 2, works: true), equals: .ask)
  }

  @Test("An item that was set aside makes no other wait, whether others get through or not")
  func setAside() {
    for works in [true, false] {
      expect(step(.batchKey, isSetAside: true, works: works), equals: .find)
      expect(step(.service, isSetAside: true, works: works), equals: .find)
      expect(step(.onTheWay, isSetAside: true, works: works), equals: .ask)
    }
  }

  @Test("A pause that the service asks for is kept", arguments: UploadFault.allCases)
  func pause(fault: UploadFault) {
    for isSetAside in [true, false] {
      expect(
        step(fault, attempts: 9, isSetAside: isSetAside, works: true, asksForPause: true),
        equals: .wait)
    }
  }

  @Test("Two failures in a row after a success may be one item's, for ten minutes")
  func proof() {
    var proof = UploadProof()
    func fails(at nowMS: Int64, _ times: Int = 1) -> [Bool] {
      (0..<times).map { _ in proof.fail(at: nowMS) }
    }
    expect(fails(at: 0), equals: [false])
    proof.judge(at: 1000)
    expect(fails(at: 1000, 4), equals: [true, true, false, false])
    proof.judge(at: 2000)
    expect(fails(at: 602_000), equals: [true])
    expect(fails(at: 602_001), equals: [false])
  }

  @Test("Probing ends with a success")
  func probing() {
    var proof = UploadProof()
    _ = proof.fail(at: 0)
    expect(!proof.isProbing)
    let waits = (1...3).map { _ in proof.wait() }
    expect(waits, equals: [1, 2, 3])
    expect(proof.isProbing)
    proof.judge(at: 1)
    expect(!proof.isProbing)
    let again = proof.wait()
    expect(again, equals: 1)
  }

  @Test("From the third refusal in a row on, uploads are half as large")
  func size() {
    var size = UploadSize()
    var sizes: [Int] = []
    for items in [500, 250, 250, 125, 62, 31, 15, 7, 3, 1] {
      size.refuse(items: items)
      sizes.append(size.maxItems)
    }
    expect(sizes, equals: [500, 500, 125, 62, 31, 15, 7, 3, 1, 1])
    // and grow after four successes
    sizes = []
    for _ in 0..<12 {
      size.judge()
      sizes.append(size.maxItems)
    }
    expect(sizes, equals: [1, 1, 1, 2, 2, 2, 2, 4, 4, 4, 4, 8])
    // One refusal between successes is one item's, or one batch's.
    size.refuse(items: 8)
    expect(size.maxItems, equals: 8)
    for _ in 0..<40 { size.judge() }
    expect(size.maxItems, equals: 500)
  }

  @Test("TST_1: refusals that are not in a row make no upload smaller, however many there are")
  func sizeOfScatteredRefusals() {
    for inARow in 1...2 {
      for judged in 1...5 {
        var size = UploadSize()
        for _ in 0..<30 {
          for _ in 0..<inARow { size.refuse(items: 500) }
          for _ in 0..<judged { size.judge() }
        }
        expect(size.maxItems, equals: 500, "\(inARow) in a row, \(judged) judged")
        // but a third in a row does
        for _ in 0..<3 { size.refuse(items: 500) }
        expect(size.maxItems, equals: 250)
      }
    }
  }

  @Test("TST_1: successes that are not in a row make no upload larger")
  func sizeOfScatteredSuccesses() {
    var size = UploadSize()
    for _ in 0..<3 { size.refuse(items: 500) }
    for _ in 0..<10 {
      for _ in 0..<3 { size.judge() }
      size.refuse(items: 250)
    }
    expect(size.maxItems, equals: 250)
    // but a fourth in a row does
    for _ in 0..<4 { size.judge() }
    expect(size.maxItems, equals: 500)
  }

  @Test("TST_1: a refusal of an upload that was larger than the present size does not raise it")
  func sizeAfterALargeRefusal() {
    var size = UploadSize()
    for _ in 0..<4 { size.refuse(items: 20) }
    expect(size.maxItems, equals: 10)
    size.refuse(items: 500)
    expect(size.maxItems, equals: 10)
  }
}
