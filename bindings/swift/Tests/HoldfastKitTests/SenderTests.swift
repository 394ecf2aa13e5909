import Foundation
import Testing

@testable import HoldfastKit

/// A server that gives every connection the same bytes, or silence.
final class RawServer: Sendable {
  let url: String
  /// One element for each connection.
  let connections: AsyncStream<Void>
  private let descriptor: Int32

  init(_ answer: String?) throws {
    descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_addr.s_addr = inet_addr("127.0.0.1")
    var length = socklen_t(MemoryLayout<sockaddr_in>.size)
    let listening = descriptor
    let port = withUnsafeMutablePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { generic -> Int32 in
        bind(listening, generic, length) + listen(listening, 8)
          + getsockname(listening, generic, &length)
      }
    }
    try #require(port == 0)
    url = "http://127.0.0.1:\(UInt16(bigEndian: address.sin_port))/"
    let (stream, accepted) = AsyncStream<Void>.makeStream()
    connections = stream
    Thread.detachNewThread {
      while case let connection = accept(listening, nil, nil), connection >= 0 {
        accepted.yield()
        guard let answer else { continue }
        var room = [UInt8](repeating: 0, count: 4096)
        _ = recv(connection, &room, room.count, 0)
        _ = send(connection, answer, answer.utf8.count, Int32(MSG_NOSIGNAL))
        close(connection)
      }
    }
  }

  deinit {
    shutdown(descriptor, Int32(SHUT_RDWR))
    close(descriptor)
  }
}

func request(_ url: String, timeoutMs: Int = 60_000) -> HttpRequest {
  HttpRequest(
    id: 1, purpose: .pull, method: .get, url: url, headers: ["apikey": "k"], body: nil,
    timeoutMs: timeoutMs)
}

@Suite struct SenderTests {
  @Test func aRedirectIsAnAnswer() async throws {
    let server = try RawServer(
      "HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:9/\r\nContent-Length: 2\r\n\r\nhi")
    let outcome = await URLSessionSender().send(request(server.url))
    let headers = ["location": "http://127.0.0.1:9/", "content-length": "2"]
    #expect(outcome == .answer(status: 302, headers: headers, body: "hi"))
  }

  @Test func aServerThatIsSilentTimesOut() async throws {
    let server = try RawServer(nil)
    let outcome = await URLSessionSender().send(request(server.url, timeoutMs: 300))
    #expect(outcome == .failure(.timeout))
  }

  @Test func aCancelledRequestEnds() async throws {
    let server = try RawServer(nil)
    let sending = Task { await URLSessionSender().send(request(server.url)) }
    for await _ in server.connections { break }
    sending.cancel()
    #expect(await sending.value == .failure(.cancelled))
  }

  @Test func aPortWithoutAServerIsRefused() async {
    #expect(await URLSessionSender().send(request("http://127.0.0.1:9/")) == .failure(.refused))
  }

  @Test(arguments: ["SSH-2.0-OpenSSH_9.2\r\n", "\u{1}\u{2}\u{3}", ""])
  func aPortThatSpeaksNoHTTPIsRefused(answer: String) async throws {
    let server = try RawServer(answer)
    #expect(await URLSessionSender().send(request(server.url)) == .failure(.refused))
  }

  @Test func aHostWithoutAnAddressIsToldAsSuch() async {
    #expect(await URLSessionSender().send(request("http://nowhere.invalid/")) == .failure(.dns))
  }

  @Test func aBodyOverTheLimitIsRefused() async throws {
    let body = String(repeating: "x", count: 2000)
    let server = try RawServer("HTTP/1.1 200 OK\r\nContent-Length: 2000\r\n\r\n" + body)
    let sender = URLSessionSender(bodyLimit: 1000)
    #expect(await sender.send(request(server.url)) == .failure(.refused))
  }
}
