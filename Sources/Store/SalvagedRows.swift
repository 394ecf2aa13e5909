/// Rows of the smaller tables, recognised by their form. The seal proves them. Somebody may have added
/// columns behind ours.
extension Salvage.Record {
  public var durableEvent: (sequence: Int64, owner: [UInt8]?, sealed: [UInt8])? {
    guard columns.count >= 3, columns[0].isNull, let sealed = columns[2].blob else { return nil }
    if columns[1].isNull { return (rowID, nil, sealed) }
    guard let owner = columns[1].blob, owner.count == 16 else { return nil }
    return (rowID, owner, sealed)
  }

  public var revocation: [UInt8]? {
    guard columns.count >= 6, columns[0].isNull, let sealed = columns[1].blob,
      columns[2].int != nil, columns[3].int != nil, columns[5].int != nil
    else { return nil }
    return sealed
  }
}
