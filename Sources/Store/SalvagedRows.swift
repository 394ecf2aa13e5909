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
  /// The last number that an event of the file was given; 0: it cannot be read. No seal proves it, and
  /// a flipped bit may have made it too large: no device comes near the limit here.
  public func lastEventNumber() throws(Failure) -> Int64 { try number(.eventSequence) }

  /// The single value under this name; nil: there is none, or it cannot be read.
  public func value(_ name: MetaTable.Name) throws(Failure) -> Value? {
    var found: Value?
    try eachEntry { (columns) throws(Failure) in
      if columns.count == 2, columns[0].text == name.text.string { found = columns[1] }
    }
    return found
  }

  /// The project whose data the file holds; nil: unknown.
  public func project() throws(Failure) -> String? {
    try value(.project)?.blob.flatMap { MetaTable.project($0) }
  }

  /// The largest number under this name among the single values; 0: it cannot be read.
  public func number(_ name: MetaTable.Name) throws(Failure) -> Int64 {
    var last: Int64 = 0
    try eachEntry { (columns) throws(Failure) in
      guard columns.count == 2, columns[0].text == name.text.string, let number = columns[1].int
      else { return }
      if number < 1 << 40 { last = max(last, number) }
    }
    return last
  }
}
