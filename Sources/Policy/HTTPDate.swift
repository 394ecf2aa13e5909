/// The dates of HTTP headers, in the three forms that a reader must accept (RFC 9110, section
/// 5.6.7).
public enum HTTPDate {
  /// Milliseconds since 1970; nil when `text` is not a date of these forms.
  ///
  /// The forms are `Sun, 06 Nov 1994 08:49:37 GMT`, `Sunday, 06-Nov-94 08:49:37 GMT` (years 70 to
  /// 99 mean 1970 to 1999) and `Sun Nov  6 08:49:37 1994`. The name of the day is not compared with
  /// the date.
  public static func parse(_ text: String) -> Int64? { parse(text.utf8) }

  /// The same, from bytes.
  public static func parse(_ bytes: some Collection<UInt8>) -> Int64? {
    var reader = DateReader(bytes)
    reader.skipSpaces()
    guard let length = weekday(&reader) else { return nil }
    let date =
      switch (reader.take(UInt8(ascii: ",")), length) {
      case (true, .short): fixed(&reader)
      case (true, .long): obsolete(&reader)
      case (false, .short): asctime(&reader)
      case (false, .long): CivilDate?.none
      }
    reader.skipSpaces()
    guard let date, date.isValid, reader.isAtEnd else { return nil }
    return date.sinceEpochMS
  }

  private enum Length { case short, long }

  private static func weekday(
    _ reader: inout DateReader<some Collection<UInt8>>
  ) -> Length? {
    if reader.take("Sunday") || reader.take("Monday") || reader.take("Tuesday")
      || reader.take("Wednesday") || reader.take("Thursday") || reader.take("Friday")
      || reader.take("Saturday")
    {
      return .long
    }
    let short =
      reader.take("Sun") || reader.take("Mon") || reader.take("Tue") || reader.take("Wed")
      || reader.take("Thu") || reader.take("Fri") || reader.take("Sat")
    return short ? .short : nil
  }

  /// ` 06 Nov 1994 08:49:37 GMT`
  private static func fixed(_ reader: inout DateReader<some Collection<UInt8>>) -> CivilDate? {
    guard reader.take(" "), let day = reader.number(digits: 2), reader.take(" "),
      let month = month(&reader), reader.take(" "), let year = reader.number(digits: 4)
    else { return nil }
    let date = time(&reader, CivilDate(year: year, month: month, day: day))
    return reader.take(" GMT") ? date : nil
  }

  /// ` 06-Nov-94 08:49:37 GMT`
  private static func obsolete(_ reader: inout DateReader<some Collection<UInt8>>) -> CivilDate? {
    guard reader.take(" "), let day = reader.number(digits: 2), reader.take("-"),
      let month = month(&reader), reader.take("-"), let short = reader.number(digits: 2)
    else { return nil }
    let year = short < 70 ? 2_000 + short : 1_900 + short
    let date = time(&reader, CivilDate(year: year, month: month, day: day))
    return reader.take(" GMT") ? date : nil
  }

  /// ` Nov  6 08:49:37 1994`
  private static func asctime(_ reader: inout DateReader<some Collection<UInt8>>) -> CivilDate? {
    guard reader.take(" "), let month = month(&reader), reader.take(" ") else { return nil }
    let isPadded = reader.take(" ")
    guard let day = reader.number(digits: isPadded ? 1 : 2),
      var date = time(&reader, CivilDate(year: 0, month: month, day: day)), reader.take(" "),
      let year = reader.number(digits: 4)
    else { return nil }
    date.year = year
    return date
  }

  /// ` 08:49:37`
  private static func time(
    _ reader: inout DateReader<some Collection<UInt8>>, _ date: CivilDate
  ) -> CivilDate? {
    guard reader.take(" "), let hour = reader.number(digits: 2), reader.take(":"),
      let minute = reader.number(digits: 2), reader.take(":"),
      let second = reader.number(digits: 2)
    else { return nil }
    var date = date
    date.hour = hour
    date.minute = minute
    date.second = second
    return date
  }

  private static func month(_ reader: inout DateReader<some Collection<UInt8>>) -> Int? {
    if reader.take("Jan") { return 1 }
    if reader.take("Feb") { return 2 }
    if reader.take("Mar") { return 3 }
    if reader.take("Apr") { return 4 }
    if reader.take("May") { return 5 }
    if reader.take("Jun") { return 6 }
    if reader.take("Jul") { return 7 }
    if reader.take("Aug") { return 8 }
    if reader.take("Sep") { return 9 }
    if reader.take("Oct") { return 10 }
    if reader.take("Nov") { return 11 }
    if reader.take("Dec") { return 12 }
    return nil
  }
}
