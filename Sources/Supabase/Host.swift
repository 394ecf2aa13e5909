import Base
import CPlatform

/// The host of a URL. Resolvers also take other forms of addresses, such as 127.1 and 0x7f000001; URLs here
/// have one form, so that what is checked is what is connected to.
enum Host {
  case name(URLParts.Part)
  case ipv4([UInt8])
  case ipv6([UInt8])

  /// The host of `host[:port]`; nil for anything else.
  init?(_ authority: URLParts.Part) {
    var host = authority
    if let colon = authority.lastIndex(of: UInt8(ascii: ":")), host.last != UInt8(ascii: "]") {
      let port = authority[(colon + 1)...]
      guard !port.isEmpty, port.count <= 5, port.allSatisfy({ ASCII.isDigit($0) }) else {
        return nil
      }
      host = authority[..<colon]
    }
    if host.first == UInt8(ascii: "["), host.last == UInt8(ascii: "]"), host.count > 2 {
      guard let address = Host.address(host.dropFirst().dropLast()), address.count == 16 else {
        return nil
      }
      self = .ipv6(address)
    } else if let address = Host.address(host) {
      guard address.count == 4 else { return nil }
      self = .ipv4(address)
    } else {
      guard Host.isName(host) else { return nil }
      self = .name(host)
    }
  }

  private static func address(_ text: URLParts.Part) -> [UInt8]? {
    var bytes = [UInt8](repeating: 0, count: 16)
    let text = UnsafeRawBufferPointer(rebasing: text)
    let count = platform_address(
      text.baseAddress?.assumingMemoryBound(to: UInt8.self), text.count, &bytes)
    return count > 0 ? Array(bytes.prefix(Int(count))) : nil
  }

  /// Whether this is a name of letters, digits, `-` and `_`, with dots between. No domain is called by a
  /// number: such a name is an address that was written wrongly.
  private static func isName(_ text: URLParts.Part) -> Bool {
    let isPlain = text.allSatisfy { byte in
      ASCII.isLetter(byte) || ASCII.isDigit(byte) || byte == UInt8(ascii: "-")
        || byte == UInt8(ascii: ".") || byte == UInt8(ascii: "_")
    }
    let labels = text.split(separator: UInt8(ascii: "."))
    guard isPlain, let last = labels.last else { return false }
    return !last.allSatisfy { ASCII.isDigit($0) }
  }

  /// Whether this is always the machine itself: 127.0.0.0/8, ::1, localhost or a name below it (RFC 6761).
  var isLoopback: Bool {
    switch self {
    case .ipv4(let address): return address[0] == 127
    case .ipv6(let address): return address.dropLast().allSatisfy { $0 == 0 } && address[15] == 1
    case .name(let name):
      let labels = name.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
      return labels.allSatisfy { !$0.isEmpty }
        && labels.last?.map { ASCII.lowered($0) } == Array("localhost".utf8)
    }
  }
}

extension URLParts {
  /// Whether the authority is a host, perhaps with a port, and without a user.
  var hasHost: Bool { authority.flatMap { Host($0) } != nil }

  var isLoopback: Bool { authority.flatMap { Host($0) }?.isLoopback == true }
}
