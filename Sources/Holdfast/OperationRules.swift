import Base
import Engine

/// What the API does with an operation: `holdfast_call` and the function of its name both come here.
extension Operation {
  /// The operation with this name, which may be NULL.
  init?(named name: UnsafePointer<CChar>?) {
    guard let name else { return nil }
    for one in Operation.allCases where one.name.equals(name) {
      self = one
      return
    }
    return nil
  }

  /// The error for a name that is none: it suggests the nearest one.
  static func unknown(_ name: UnsafePointer<CChar>?) -> Failure {
    var message = "no operation has this name"
    guard let name else { return Failure(.requestUnknownOperation, message) }
    var bytes: [UInt8] = []
    while bytes.count < 64, name[bytes.count] != 0 {
      bytes.append(UInt8(bitPattern: name[bytes.count]))
    }
    let prefix = "holdfast_"
    if bytes.starts(with: prefix.utf8) { bytes.removeFirst(prefix.utf8.count) }
    let names = Operation.allCases.map { $0.name.string }
    if let near = Suggestion.nearest(to: String(decoding: bytes, as: UTF8.self), among: names) {
      message += "; did you mean \"\(near)\"?"
    }
    return Failure(.requestUnknownOperation, message)
  }

  /// Payloads go to the server unchanged, so numbers stay as the host wrote them. A session is an answer of
  /// the server.
  var dialect: JSON.Dialect {
    switch self {
    case .queueAdd, .queueEdit: .exact
    case .sessionAdopt: .tolerant
    default: .strict
    }
  }

  /// On a full disk, a call that adds work is refused; all others may use the reserve.
  var room: Boundary.Room {
    switch self {
    case .queueAdd, .queueEdit: .ordinary
    default: .reserve
    }
  }

  /// It only asks: with an open session it changes nothing that a reader waits for, unless it
  /// writes rows or finds that another handle has. So what is due is not computed after it, which
  /// would cost more than the call.
  var asks: Bool {
    switch self {
    case .sessionStatus, .orgList, .queueList, .queueGet, .queueExport, .queueExplain: true
    default: false
    }
  }
}
