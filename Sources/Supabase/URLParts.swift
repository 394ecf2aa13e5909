import Base

/// The parts of a URL (RFC 3986, appendix B), as slices of its text.
struct URLParts {
  typealias Part = Slice<UnsafeRawBufferPointer>

  let scheme: Part
  /// nil when no `//` follows the scheme.
  let authority: Part?
  let path: Part
  let query: Part?
  let fragment: Part?

  /// nil when the scheme is missing, or the text holds a character that no URL has: a space, a
  /// control character or a backslash.
  init?(_ text: UnsafeRawBufferPointer) {
    for byte in text where byte <= 0x20 || byte == 0x7F || byte == UInt8(ascii: "\\") {
      return nil
    }
    var rest = text[...]
    fragment = URLParts.cut(&rest, at: UInt8(ascii: "#"))
    query = URLParts.cut(&rest, at: UInt8(ascii: "?"))
    guard let colon = rest.firstIndex(of: UInt8(ascii: ":")) else { return nil }
    scheme = rest[..<colon]
    guard URLParts.isScheme(scheme) else { return nil }
    rest = rest[(colon + 1)...]
    guard rest.count >= 2, rest[rest.startIndex] == UInt8(ascii: "/"),
      rest[rest.startIndex + 1] == UInt8(ascii: "/")
    else {
      authority = nil
      path = rest
      return
    }
    rest = rest[(rest.startIndex + 2)...]
    let slash = rest.firstIndex(of: UInt8(ascii: "/")) ?? rest.endIndex
    authority = rest[..<slash]
    path = rest[slash...]
  }

  /// Whether both have the same scheme, authority and path.
  func isSamePlace(as other: URLParts) -> Bool {
    guard URLParts.equal(scheme, other.scheme, ignoringCase: true) else { return false }
    switch (authority, other.authority) {
    case (nil, nil): return URLParts.equal(path, other.path)
    case (let ours?, let theirs?):
      return URLParts.equal(ours, theirs, ignoringCase: true)
        && (URLParts.equal(path, other.path) || isRoot && other.isRoot)
    default: return false
    }
  }

  /// Browsers write an empty path after an authority as `/`.
  private var isRoot: Bool { path.isEmpty || path.count == 1 && path.first == UInt8(ascii: "/") }

  /// Removes the first `mark` and all after it from `rest`, and returns the part after the mark.
  private static func cut(_ rest: inout Part, at mark: UInt8) -> Part? {
    guard let at = rest.firstIndex(of: mark) else { return nil }
    let tail = rest[(at + 1)...]
    rest = rest[..<at]
    return tail
  }

  /// A letter, then letters, digits and `+-.`. Apps also use `_`, which the RFC does not allow.
  private static func isScheme(_ part: Part) -> Bool {
    guard let first = part.first, ASCII.isLetter(first) else { return false }
    return part.allSatisfy { byte in
      ASCII.isLetter(byte) || ASCII.isDigit(byte) || byte == UInt8(ascii: "+")
        || byte == UInt8(ascii: "-") || byte == UInt8(ascii: ".")
        || byte == UInt8(ascii: "_")
    }
  }

  private static func equal(_ left: Part, _ right: Part, ignoringCase: Bool = false) -> Bool {
    guard left.count == right.count else { return false }
    for offset in 0..<left.count {
      let (a, b) = (left[left.startIndex + offset], right[right.startIndex + offset])
      guard a == b || ignoringCase && ASCII.lowered(a) == ASCII.lowered(b) else { return false }
    }
    return true
  }
}
