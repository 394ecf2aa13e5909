/// The elements of a JSON array, one by one, as texts. The array is not built.
public struct JSONRows {
  private var scan: JSONScan
  /// The array has ended, and nothing follows it.
  public private(set) var isComplete = false

  /// nil when the text is not an array. The text must outlive the value.
  public init?(_ text: UnsafeRawBufferPointer) {
    scan = JSONScan(text)
    guard scan.take(UInt8(ascii: "[")) else { return nil }
    if scan.take(UInt8(ascii: "]")) { isComplete = scan.isAtEnd() }
  }

  /// The text of the next element; nil after the last one, and where the text is no array any more.
  @inline(never)
  public mutating func next() -> UnsafeRawBufferPointer? {
    guard !isComplete, let element = scan.takeValue() else { return nil }
    if scan.take(UInt8(ascii: "]")) {
      isComplete = scan.isAtEnd()
      if !isComplete { return nil }
    } else if !scan.take(UInt8(ascii: ",")) {
      return nil
    }
    return UnsafeRawBufferPointer(rebasing: scan.text[element.place])
  }
}
