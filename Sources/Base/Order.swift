/// The places of so many elements in the order of the elements; `precedes` compares those at two places. Equal
/// ones stay as they are.
///
/// The standard library's sort is compiled for each type of elements, at 4 kB each: here it is for places alone.
@export(interface)
public func places(of count: Int, inOrderBy precedes: (Int, Int) -> Bool) -> [Int] {
  var places = Array(0..<count)
  places.sort(by: precedes)
  return places
}

extension Array {
  public func ordered(by precedes: (Element, Element) -> Bool) -> [Element] {
    places(of: count, inOrderBy: { precedes(self[$0], self[$1]) }).map { self[$0] }
  }
}

extension Array where Element: Comparable {
  public func ordered() -> [Element] { ordered { $0 < $1 } }
}
