extension Array where Element: Comparable {
  /// Whether the array holds `element`. The array must be sorted.
  public func sortedContains(_ element: Element) -> Bool {
    var range = 0..<count
    while !range.isEmpty {
      let middle = (range.lowerBound + range.upperBound) / 2
      if self[middle] == element { return true }
      range =
        self[middle] < element ? middle + 1..<range.upperBound : range.lowerBound..<middle
    }
    return false
  }
}
