import Testing

@testable import Base

/// Parses a text, by default as a request of the host.
func parse(_ text: String, _ dialect: JSON.Dialect = .strict) throws(Failure) -> JSON {
  try parse(Array(text.utf8), dialect)
}

func parse(_ bytes: [UInt8], _ dialect: JSON.Dialect = .strict) throws(Failure) -> JSON {
  var result = Result<JSON, Failure>.failure(.defect("not read"))
  bytes.withUnsafeBytes { bytes in
    do throws(Failure) { result = .success(try JSON.parse(bytes, dialect)) } catch {
      result = .failure(error)
    }
  }
  return try result.get()
}

/// The failure of `body`, or nil when it succeeds.
func failure<Value>(_ body: () throws(Failure) -> Value) -> Failure? {
  do throws(Failure) {
    _ = try body()
    return nil
  } catch {
    return error
  }
}

/// Code and field of the failure of a text, as "code field".
func refusal(_ text: String) -> String? {
  failure { () throws(Failure) in try parse(text) }.map { "\($0.code.rawValue) \($0.field ?? "-")" }
}

/// Random JSON, the same for the same seed.
struct RandomJSON {
  private var state: UInt64

  init(seed: UInt64) { state = seed }

  mutating func below(_ bound: Int) -> Int {
    state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
    return Int(state >> 33) % bound
  }

  mutating func write(_ text: inout [UInt8], depth: Int, size: Int) {
    switch below(depth == 0 ? 4 : 10) {
    case 0, 1:
      text += Array("[".utf8)
      let count = below(size + 1)
      for number in 0..<count {
        if number > 0 { text += Array(", ".utf8.prefix(1 + below(2))) }
        write(&text, depth: depth + 1, size: min(size / 3, 13))
      }
      text += Array("]".utf8)
    case 2, 3:
      text += Array("{".utf8)
      let count = below(size + 1)
      for number in 0..<count {
        if number > 0 { text += Array(",".utf8) }
        // Distinct: a member that is there twice costs once.
        text += Array("\"\(number)".utf8)
        writeString(&text, quoted: false)
        text += Array("\":".utf8)
        write(&text, depth: depth + 1, size: min(size / 3, 13))
      }
      text += Array("}".utf8)
    case 4, 5, 6: writeString(&text, quoted: true)
    case 7: text += Array("\(below(1 << 30) - 1 << 29)".utf8)
    case 8: text += Array(["1.5", "-0.25e-7", "0", "12345678901234"][below(4)].utf8)
    default: text += Array(["true", "false", "null"][below(3)].utf8)
    }
  }

  private mutating func writeString(_ text: inout [UInt8], quoted: Bool) {
    if quoted { text.append(UInt8(ascii: "\"")) }
    for _ in 0..<below([2, 8, 40, 600][below(4)]) {
      text += Array(["x", "å", #"\""#, #"\\"#, #"\u00e5"#, #"\ud83d\ude00"#, ",{["][below(7)].utf8)
    }
    if quoted { text.append(UInt8(ascii: "\"")) }
  }
}
