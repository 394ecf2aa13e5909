/// JSON Pointers (RFC 6901), which name a place in a JSON text.
public enum JSONPointer {
  /// One reference token, with `~` and `/` escaped.
  public static func escape(_ key: String) -> String {
    var copy = key
    let isPlain = copy.withUTF8 { bytes in
      bytes.allSatisfy { $0 != UInt8(ascii: "~") && $0 != UInt8(ascii: "/") }
    }
    if isPlain { return key }
    var result: [UInt8] = []
    for byte in key.utf8 {
      let isTilde = byte == UInt8(ascii: "~")
      if isTilde || byte == UInt8(ascii: "/") {
        result.append(UInt8(ascii: "~"))
        result.append(UInt8(ascii: isTilde ? "0" : "1"))
      } else {
        result.append(byte)
      }
    }
    return String(decoding: result, as: UTF8.self)
  }

  private final class Level {
    let isArray: Bool
    var index = 0
    var key: [UInt8] = []
    var expectsKey: Bool

    init(isArray: Bool) {
      self.isArray = isArray
      expectsKey = !isArray
    }
  }

  /// The pointer of the value at a byte offset, for text that may be malformed from there on.
  ///
  /// The text is scanned up to the offset with a stack of open objects and arrays. Each level keeps
  /// its current key or index; together they are the pointer. `\u0041` in a key stays as it is.
  static func locate(at offset: Int, in bytes: UnsafeRawBufferPointer) -> String {
    var levels: [Level] = []
    var at = 0
    let end = min(max(offset, 0), bytes.count)
    while at < end {
      switch bytes[at] {
      case UInt8(ascii: "{"): levels.append(Level(isArray: false))
      case UInt8(ascii: "["): levels.append(Level(isArray: true))
      case UInt8(ascii: "}"), UInt8(ascii: "]"): _ = levels.popLast()
      case UInt8(ascii: ","):
        if let level = levels.last {
          level.index += 1
          level.key = []
          level.expectsKey = !level.isArray
        }
      case UInt8(ascii: "\""):
        let key = levels.last.flatMap { $0.expectsKey ? $0 : nil }
        at += 1
        while at < end, bytes[at] != UInt8(ascii: "\"") {
          if bytes[at] == UInt8(ascii: "\\") {
            at += 1
            if at < end, bytes[at] == UInt8(ascii: "u") { key?.key.append(UInt8(ascii: "\\")) }
          }
          if at < end { key?.key.append(bytes[at]) }
          at += 1
        }
        key?.expectsKey = false
      default: break
      }
      at += 1
    }
    var result = ""
    for level in levels {
      if level.isArray {
        result += "/\(level.index)"
      } else if !level.key.isEmpty {
        result += "/" + escape(String(decoding: level.key, as: UTF8.self))
      }
    }
    return result
  }
}
