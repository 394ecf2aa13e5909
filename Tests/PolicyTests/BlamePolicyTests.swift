import Policy
import TestSupport
import Testing

@Suite("Whom a refusal blames")
struct BlamePolicyTests {
  /// Every SQLSTATE of PostgreSQL (errcodes.txt of version 15).
  private static let all = """
    01000 0100C 01008 01003 01007 01006 01004 01P01 02000 02001 03000 08000 08003 08006 08001 08004
    08007 08P01 09000 0A000 0B000 0F000 0F001 0L000 0LP01 0P000 0Z000 0Z002 20000 21000 22000 2202E
    22021 22008 22012 22005 2200B 22022 22015 2201E 22014 22016 2201F 2201G 22018 22007 22019 2200D
    22025 22P06 22010 22023 22013 2201B 2201W 2201X 2202H 2202G 22009 2200C 2200G 22004 22002 22003
    2200H 22026 22001 22011 22027 22024 2200F 22P01 22P02 22P03 22P04 22P05 2200L 2200M 2200N 2200S
    2200T 22030 22031 22032 22033 22034 22035 22036 22037 22038 22039 2203A 2203B 2203C 2203D 2203E
    2203F 2203G 23000 23001 23502 23503 23505 23514 23P01 24000 25000 25001 25002 25008 25003 25004
    25005 25006 25007 25P01 25P02 25P03 26000 27000 28000 28P01 2B000 2BP01 2D000 2F000 2F005 2F002
    2F003 2F004 34000 38000 38001 38002 38003 38004 39000 39001 39004 39P01 39P02 39P03 3B000 3B001
    3D000 3F000 40000 40002 40001 40003 40P01 42000 42601 42501 42846 42803 42P20 42P19 42830 42602
    42622 42939 42804 42P18 42P21 42P22 42809 428C9 42703 42883 42P01 42P02 42704 42701 42P03 42P04
    42723 42P05 42P06 42P07 42712 42710 42702 42725 42P08 42P09 42P10 42611 42P11 42P12 42P13 42P14
    42P15 42P16 42P17 44000 53000 53100 53200 53300 53400 54000 54001 54011 54023 55000 55006 55P02
    55P03 55P04 57000 57014 57P01 57P02 57P03 57P04 57P05 58000 58030 58P01 58P02 72000 F0000 F0001
    HV000 HV005 HV002 HV010 HV021 HV024 HV007 HV008 HV004 HV006 HV091 HV00B HV00C HV00D HV090 HV00A
    HV009 HV014 HV001 HV00P HV00J HV00K HV00Q HV00R HV00L HV00M HV00N P0000 P0001 P0002 P0003 P0004
    XX000 XX001 XX002
    """

  private static let codes = all.split { $0 == " " || $0 == "\n" }.map(String.init)

  private func outcome(_ code: String, _ description: String? = nil, _ status: Int = 400)
    -> RestOutcome
  {
    RestClassification.rest(
      ResponseFacts(status: status, code: code, description: description, isServerJSON: true))
  }

  /// The rule: these are all codes for which an item may be parked, and what each is about.
  private func expected(_ code: String) -> BlamePolicy.Ground? {
    switch code {
    case "23514", "P0001": .value
    case "23001", "23502", "23503", "23505", "23P01": .column
    case "23000", "42501", "44000": .other
    default: code.hasPrefix("22") ? .value : nil
    }
  }

  @Test("FIX-4, FIX-5: each SQLSTATE of PostgreSQL")
  func everyCode() {
    expect(BlamePolicyTests.codes.count > 240)
    for code in BlamePolicyTests.codes {
      expect(outcome(code).ground, equals: expected(code), "\(code)")
    }
  }

  @Test("FIX-5: a code that PostgreSQL does not have yet blames by its class, or nobody")
  func everyClass() {
    let letters = Array("0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ")
    for first in letters {
      for second in letters {
        let name = String([first, second])
        let ground: BlamePolicy.Ground? =
          switch name {
          case "22", "PT": .value
          case "23": .other
          default: nil
          }
        expect(outcome(name + "0ZZ").ground, equals: ground, "\(name)")
      }
    }
  }

  @Test("FIX-5: the codes of the data service blame no value; a status that SQL raises may")
  func serviceCodes() {
    for number in 0...399 {
      let code = "PGRST" + (number < 10 ? "00" : number < 100 ? "0" : "") + "\(number)"
      expect(outcome(code).ground, equals: number == 102 ? .other : nil, "\(code)")
    }
    for status in 400..<500 {
      let ground = outcome("PT\(status)", nil, status).ground
      switch status {
      case 401, 408, 413, 425, 429: expect(ground, equals: nil, "\(status)")
      case 403: expect(ground, equals: .other)
      default: expect(ground, equals: .value, "\(status)")
      }
    }
    expect(outcome("PT500", nil, 500).ground, equals: nil)
  }

  @Test("FIX-4: what the message says of a code that has two causes")
  func messages() {
    expect(
      outcome("23514", "no partition of relation \"visits\" found for row").ground, equals: .other)
    expect(outcome("22023", "role \"nobody\" does not exist").ground, equals: nil)
    expect(outcome("42501", "permission denied for table visits").ground, equals: nil)
    for message in ["UPDATE requires a WHERE clause", "more than one row returned by a subquery"] {
      expect(outcome("21000", message, 500), equals: .serverBug)
    }
  }

  @Test("FIX-5: only for what its user gave an item is blamed at once")
  func atOnce() {
    for ground in BlamePolicy.Ground.allCases {
      for named in BlamePolicy.Named.allCases {
        let isBlamed =
          switch (ground, named) {
          case (.value, .given), (.value, .nothing), (.column, .given): true
          default: false
          }
        expect(
          BlamePolicy.isForGiven(ground, naming: named), equals: isBlamed, "\(ground) \(named)")
      }
    }
  }
}
