extension Array {
  /// Where the first element is that does not come before a place; `count`: all come before it. Those that
  /// do must stand first.
  public func sortedPlace(where comesBefore: (Element) -> Bool) -> Int {
    var range = 0..<count
    while !range.isEmpty {
      let middle = (range.lowerBound + range.upperBound) / 2
      range = comesBefore(self[middle]) ? middle + 1..<range.upperBound : range.lowerBound..<middle
    }
    return range.lowerBound
  }

  /// Where the element with this key is; nil: there is none. The array must be sorted by `keyOf`.
  public func sortedPlace<Key: Comparable>(of key: Key, _ keyOf: (Element) -> Key) -> Int? {
    let place = sortedPlace { keyOf($0) < key }
    return place < count && keyOf(self[place]) == key ? place : nil
  }
}

extension Array where Element: Comparable {
  /// Whether the array holds `element`. The array must be sorted.
  public func sortedContains(_ element: Element) -> Bool {
    sortedPlace(of: element) { $0 } != nil
  }
}
