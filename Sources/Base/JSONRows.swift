/// The elements of a JSON array, one by one, without building the array.
///
/// The text is cut at the commas of the outermost array; jansson then reads each piece. A piece is empty
/// where an element is missing, and jansson refuses it, so the pieces of a text are read exactly if the
/// whole would be.
public struct JSONRows {
  private let text: UnsafeRawBufferPointer
  private var place = 0
  /// The array has ended, and nothing follows it.
  public private(set) var isComplete = false

  /// nil when the text is not an array. The text must outlive the value.
  public init?(_ text: UnsafeRawBufferPointer) {
    self.text = text
    guard next(UInt8(ascii: "[")) else { return nil }
    let first = place
    if next(UInt8(ascii: "]")) { end() } else { place = first }
  }

  /// The text of the next element; nil after the last one, and where the text breaks off.
  public mutating func next() -> UnsafeRawBufferPointer? {
    guard !isComplete else { return nil }
    let start = place
    var depth = 0
    while place < text.count {
      let byte = text[place]
      place += 1
      switch byte {
      case UInt8(ascii: "\""): JSONMeasure.skipString(text, &place)
      case UInt8(ascii: "{"), UInt8(ascii: "["): depth += 1
      case UInt8(ascii: "}"): depth -= 1
      case UInt8(ascii: "]") where depth > 0: depth -= 1
      case UInt8(ascii: ",") where depth > 0: break
      case UInt8(ascii: "]"), UInt8(ascii: ","):
        let piece = UnsafeRawBufferPointer(rebasing: text[start..<(place - 1)])
        if byte == UInt8(ascii: "]") { end() }
        return piece
      default: break
      }
    }
    return nil
  }

  /// Moves behind the next byte that is not white space, if it is this one.
  private mutating func next(_ wanted: UInt8) -> Bool {
    while place < text.count, JSONRows.isSpace(text[place]) { place += 1 }
    guard place < text.count, text[place] == wanted else { return false }
    place += 1
    return true
  }

  private mutating func end() {
    isComplete = text[place...].allSatisfy { JSONRows.isSpace($0) }
    place = text.count
  }

  static func isSpace(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: " "), UInt8(ascii: "\t"), UInt8(ascii: "\n"), UInt8(ascii: "\r"): true
    default: false
    }
  }
}
