import Base

/// Decides which routes a role may open.
///
/// A route may come from a link that an attacker wrote, and the host's router parses it after this
/// check. A route that two parsers could read differently is therefore never allowed.
public enum RoutePolicy {
  /// Whether a role with these `screens` may open `route`.
  ///
  /// A screen is a path, `*` for every path, or a path and `/*` for everything below it (but not
  /// the path itself). Query, fragment and one slash at the end are ignored.
  public static func allows(_ route: String, screens: [String]) -> Bool {
    guard let path = Route.segments(route) else { return false }
    return screens.contains { $0 == "*" || fits(path, screen: $0) }
  }

  /// The same, but the role's home is always allowed: a refused route leads to it, which must not
  /// be refused in turn.
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

/// Splits a route into its segments.
private enum Route {
  /// The segments of the route's path, percent-decoded once. Nil when a router might read them
  /// differently: no slash in front, empty segments, `.` and `..`, backslashes, path parameters,
  /// control characters, encoded separators, double encoding, or invalid UTF-8.
  static func segments(_ route: String) -> [[UInt8]]? {
    split(route, decodes: true)
  }

  /// The segments of a path in the configuration, which is not percent-decoded.
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

  /// Appends the last segment, which may be empty: one slash at the end is allowed.
  private static func end(_ segments: [[UInt8]], _ last: [UInt8]) -> [[UInt8]]? {
    if last.isEmpty { return segments }
    return isPlain(last) ? segments + [last] : nil
  }

  private static func isPlain(_ segment: [UInt8]) -> Bool {
    let dot = UInt8(ascii: ".")
    return !segment.isEmpty && segment != [dot] && segment != [dot, dot] && isText(segment)
  }

  /// Whether the segment is valid UTF-8. Some parsers read an overlong form as a separator.
  private static func isText(_ segment: [UInt8]) -> Bool {
    Array(String(decoding: segment, as: UTF8.self).utf8) == segment
  }

  private static func isUnambiguous(_ byte: UInt8) -> Bool {
    byte > 0x20 && byte != 0x7F && byte != UInt8(ascii: "\\") && byte != UInt8(ascii: ";")
  }

  /// A decoded byte, if it means the same in encoded form; else nil.
  private static func accepted(_ byte: UInt8) -> UInt8? {
    switch byte {
    case UInt8(ascii: "/"), UInt8(ascii: "%"), UInt8(ascii: "?"), UInt8(ascii: "#"): nil
    case UInt8(ascii: " "): byte
    default: isUnambiguous(byte) ? byte : nil
    }
  }
}
