public import Base
public import Policy

/// Why no response came, as the host reports it.
public enum TransportError: String, CaseIterable, Sendable {
  case offline, timeout, tls, dns, refused, cancelled
}

/// The response to a request. It is read tolerantly: parts that are malformed are absent.
public final class HTTPResponse {
  /// The HTTP status; 0 when no response came.
  public var status: Int
  /// Why no response came, if the host said so.
  public var error: TransportError?
  /// The object in the body; nil when it holds none, or one that costs too much memory.
  public var body: JSON?
  /// The array in the body; nil when it holds none, or one of too many rows.
  public var rows: ResponseRows?
  /// What the headers `Date`, and `Age` of an answer that a cache has kept, say of the server's clock.
  public var dateMS: Int64?
  /// The shortest delay before the next request that the server asks for.
  public var retryAfterMS: Int64?
  /// It has no body, not even one without meaning.
  public private(set) var isEmpty = true

  private init(status: Int) { self.status = status }

  /// Why no response came, as a sign-in tells it; nil when one came, or there is no network.
  public var silence: SignInCause? {
    guard status == 0 else { return nil }
    switch error {
    case .refused: return .refused
    case .dns: return .dns
    case .tls: return .tls
    case .timeout, nil: return .timeout
    case .offline, .cancelled: return nil
    }
  }

  /// The status, and the word of the host when there is none, for the log.
  public var outcome: String {
    guard status == 0 else { return "status \(status)" }
    return "status 0, " + (error ?? .timeout).rawValue
  }

  /// The response that is assumed when none came in time.
  public static var timedOut: HTTPResponse { HTTPResponse(status: 0) }

  /// Reads the request of `holdfast_complete`: `status`, `headers` and `body`, or `error`. `nowMS`
  /// is the estimate of the server's time, which is used when the response has no date. A body of
  /// more than `most` values, or rows, counts as no JSON.
  public static func read(
    _ fields: Fields, nowMS: Int64, most: Int = JSON.maxValues
  ) throws(Failure) -> HTTPResponse {
    if let error = try fields.choice(ifPresent: "error", TransportError.self) {
      for name in ["status", "headers", "body"] as [StaticCString]
      where fields.optional(name) != nil {
        throw fields.invalid(name, "not together with \"error\"")
      }
      let response = HTTPResponse(status: 0)
      response.error = error
      return response
    }
    let response = HTTPResponse(status: Int(try fields.integer("status", in: 100...599)))
    let headers = try Headers(fields)
    if let body = fields.optional("body") {
      guard body.kind == .string else { throw fields.wrongType("body", "a string") }
      response.read(body, most, total: headers.value("content-range").flatMap { total($0) })
    }
    let ageS = headers.value("age").flatMap { RetryAfter.seconds($0) } ?? 0
    response.dateMS = headers.value("date").flatMap { HTTPDate.parse($0) }.map { $0 + 1000 * ageS }
    response.retryAfterMS = headers.value("retry-after").flatMap {
      RetryAfter.parse(
        $0, serverNowMS: response.dateMS ?? nowMS,
        longestMS: response.dateMS == nil ? Backoff.maxStepMS : RetryAfter.maxMS)
    }
    return response
  }

  /// The facts that `Policy` classifies.
  public var facts: ResponseFacts {
    let error = ServerError.read(body)
    return ResponseFacts(
      status: status, code: error.code, oauthError: body?.string("error"),
      description: error.message, isServerJSON: body != nil || rows != nil)
  }

  /// The number behind the slash of `Content-Range: 0-24/3573`; nil for the star of an unknown one.
  private static func total(_ range: String) -> Int? {
    let text = Array(range.utf8)
    guard let slash = text.lastIndex(of: UInt8(ascii: "/")) else { return nil }
    let digits = text[(slash + 1)...]
    guard (1...9).contains(digits.count), digits.allSatisfy({ ASCII.isDigit($0) }) else {
      return nil
    }
    return digits.reduce(0) { 10 * $0 + Int($1 - UInt8(ascii: "0")) }
  }

  private func read(_ string: JSON, _ most: Int, total: Int?) {
    _ = string.withUTF8 { (bytes) -> Void in
      isEmpty = bytes.isEmpty
      // Some servers begin with the mark of UTF-8.
      let isMarked = bytes.starts(with: [0xEF, 0xBB, 0xBF])
      let text = UnsafeRawBufferPointer(rebasing: bytes[(isMarked ? 3 : 0)...])
      if let array = JSONRows(text) {
        rows = ResponseRows(array, in: string, most: most, total: total)
        return
      }
      // An error that is given twice proves nothing.
      let dialect: JSON.Dialect = (200..<300).contains(status) ? .tolerant : .strict
      let read = try? JSON.receive(text, dialect, most: most, bytes: JSON.mostCost(text))
      if let value = read?.value, value.kind == .object { body = value }
    }
  }
}

/// The headers of a response; names are compared without regard to case.
private struct Headers {
  private var all: [(name: [UInt8], value: String)] = []

  init(_ fields: Fields) throws(Failure) {
    guard let headers = fields.optional("headers") else { return }
    guard headers.kind == .object else { throw fields.wrongType("headers", "an object") }
    for (name, value) in headers.members {
      guard let text = value.string else {
        throw Failure(
          .requestWrongType, "a string is expected",
          field: fields.pointer("headers") + "/" + JSONPointer.escape(name))
      }
      all.append((name: name.utf8.map { ASCII.lowered($0) }, value: text))
    }
  }

  /// `name` is given in lower case.
  func value(_ name: String) -> String? {
    let wanted = Array(name.utf8)
    return all.first { $0.name == wanted }?.value
  }
}
