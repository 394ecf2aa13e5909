"""`HttpTransport` against real sockets."""

from __future__ import annotations

import contextlib
import http.server
import socket
import ssl
import threading
import time
from collections.abc import Iterator
from typing import cast

import pytest
from holdfast import HttpTransport
from holdfast.transport import Answer, failure, folded, text
from holdfast.types import HttpRequest


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        if self.path == "/slow":
            time.sleep(0.5)
        if self.path == "/moved":
            self.send_response(302)
            self.send_header("Location", "/elsewhere")
            self.end_headers()
            return
        body = b"\xff\xfe" if self.path == "/binary" else b'{"path":"' + self.path.encode() + b'"}'
        self.send_response(200)
        self.send_header("X-Twice", "a")
        self.send_header("X-Twice", "b")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_POST(self) -> None:
        size = int(self.headers["Content-Length"])
        body = self.rfile.read(size)
        self.send_response(201)
        self.end_headers()
        self.wfile.write(self.headers["X-Mine"].encode() + b" " + body)

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture(scope="module")
def base() -> Iterator[str]:
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def request(url: str, **changes: object) -> HttpRequest:
    value = {
        "id": 1,
        "purpose": "pull",
        "method": "GET",
        "url": url,
        "headers": {},
        "body": None,
        "timeout_ms": 2000,
    }
    return cast(HttpRequest, value | changes)


def test_an_answer_has_status_headers_and_body(base: str) -> None:
    answer = HttpTransport()(request(f"{base}/a?b=c%2Bd"))
    assert (answer["status"], answer["body"]) == (200, '{"path":"/a?b=c%2Bd"}')
    assert answer["headers"]["x-twice"] == "a, b"


def test_a_body_and_headers_are_sent(base: str) -> None:
    sent = request(base, method="POST", body="blåbær", headers={"X-Mine": "yes"})
    answer = HttpTransport()(sent)
    assert (answer["status"], answer["body"]) == (201, "yes blåbær")


def test_redirects_are_answers(base: str) -> None:
    answer = HttpTransport()(request(f"{base}/moved"))
    assert (answer["status"], answer["headers"]["location"]) == (302, "/elsewhere")


def test_a_body_that_is_not_utf8_is_null(base: str) -> None:
    assert HttpTransport()(request(f"{base}/binary"))["body"] is None


def test_a_timeout_is_an_answer(base: str) -> None:
    assert HttpTransport()(request(f"{base}/slow", timeout_ms=100)) == {"error": "timeout"}


def test_a_refused_connection_is_an_answer() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
    assert HttpTransport()(request(f"http://127.0.0.1:{port}/")) == {"error": "refused"}


def test_tls_to_a_plain_server_is_an_answer(base: str) -> None:
    answer = HttpTransport()(request(base.replace("http:", "https:")))
    assert answer == {"error": "tls"}


@pytest.mark.parametrize(
    ("error", "word"),
    [
        (socket.gaierror(-2, "Name or service not known"), "dns"),
        (ssl.SSLCertVerificationError("self-signed"), "tls"),
        (TimeoutError(), "timeout"),
        (ConnectionRefusedError(), "refused"),
        (ConnectionResetError(), "offline"),
        (OSError(101, "Network is unreachable"), "offline"),
        (ValueError("odd"), "offline"),
    ],
)
def test_exceptions_map_to_error_values(error: Exception, word: str) -> None:
    assert failure(error) == word


def test_equal_headers_are_joined_and_text_is_decoded() -> None:
    assert folded([("A", "1"), ("a", "2"), ("B", "3")]) == {"a": "1, 2", "b": "3"}
    assert text("å".encode()) == "å"
    assert text(b"\xe5") is None


class Proxy(http.server.BaseHTTPRequestHandler):
    """A proxy that answers itself and records its requests."""

    asked: list[tuple[str, str, str | None]]

    def do_GET(self) -> None:
        self.asked.append((self.command, self.path, self.headers["Proxy-Authorization"]))
        self.send_response(200 if self.command == "GET" else 403)
        self.end_headers()

    do_CONNECT = do_GET  # noqa: N815 - http.server's naming

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def proxy(monkeypatch: pytest.MonkeyPatch) -> Iterator[type[Proxy]]:
    Proxy.asked = []
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Proxy)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    for scheme in ("http", "https"):
        named = f"http://me:p%40ss@127.0.0.1:{server.server_port}"
        monkeypatch.setenv(f"{scheme}_proxy", named)
    monkeypatch.setenv("no_proxy", "direct.example")
    yield Proxy
    server.shutdown()
    server.server_close()


def test_http_goes_through_the_proxy_of_the_environment(proxy: type[Proxy]) -> None:
    assert HttpTransport()(request("http://far.example/a?b=c"))["status"] == 200
    assert proxy.asked == [("GET", "http://far.example/a?b=c", "Basic bWU6cEBzcw==")]


def test_https_goes_through_a_tunnel_of_the_proxy(proxy: type[Proxy]) -> None:
    answer = HttpTransport()(request("https://far.example/a?b=c"))
    assert answer == {"error": "offline"}, "this proxy opens no tunnel"
    assert proxy.asked == [("CONNECT", "far.example:443", "Basic bWU6cEBzcw==")]


def test_no_proxy_where_the_environment_says_so(proxy: type[Proxy]) -> None:
    assert "error" in HttpTransport()(request("http://direct.example/", timeout_ms=500))
    assert proxy.asked == []


def answer_of(
    *parts: bytes, pause_s: float = 0, transport: HttpTransport | None = None, **changes: object
) -> Answer:
    """The answer from a server that sends these parts, with a pause after each."""
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        link, _ = listener.accept()
        with link, contextlib.suppress(OSError):
            link.recv(65536)
            for part in parts:
                link.sendall(part)
                time.sleep(pause_s)

    threading.Thread(target=serve, daemon=True).start()
    try:
        send = transport or HttpTransport()
        return send(request(f"http://127.0.0.1:{listener.getsockname()[1]}/", **changes))
    finally:
        listener.close()


@pytest.mark.parametrize("where", ["status", "headers", "body"])
def test_b1_a_trickled_answer_ends_at_its_deadline(where: str) -> None:
    """Each byte began the time-out anew: an answer could hang for hours."""
    head = b"HTTP/1.1 200 OK\r\nContent-Length: 500\r\n"
    whole = {"status": head, "headers": head + b"X: " + b"x" * 500, "body": head + b"\r\n"}[where]
    fixed = 0 if where == "status" else len(head) + 2
    parts = [whole[:fixed], *(bytes([byte]) for byte in (whole + b"x" * 500)[fixed:])]
    before = time.monotonic()
    answer = answer_of(*parts, pause_s=0.1, timeout_ms=600)
    assert answer == {"error": "timeout"}
    assert time.monotonic() - before < 2


def test_b1_a_body_over_the_limit_is_refused() -> None:
    """There was no limit on the size of a response."""
    head = b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n"
    transport = HttpTransport(body_limit=1000)
    assert answer_of(head + b"x" * 1000, transport=transport)["body"] == "x" * 1000
    assert answer_of(head + b"x" * 1001, transport=transport) == {"error": "refused"}


@pytest.mark.parametrize(
    "head", [b"HTTP/1.1 600 Odd\r\n", b"HTTP/1.1 999 Odd\r\n", b"HTTP/1.1 200 OK\r\nX: a\0b\r\n"]
)
def test_b1_an_answer_that_is_no_http_is_refused(head: bytes) -> None:
    """A status of 600 or more, or a NUL in a header, ended the Runner for good."""
    assert answer_of(head + b"Content-Length: 2\r\n\r\n{}") == {"error": "refused"}


def test_atk_8_any_status_is_an_answer() -> None:
    """ATK-8: every status of three digits, and some that are none."""
    listener = socket.create_server(("127.0.0.1", 0))
    texts = [*(f"{number:03}" for number in range(1000)), "-1", "1000", "2", "abc", ""]
    transport = HttpTransport()

    def serve() -> None:
        while True:
            try:
                link, _ = listener.accept()
            except OSError:
                return
            with link, contextlib.suppress(OSError):
                link.recv(65536)
                head = f"HTTP/1.1 {sending[0]} Odd\r\nConnection: close\r\nContent-Length: 2"
                link.sendall(head.encode() + b"\r\n\r\n{}")

    sending = [""]
    threading.Thread(target=serve, daemon=True).start()
    try:
        for status in texts:
            sending[0] = status
            answer = transport(request(f"http://127.0.0.1:{listener.getsockname()[1]}/"))
            if "error" in answer:
                assert answer["error"] in {"offline", "timeout", "refused"}, status
                assert not "200" <= status <= "599", status
            else:
                assert answer["status"] == int(status), status
                assert 100 <= answer["status"] <= 599
    finally:
        listener.close()


@pytest.mark.parametrize("where", ["headers", "one header", "body", "chunks"])
def test_atk_8_an_endless_answer_ends(where: str) -> None:
    """ATK-8: a server that never ends its answer is refused before the time-out."""
    head = b"HTTP/1.1 200 OK\r\n"
    chunk = b"3E8\r\n" + b"x" * 1000 + b"\r\n"
    begin, more = {
        "headers": (head, b"X: y\r\n" * 1000),
        "one header": (head + b"X: ", b"y" * 100_000),
        "body": (head + b"Connection: close\r\n\r\n", b"x" * 10_000),
        "chunks": (head + b"Transfer-Encoding: chunked\r\n\r\n", chunk),
    }[where]
    before = time.monotonic()
    transport = HttpTransport(body_limit=1_000_000)
    answer = answer_of(begin, *([more] * 5000), transport=transport, timeout_ms=20_000)
    assert answer in ({"error": "refused"}, {"error": "offline"})
    assert time.monotonic() - before < 10


def test_b1_a_body_with_a_nul_is_no_text() -> None:
    """A NUL in a body ended the Runner for good."""
    answer = answer_of(b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\na\0b")
    assert (answer["status"], answer["body"]) == (200, None)


def test_b1_a_body_that_breaks_off_is_a_broken_connection() -> None:
    """The part that had arrived was passed on as the whole body."""
    head = b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n"
    assert answer_of(head + b"[]") == {"error": "offline"}
