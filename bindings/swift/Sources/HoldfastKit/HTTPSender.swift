import Foundation

#if canImport(FoundationNetworking)
  import FoundationNetworking
#endif

/// The outcome of a request: an answer of the server, or the reason why there is none.
public enum HTTPOutcome: Sendable, Hashable {
  /// `body` is nil if it is not UTF-8 or holds a NUL. The names of headers are in lower case.
  case answer(status: Int, headers: [String: String], body: String?)
  case failure(TransportError)
}

/// Sends the library's requests. It sends each once and follows no redirect, because requests carry
/// credentials. It gives up after `timeoutMs`, and when its task is cancelled.
public protocol HTTPSender: Sendable {
  func send(_ request: HttpRequest) async -> HTTPOutcome
}

/// A sender over `URLSession`: no redirects, no cookies, no cache, no stored credentials.
public final class URLSessionSender: HTTPSender {
  private let session: URLSession
  private let exchanges = Exchanges()
  private let bodyLimit: Int

  /// `bodyLimit`: the most bytes of one response.
  public init(bodyLimit: Int = 8 << 20) {
    let configuration = URLSessionConfiguration.ephemeral
    configuration.httpCookieStorage = nil
    configuration.httpShouldSetCookies = false
    configuration.urlCache = nil
    configuration.urlCredentialStorage = nil
    configuration.requestCachePolicy = .reloadIgnoringLocalCacheData
    session = URLSession(configuration: configuration, delegate: exchanges, delegateQueue: nil)
    self.bodyLimit = bodyLimit
  }

  deinit { session.invalidateAndCancel() }

  public func send(_ request: HttpRequest) async -> HTTPOutcome {
    guard let url = URL(string: request.url) else { return .failure(.refused) }
    var sent = URLRequest(url: url)
    sent.httpMethod = request.method.rawValue
    sent.timeoutInterval = Double(request.timeoutMs) / 1000
    for (name, value) in request.headers { sent.setValue(value, forHTTPHeaderField: name) }
    sent.httpBody = request.body.map { Data($0.utf8) }
    let exchange = Exchange(bodyLimit)
    let task = session.dataTask(with: sent)
    return await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        exchanges.add(exchange, task)
        exchange.begin(task, continuation, withinMS: request.timeoutMs)
      }
    } onCancel: {
      exchange.end(.failure(.cancelled))
    }
  }
}

/// The requests under way of a session, by the numbers of their tasks.
private final class Exchanges: NSObject, URLSessionDataDelegate, @unchecked Sendable {
  private let lock = NSLock()
  private var exchanges: [Int: Exchange] = [:]

  func add(_ exchange: Exchange, _ task: URLSessionTask) {
    lock.withLock { exchanges[task.taskIdentifier] = exchange }
  }

  func urlSession(
    _ session: URLSession, task: URLSessionTask,
    willPerformHTTPRedirection response: HTTPURLResponse, newRequest request: URLRequest,
    completionHandler: @escaping @Sendable (URLRequest?) -> Void
  ) {
    completionHandler(nil)
  }

  func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
    lock.withLock { exchanges[dataTask.taskIdentifier] }?.receive(data)
  }

  func urlSession(
    _ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?
  ) {
    let exchange = lock.withLock { exchanges.removeValue(forKey: task.taskIdentifier) }
    exchange?.complete(task.response as? HTTPURLResponse, error)
  }
}

/// One request under way. It ends once: with the answer, the failure, the time, or a cancellation.
private final class Exchange: @unchecked Sendable {
  private let lock = NSLock()
  private let limit: Int
  private var task: URLSessionDataTask?
  private var continuation: CheckedContinuation<HTTPOutcome, Never>?
  private var outcome: HTTPOutcome?
  private var body = Data()

  init(_ limit: Int) { self.limit = limit }

  func begin(
    _ task: URLSessionDataTask, _ continuation: CheckedContinuation<HTTPOutcome, Never>,
    withinMS: Int
  ) {
    let ended: HTTPOutcome? = lock.withLock {
      if outcome == nil {
        self.task = task
        self.continuation = continuation
      }
      return outcome
    }
    if let ended { return continuation.resume(returning: ended) }
    task.resume()
    // URLSession's own time-out begins anew with every byte.
    DispatchQueue.global().asyncAfter(deadline: .now() + .milliseconds(withinMS)) { [weak self] in
      self?.end(.failure(.timeout))
    }
  }

  func end(_ outcome: HTTPOutcome) {
    let (continuation, task) = lock.withLock {
      let waiting = (self.continuation, self.task)
      if self.outcome == nil { self.outcome = outcome }
      (self.continuation, self.task) = (nil, nil)
      return waiting
    }
    guard let continuation else { return }
    continuation.resume(returning: outcome)
    task?.cancel()
  }

  func receive(_ data: Data) {
    let isOver = lock.withLock {
      body.append(data)
      return body.count > limit
    }
    if isOver { end(.failure(.refused)) }
  }

  func complete(_ response: HTTPURLResponse?, _ error: (any Error)?) {
    if let error { return end(.failure(URLErrors.meaning(of: (error as NSError).code))) }
    guard let response else { return end(.failure(.refused)) }
    var headers: [String: String] = [:]
    for (name, value) in response.allHeaderFields {
      headers["\(name)".lowercased()] = "\(value)"
    }
    let bytes = lock.withLock { body }
    let text = bytes.contains(0) ? nil : String(data: bytes, encoding: .utf8)
    end(.answer(status: response.statusCode, headers: headers, body: text))
  }
}

/// What URLSession's errors mean, as a pure function.
public enum URLErrors {
  public static func meaning(of code: Int) -> TransportError {
    switch code {
    case NSURLErrorTimedOut: .timeout
    case NSURLErrorCannotFindHost, NSURLErrorDNSLookupFailed: .dns
    case NSURLErrorCannotConnectToHost, NSURLErrorBadURL, NSURLErrorUnsupportedURL,
      NSURLErrorBadServerResponse, NSURLErrorCannotParseResponse,
      NSURLErrorDataLengthExceedsMaximum:
      .refused
    case NSURLErrorSecureConnectionFailed, NSURLErrorServerCertificateHasBadDate,
      NSURLErrorServerCertificateUntrusted, NSURLErrorServerCertificateHasUnknownRoot,
      NSURLErrorServerCertificateNotYetValid, NSURLErrorClientCertificateRejected,
      NSURLErrorClientCertificateRequired:
      .tls
    case NSURLErrorCancelled: .cancelled
    default: .offline
    }
  }
}
