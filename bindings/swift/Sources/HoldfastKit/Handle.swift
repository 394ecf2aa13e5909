import CHoldfast
import Foundation

/// The handle of the C library. Its functions may be called from any thread, also after `close`.
final class Handle: @unchecked Sendable {
  private let pointer: OpaquePointer
  let opened: OpenReply

  init(_ config: Config, _ keys: KeyFunctions?) throws(HoldfastError) {
    var made: OpaquePointer?
    var reply: UnsafeMutablePointer<CChar>?
    let status = try Handle.withText(config) { text in
      guard let keys else { return holdfast_open(text, nil, &made, &reply) }
      return withUnsafePointer(to: keys.functions) { holdfast_open(text, $0, &made, &reply) }
    }
    opened = try Handle.reply(status, reply)
    guard let made else { throw HoldfastError(withoutReply: HOLDFAST_INTERNAL) }
    pointer = made
  }

  func call<Request: Encodable, Reply: Readable>(
    _ name: OperationName, _ request: Request
  ) throws(HoldfastError) -> Reply {
    var reply: UnsafeMutablePointer<CChar>?
    let status = try Handle.withText(request) { holdfast_call(pointer, name.rawValue, $0, &reply) }
    return try Handle.reply(status, reply)
  }

  /// Block until a poll has something to return. HOLDFAST_CLOSED: the handle was closed.
  func wait() -> Int32 { holdfast_wait(pointer, -1) }

  func close() { holdfast_close(pointer) }

  private static func withText<Request: Encodable>(
    _ request: Request, _ call: (UnsafePointer<CChar>) -> Int32
  ) throws(HoldfastError) -> Int32 {
    let text: [UInt8]
    do { text = try Writer.text(request) } catch {
      throw HoldfastError(unwritable: error)
    }
    return text.withUnsafeBytes { bytes in
      // The text has a NUL at its end at least, so there is an address.
      bytes.assumingMemoryBound(to: CChar.self).baseAddress.map(call) ?? HOLDFAST_INTERNAL
    }
  }

  private static func reply<Reply: Readable>(
    _ status: Int32, _ text: UnsafeMutablePointer<CChar>?
  ) throws(HoldfastError) -> Reply {
    defer { holdfast_free(text) }
    guard let text else { throw HoldfastError(withoutReply: status) }
    do {
      if status == HOLDFAST_OK { return try read(text, strlen(text)) }
      let failure: ErrorReply = try read(text, strlen(text))
      throw HoldfastError(status: status, fault: failure.error)
    } catch let error as HoldfastError {
      throw error
    } catch {
      throw HoldfastError(error as? Unreadable ?? Unreadable(what: "\(Reply.self)"))
    }
  }
}

extension HoldfastError {
  /// A request that JSON cannot hold.
  fileprivate init(unwritable error: any Error) {
    if let number = error as? Writer.NoNumber {
      self.init(
        HOLDFAST_INVALID, .requestInvalidValue, "\(number.value) is no number of JSON",
        field: number.field)
    } else {
      self.init(HOLDFAST_INVALID, .requestInvalidValue, "the request is no JSON: \(error)")
    }
  }
}
