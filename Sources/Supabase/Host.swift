import Base

extension URLParts {
  /// Whether the authority is a host, perhaps with a port, and without a user.
  var hasHost: Bool {
    guard let authority else { return false }
    var host = authority
    if let colon = authority.lastIndex(of: UInt8(ascii: ":")), host.last != UInt8(ascii: "]") {
      let port = authority[(colon + 1)...]
      guard !port.isEmpty, port.count <= 5, port.allSatisfy({ ASCII.isDigit($0) }) else {
        return false
      }
      host = authority[..<colon]
    }
    let isBracketed = host.first == UInt8(ascii: "[") && host.last == UInt8(ascii: "]")
    if isBracketed { host = host.dropFirst().dropLast() }
    return !host.isEmpty
      && host.allSatisfy { byte in
        switch byte {
        case UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"): return true
        case UInt8(ascii: ":"): return isBracketed
        default: return ASCII.isLetter(byte) || ASCII.isDigit(byte)
        }
      }
  }

  /// Whether the host is this machine: 127.0.0.0/8, ::1, localhost or a name below it (RFC 6761).
  var isLoopback: Bool {
    guard let authority else { return false }
    if authority.starts(with: "[::1]".utf8) { return true }
    let host = authority.prefix { $0 != UInt8(ascii: ":") }
    if host.starts(with: "127.".utf8) {
      return host.allSatisfy { ASCII.isDigit($0) || $0 == UInt8(ascii: ".") }
    }
    let name = host.map { ASCII.lowered($0) }
    return name == Array("localhost".utf8) || name.suffix(10).elementsEqual(".localhost".utf8)
  }
}
