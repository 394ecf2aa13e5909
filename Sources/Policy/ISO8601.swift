/// Points in time as text, in the profile of ISO 8601 that PostgreSQL and JSON use (RFC 3339).
public enum ISO8601 {
  /// 0000-01-01T00:00:00.000Z
  private static let firstMS: Int64 = -62_167_219_200_000
  /// 9999-12-31T23:59:59.999Z
  public static let lastMS: Int64 = 253_402_300_799_999

  /// Text of the form `2026-01-01T00:00:00.123Z`. A time outside the years 0 to 9999 becomes the
  /// nearest one inside.
  public static func format(ms: Int64) -> String {
    let ms = min(max(ms, firstMS), lastMS)
    let fraction = ms.modulo(1_000)
    let date = CivilDate.at(seconds: (ms - fraction) / 1_000)
    var text: [UInt8] = []
    text.reserveCapacity(24)
    append(date.year, digits: 4, to: &text)
    text.append(UInt8(ascii: "-"))
    append(date.month, digits: 2, to: &text)
    text.append(UInt8(ascii: "-"))
    append(date.day, digits: 2, to: &text)
    text.append(UInt8(ascii: "T"))
    append(date.hour, digits: 2, to: &text)
    text.append(UInt8(ascii: ":"))
    append(date.minute, digits: 2, to: &text)
    text.append(UInt8(ascii: ":"))
    append(date.second, digits: 2, to: &text)
    text.append(UInt8(ascii: "."))
    append(Int(fraction), digits: 3, to: &text)
    text.append(UInt8(ascii: "Z"))
    return String(decoding: text, as: UTF8.self)
  }

  /// Milliseconds since 1970; nil when `text` is not a time. Accepts `T` or a space, a fraction of
  /// any length (cut off after the millisecond), and the offsets `Z`, `+01:00`, `+0100` and `+01`.
  public static func parse(_ text: String) -> Int64? {
    parseUS(text).map { ($0 - $0.modulo(1_000)) / 1_000 }
  }

  /// The same in microseconds, as precise as PostgreSQL.
  public static func parseUS(_ text: String) -> Int64? {
    var text = text
    return text.withUTF8 { parse($0) }
  }

  private typealias Reader = DateReader<UnsafeBufferPointer<UInt8>>

  private static func parse(_ text: UnsafeBufferPointer<UInt8>) -> Int64? {
    var reader = Reader(text)
    guard let year = reader.number(digits: 4), reader.take("-"),
      let month = reader.number(digits: 2), reader.take("-"), let day = reader.number(digits: 2),
      reader.take("T") || reader.take(" "), let hour = reader.number(digits: 2), reader.take(":"),
      let minute = reader.number(digits: 2),
      let second = reader.take(":") ? reader.number(digits: 2) : 0,
      let fractionUS = fraction(&reader),
      let offsetMinutes = offset(&reader), reader.isAtEnd
    else { return nil }
    let date = CivilDate(
      year: year, month: month, day: day, hour: hour, minute: minute, second: second)
    guard date.isValid else { return nil }
    return (date.sinceEpochMS - Int64(offsetMinutes) * 60_000) * 1_000 + Int64(fractionUS)
  }

  private static func fraction(_ reader: inout Reader) -> Int? {
    guard reader.take(".") else { return 0 }
    guard var us = reader.digit().map({ $0 * 100_000 }) else { return nil }
    var unit = 10_000
    while let digit = reader.digit() {
      us += digit * unit
      unit /= 10
    }
    return us
  }

  private static func offset(_ reader: inout Reader) -> Int? {
    if reader.take("Z") { return 0 }
    let isWest = reader.take("-")
    guard isWest || reader.take("+"), let hours = reader.number(digits: 2), hours < 24 else {
      return nil
    }
    let hasColon = reader.take(":")
    guard hasColon || !reader.isAtEnd else { return isWest ? -hours * 60 : hours * 60 }
    guard let minutes = reader.number(digits: 2), minutes < 60 else { return nil }
    return isWest ? -(hours * 60 + minutes) : hours * 60 + minutes
  }

  /// Appends `value` with leading zeros. It must not have more than `digits` digits.
  private static func append(_ value: Int, digits: Int, to text: inout [UInt8]) {
    var unit = 1
    for _ in 1..<digits { unit *= 10 }
    while unit > 0 {
      text.append(UInt8(ascii: "0") + UInt8(clamping: value / unit % 10))
      unit /= 10
    }
  }
}
