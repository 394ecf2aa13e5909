/// Reads the header `Retry-After`: seconds or a date (RFC 9110, section 10.2.3).
public enum RetryAfter {
  /// The longest delay that is accepted. A longer one is a mistake of the server or of its clock.
  public static let maxMS: Int64 = 86_400_000

  /// The milliseconds to wait, 0 to 24 h; nil when `value` is neither. A date is compared with
  /// `serverNowMS`, the time of the server (its `Date` header), and not with the device's clock. Where
  /// there is only an estimate by that clock, which may be wrong by days, `longestMS` bounds the wait.
  public static func parse(
    _ value: String, serverNowMS: Int64, longestMS: Int64 = maxMS
  ) -> Int64? {
    if let seconds = seconds(value) { return min(seconds, maxMS / 1_000) * 1_000 }
    guard let date = HTTPDate.parse(value) else { return nil }
    let (wait, overflow) = date.subtractingReportingOverflow(serverNowMS)
    return overflow ? nil : min(max(wait, 0), longestMS)
  }

  /// A number of digits, with spaces around it or not, as `Age` has it, too. A number that
  /// overflows becomes the largest.
  public static func seconds(_ value: String) -> Int64? {
    var reader = DateReader(value.utf8)
    reader.skipSpaces()
    guard var total = reader.digit().map(Int64.init) else { return nil }
    while let digit = reader.digit() {
      total = min(total * 10 + Int64(digit), maxMS)
    }
    reader.skipSpaces()
    return reader.isAtEnd ? total : nil
  }
}
