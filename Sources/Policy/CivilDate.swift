/// A date of the Gregorian calendar and a time of day, in UTC.
struct CivilDate: Equatable {
  var year: Int
  var month: Int
  var day: Int
  var hour = 0
  var minute = 0
  var second = 0

  /// Whether this day and time exist. A leap second is valid.
  var isValid: Bool {
    (1...12).contains(month) && day >= 1 && day <= daysInMonth && (0...23).contains(hour)
      && (0...59).contains(minute) && (0...60).contains(second)
  }

  /// Milliseconds since 1970, for valid dates of the years 0 to 9999.
  ///
  /// The days are counted with the algorithm of Howard Hinnant, "chrono-compatible low-level date
  /// algorithms": years begin in March, so that the leap day is the last day of a year.
  var sinceEpochMS: Int64 {
    let shifted = month > 2 ? year : year - 1
    let era = (shifted >= 0 ? shifted : shifted - 399) / 400
    let yearOfEra = shifted - era * 400
    let dayOfYear = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1
    let dayOfEra = yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear
    let days = era * 146_097 + dayOfEra - 719_468
    return (((Int64(days) * 24 + Int64(hour)) * 60 + Int64(minute)) * 60 + Int64(second)) * 1_000
  }

  /// The date and time at `seconds` since 1970, for the years 0 to 9999; the inverse of the above.
  static func at(seconds: Int64) -> CivilDate {
    let time = Int(seconds.modulo(86_400))
    let shifted = Int((seconds - Int64(time)) / 86_400) + 719_468
    let era = (shifted >= 0 ? shifted : shifted - 146_096) / 146_097
    let dayOfEra = shifted - era * 146_097
    let yearOfEra =
      (dayOfEra - dayOfEra / 1_460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
    let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
    let marchMonth = (5 * dayOfYear + 2) / 153
    let month = marchMonth < 10 ? marchMonth + 3 : marchMonth - 9
    return CivilDate(
      year: yearOfEra + era * 400 + (month <= 2 ? 1 : 0), month: month,
      day: dayOfYear - (153 * marchMonth + 2) / 5 + 1, hour: time / 3_600,
      minute: time / 60 % 60, second: time % 60)
  }

  private var daysInMonth: Int {
    switch month {
    case 2: year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) ? 29 : 28
    case 4, 6, 9, 11: 30
    default: 31
    }
  }
}

extension Int64 {
  /// The remainder that is never negative.
  func modulo(_ divisor: Int64) -> Int64 {
    let remainder = self % divisor
    return remainder < 0 ? remainder + divisor : remainder
  }
}
