import TestSupport
import Testing

@testable import Base

@Suite struct UUIDTests {
  @Test("Both cases are read, lower case is written")
  func reading() {
    let id = UUID("01890A5D-AC96-774B-BCCE-B302099A8057")
    expect(id, equals: UUID("01890a5d-ac96-774b-bcce-b302099a8057"))
    expect(id?.text, equals: "01890a5d-ac96-774b-bcce-b302099a8057")
    expect(id?.high, equals: 0x0189_0a5d_ac96_774b)
    expect(id?.low, equals: 0xbcce_b302_099a_8057)
  }

  @Test(
    "Anything else is refused",
    arguments: [
      "", "-", "01890a5dac96774bbcceb302099a8057", "{01890a5d-ac96-774b-bcce-b302099a8057}",
      "01890a5d-ac96-774b-bcce-b302099a805", "01890a5d-ac96-774b-bcce-b302099a80577",
      "01890a5d-ac96-774b-bcce-b302099a805g", " 01890a5d-ac96-774b-bcce-b302099a8057",
      "01890a5d-ac96-774b-bcce-b302099a8057 ", "01890a5d-ac96-774b-bcce-b302099a8057\0",
      "01890a5d-ac96-774bb-cce-b302099a8057", "01890a5d_ac96_774b_bcce_b302099a8057",
      "01890a5d-ac96-774b-bcce-b302099a８057", "01890a5d-ac96-774b-bcce-b302099a8057-",
      "-1890a5d-ac96-774b-bcce-b302099a8057", "urn:uuid:01890a5d-ac96-774b-bcce-b302099a8057",
    ])
  func garbage(text: String) {
    expect(UUID(text), equals: nil)
  }

  @Test("Text and back", arguments: [(0, 0), (.max, .max), (1, 1 << 63)] as [(UInt64, UInt64)])
  func roundTrip(high: UInt64, low: UInt64) {
    let id = UUID(high: high, low: low)
    expect(UUID(id.text), equals: id)
    expect(id.text.utf8.count, equals: 36)
    expect(id.bytes.count, equals: 16)
  }

  @Test("The bytes have the order of the text")
  func bytes() {
    let id = UUID("00010203-0405-0607-0809-0a0b0c0d0e0f")
    expect(id?.bytes, equals: Array(0...15))
  }

  @Test("Version 7: the example of RFC 9562, appendix A.6")
  func version7() {
    let id = UUID(
      version7At: 0x017F_22E2_79B0,
      random: (0xFFFF_FFFF_FFFF_FCC3, 0xFFFF_FFFF_FFFF_FFFF & 0x18C4_DC0C_0C07_398F))
    expect(id.text, equals: "017f22e2-79b0-7cc3-98c4-dc0c0c07398f")
  }

  @Test("Version 7 grows with time for all random bits, and accepts any time")
  func order() {
    let early = UUID(version7At: 1_700_000_000_000, random: (.max, .max))
    let late = UUID(version7At: 1_700_000_000_001, random: (0, 0))
    expect(early < late)
    expect(!(late < early) && !(early < early))
    for time in [Int64.min, -1, 0, .max] {
      let text = UUID(version7At: time, random: (7, 7)).text
      expect(Array(text.utf8)[14], equals: UInt8(ascii: "7"))
    }
  }
}

@Suite struct HexTests {
  @Test("Digits and back")
  func digits() {
    for value in 0..<16 as Range<UInt8> { expect(Hex.value(Hex.digit(value)), equals: value) }
    expect(Hex.value(UInt8(ascii: "F")), equals: 15)
    for other in [0, 0x2F, 0x3A, 0x40, 0x47, 0x60, 0x67, 0xFF] as [UInt8] {
      expect(Hex.value(other), equals: nil)
    }
  }
}
