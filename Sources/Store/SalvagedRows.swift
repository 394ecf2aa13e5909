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
  /// Single values of the file that hold from the beginning for the one in its place.
  public struct Inherited {
    /// The last number that an event was given; 0: it cannot be read. No seal proves it, and a flipped
    /// bit may have made it too large: no device comes near the limit here.
    public fileprivate(set) var lastEvent: Int64 = 0
    /// The project whose data the file holds; nil: unknown.
    public fileprivate(set) var project: String?
  }

  public func inherited() throws(Failure) -> Inherited {
    let event = MetaTable.Name.eventSequence.text.string
    let project = MetaTable.Name.project.text.string
    var result = Inherited()
    try eachEntry { (columns) throws(Failure) in
      guard columns.count == 2, let name = columns[0].text else { return }
      if name == event, let number = columns[1].int, number < 1 << 40 {
        result.lastEvent = max(result.lastEvent, number)
      }
      if name == project, let value = columns[1].blob, let found = MetaTable.project(value) {
        result.project = found
      }
    }
    return result
  }
}
