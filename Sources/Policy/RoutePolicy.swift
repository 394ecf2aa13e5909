import Base

/// Which routes a role may open.
///
/// A route comes from a link that anybody can write, and the host's router reads it after us. So a
/// route that two readers could understand differently is not allowed, whatever it seems to name.
public enum RoutePolicy {
  /// Whether a role with these `screens` may open `route`.
  ///
  /// A screen is a path, `*` for every route, or a path and `/*` for everything below it (and not
  /// the path itself). Query and fragment do not count, nor does one slash at the end.
  public static func allows(_ route: String, screens: [String]) -> Bool {
    if screens.contains("*") { return true }
    guard let path = Route.segments(route) else { return false }
    return screens.contains { fits(path, screen: $0) }
  }

  /// The same; the role's home is always open, so that the way to it never leads to itself.
  public static func allows(_ route: String, screens: [String], home: String) -> Bool {
    if allows(route, screens: screens) { return true }
    guard let path = Route.segments(route) else { return false }
    return path == Route.plainSegments(home)
  }

  private static func fits(_ path: [[UInt8]], screen: String) -> Bool {
    guard let pattern = Route.plainSegments(screen) else { return false }
    guard pattern.last == [UInt8(ascii: "*")] else { return path == pattern }
    let parent = pattern.count - 1
    return path.count > parent && Array(path[..<parent]) == Array(pattern[..<parent])
  }
}

/// A route taken apart.
private enum Route {
  /// The segments of the route's path, percent-decoded once; nil when a router might read them
  /// differently: no slash in front, empty segments, `.` and `..`, backslashes, path parameters,
  /// control characters, encoded separators, an encoding within the encoding, or broken UTF-8.
  static func segments(_ route: String) -> [[UInt8]]? {
    split(route, decodes: true)
  }

  /// The segments of a path that the host configured: as it is written.
  static func plainSegments(_ path: String) -> [[UInt8]]? {
    split(path, decodes: false)
  }

  private static func split(_ route: String, decodes: Bool) -> [[UInt8]]? {
    var bytes = route.utf8.makeIterator()
    guard bytes.next() == UInt8(ascii: "/") else { return nil }
    var segments: [[UInt8]] = []
    var segment: [UInt8] = []
    while let byte = bytes.next() {
      switch byte {
      case UInt8(ascii: "?"), UInt8(ascii: "#"):
        return end(segments, segment)
      case UInt8(ascii: "/"):
        guard isPlain(segment) else { return nil }
        segments.append(segment)
        segment = []
      case UInt8(ascii: "%") where decodes:
        guard let high = bytes.next().flatMap(Hex.value), let low = bytes.next().flatMap(Hex.value),
          let decoded = accepted(high << 4 | low)
        else { return nil }
        segment.append(decoded)
      default:
        guard isUnambiguous(byte) else { return nil }
        segment.append(byte)
      }
    }
    return end(segments, segment)
  }

  /// The last segment may be empty: a slash at the end.
  private static func end(_ segments: [[UInt8]], _ last: [UInt8]) -> [[UInt8]]? {
    if last.isEmpty { return segments }
    return isPlain(last) ? segments + [last] : nil
  }

  private static func isPlain(_ segment: [UInt8]) -> Bool {
    let dot = UInt8(ascii: ".")
    return !segment.isEmpty && segment != [dot] && segment != [dot, dot] && isText(segment)
  }

  /// Valid UTF-8: an overlong form is a separator to some readers.
  private static func isText(_ segment: [UInt8]) -> Bool {
    Array(String(decoding: segment, as: UTF8.self).utf8) == segment
  }

  private static func isUnambiguous(_ byte: UInt8) -> Bool {
    byte > 0x20 && byte != 0x7F && byte != UInt8(ascii: "\\") && byte != UInt8(ascii: ";")
  }

  /// A decoded byte, if it means the same decoded and encoded.
  private static func accepted(_ byte: UInt8) -> UInt8? {
    switch byte {
    case UInt8(ascii: "/"), UInt8(ascii: "%"), UInt8(ascii: "?"), UInt8(ascii: "#"): nil
    case UInt8(ascii: " "): byte
    default: isUnambiguous(byte) ? byte : nil
    }
  }
}
