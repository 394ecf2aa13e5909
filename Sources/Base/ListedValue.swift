extension CaseIterable where Self: RawRepresentable, RawValue == String {
  /// The case with this raw value, by a search through all cases.
  ///
  /// The compiler's own `init(rawValue:)` of an enumeration with many cases builds a table on first
  /// use, and Embedded Swift does not guard that against a second thread.
  public init?(listed rawValue: String) {
    for value in Self.allCases where value.rawValue == rawValue {
      self = value
      return
    }
    return nil
  }
}
