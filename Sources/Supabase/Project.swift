import Base

extension Backend {
  /// The project by its address: two URLs with the same one lead to the same server. Scheme and host in
  /// lower case, the port unless it is the scheme's own, and the path without a slash at its end.
  public var project: String {
    let bytes = Array(url.utf8)
    return bytes.withUnsafeBytes { text in
      guard let parts = URLParts(text), let authority = parts.authority else { return url }
      let scheme = parts.scheme.map { ASCII.lowered($0) }
      var host = authority.map { ASCII.lowered($0) }
      let port = Array((scheme.count == 5 ? ":443" : ":80").utf8)
      if host.suffix(port.count).elementsEqual(port) { host.removeLast(port.count) }
      return String(decoding: scheme + Array("://".utf8) + host + Array(parts.path), as: UTF8.self)
    }
  }
}
