public import Base

/// Rows of the smaller tables, recognised by their form. The seal proves them. Somebody may have added
/// columns behind ours.
extension Salvage {
  /// The file that a damaged file was to carry over itself, as its table of single values names it. Its
  /// entries are those of an index. An old image of the entry may name a file that was carried over.
  public struct Unfinished {
    public private(set) var name: String?
    private var isOver = false

    public init() {}

    public mutating func add(entry columns: [Value]) {
      guard columns.count == 2, columns[0].text == MetaTable.Name.salvage.text.string else {
        return
      }
      if columns[1].isNull { isOver = true }
      name = isOver ? nil : columns[1].text
    }
  }
}

extension Salvage.Record {
  public var durableEvent: (sequence: Int64, owner: [UInt8]?, sealed: [UInt8])? {
    guard columns.count >= 3, columns[0].isNull, let sealed = columns[2].blob else { return nil }
    if columns[1].isNull { return (rowID, nil, sealed) }
    guard let owner = columns[1].blob, owner.count == 16 else { return nil }
    return (rowID, owner, sealed)
  }

  public var revocation: [UInt8]? {
    columns.count >= 6 && columns[0].isNull ? columns[1].blob : nil
  }
}

extension Salvage {
  /// The single values under these names, as far as they can be read, in one walk through the file.
  public func values(_ names: [MetaTable.Name]) throws(Failure) -> SalvagedValues {
    let wanted = names.map { $0.text.string }
    var result = SalvagedValues()
    try eachEntry { (columns) throws(Failure) in
      if columns.count == 2, let name = columns[0].text, wanted.contains(name) {
        result.found.append((name, columns[1]))
      }
    }
    return result
  }
}

/// Single values of a damaged file, in which a name may stand several times.
public struct SalvagedValues {
  fileprivate var found: [(name: String, value: Value)] = []

  /// nil: there is none, or it cannot be read.
  public subscript(_ name: MetaTable.Name) -> Value? {
    let name = name.text.string
    return found.last { $0.name == name }?.value
  }

  /// The largest number under this name; 0: it cannot be read. No seal proves it, and a flipped bit may
  /// have made it too large: no device comes near the limit here.
  public func number(_ name: MetaTable.Name) -> Int64 {
    let name = name.text.string
    return found.reduce(0) { last, each in
      guard each.name == name, let number = each.value.int, number < 1 << 40 else { return last }
      return max(last, number)
    }
  }

  /// The project whose data the file holds; nil: unknown.
  public var project: String? { self[.project]?.blob.flatMap { MetaTable.project($0) } }
}
