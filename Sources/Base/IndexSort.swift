/// Sorting, and finding in what is sorted, without a copy of the standard library's for every type:
/// that weighs 5 kB each.
public enum IndexSort {
  /// Whether one of `count` sorted things is what is looked for. The closure says how a place compares
  /// with it: below 0 before it, 0 the same, above 0 behind it.
  @inline(never)
  public static func find(_ count: Int, _ compare: (Int) -> Int64) -> Bool {
    var range = 0..<count
    while !range.isEmpty {
      let middle = (range.lowerBound + range.upperBound) / 2
      let order = compare(middle)
      if order == 0 { return true }
      range = order < 0 ? middle + 1..<range.upperBound : range.lowerBound..<middle
    }
    return false
  }

  /// Heapsort of `count` things that the closures know by their places. Not stable.
  @inline(never)
  public static func sort(
    _ count: Int, precedes: (Int, Int) -> Bool, swap: (Int, Int) -> Void
  ) {
    func sink(_ place: Int, _ end: Int) {
      var parent = place
      while true {
        var child = 2 * parent + 1
        guard child < end else { return }
        if child + 1 < end, precedes(child, child + 1) { child += 1 }
        guard precedes(parent, child) else { return }
        swap(parent, child)
        parent = child
      }
    }
    // Mostly there is nothing to do: ids come in the order of their time.
    var sorted = 1
    while sorted < count, !precedes(sorted, sorted - 1) { sorted += 1 }
    if sorted >= count { return }
    for place in stride(from: count / 2 - 1, through: 0, by: -1) { sink(place, count) }
    for end in stride(from: count - 1, to: 0, by: -1) {
      swap(0, end)
      sink(0, end)
    }
  }
}
