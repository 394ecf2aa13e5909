extension Array {
  /// Where the element with this key is; nil: there is none. The array must be sorted by `keyOf`.
  public func sortedPlace<Key: Comparable>(of key: Key, _ keyOf: (Element) -> Key) -> Int? {
    var range = 0..<count
    while !range.isEmpty {
      let middle = (range.lowerBound + range.upperBound) / 2
      let found = keyOf(self[middle])
      if found == key { return middle }
      range = found < key ? middle + 1..<range.upperBound : range.lowerBound..<middle
    }
    return nil
  }
}

extension Array where Element: Comparable {
  /// Whether the array holds `element`. The array must be sorted.
  public func sortedContains(_ element: Element) -> Bool {
    sortedPlace(of: element) { $0 } != nil
  }
}
