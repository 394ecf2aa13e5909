"""`HttpTransport` against real sockets."""

from __future__ import annotations

import asyncio
import contextlib
import http.server
import itertools
import os
import socket
import ssl
import struct
import subprocess
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import cast

import pytest
from holdfast import AsyncHoldfast, Holdfast, HttpTransport, Runner, connections
from holdfast.transport import Answer, failure, folded, text
from holdfast.types import HttpRequest
from patience import patience
from refused import refused_port

#: The limit of a request that will be too late, but is sent before.
SHORT_MS = int(patience(1) * 1000)


class Handler(http.server.BaseHTTPRequestHandler):
    release: threading.Event

    def do_GET(self) -> None:
        if self.path == "/silent":
            self.release.wait()
            return
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
    Handler.release = threading.Event()
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    Handler.release.set()
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
        "timeout_ms": int(patience(60) * 1000),
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
    assert HttpTransport()(request(f"{base}/silent", timeout_ms=100)) == {"error": "timeout"}


def test_a_refused_connection_is_an_answer() -> None:
    with refused_port() as port:
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
    answer: bytes,
    more: Iterable[bytes] = (),
    *,
    pause_s: float = 0,
    transport: HttpTransport | None = None,
    **changes: object,
) -> Answer:
    """The answer from a server that sends `answer`, and then each of `more` after a pause.

    `more` may have no end: then the client ends the connection, or this fails.
    """
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        link, _ = listener.accept()
        with link, contextlib.suppress(OSError):
            link.recv(65536)
            link.sendall(answer)
            for part in more:
                time.sleep(pause_s)
                link.sendall(part)

    serving = threading.Thread(target=serve, daemon=True)
    serving.start()
    try:
        send = transport or HttpTransport()
        return send(request(f"http://127.0.0.1:{listener.getsockname()[1]}/", **changes))
    finally:
        serving.join(patience(60))
        listener.close()
        assert not serving.is_alive(), "the client keeps the connection"


@pytest.mark.parametrize("where", ["status", "headers", "body"])
def test_b1_a_trickled_answer_ends_at_its_deadline(where: str) -> None:
    """Each byte began the time-out anew: an answer could hang for hours."""
    head = b"HTTP/1.1 200 OK\r\nContent-Length: 60000\r\n"
    at_once = {"status": b"", "headers": head + b"X:", "body": head + b"\r\n"}[where]
    dripping = head if where == "status" else b""
    drops = map(bytes, zip(itertools.chain(dripping, itertools.repeat(ord("x")))))
    answer = answer_of(at_once, drops, pause_s=0.1, timeout_ms=600)
    assert answer == {"error": "timeout"}


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
    transport = HttpTransport(body_limit=1_000_000)
    answer = answer_of(begin, itertools.repeat(more), transport=transport)
    assert answer in ({"error": "refused"}, {"error": "offline"})


def test_b1_a_body_with_a_nul_is_no_text() -> None:
    """A NUL in a body ended the Runner for good."""
    answer = answer_of(b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\na\0b")
    assert (answer["status"], answer["body"]) == (200, None)


def test_b1_a_body_that_breaks_off_is_a_broken_connection() -> None:
    """The part that had arrived was passed on as the whole body."""
    head = b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n"
    assert answer_of(head + b"[]") == {"error": "offline"}


# ---- connections that are kept ----

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"


class Counting:
    """A server that counts its connections and requests, and answers by a list of bytes.

    One entry for each request; None closes the connection without an answer. After an answer, the
    connection stays open, unless `hang_up` says that the server ends it.
    """

    def __init__(self, answers: list[bytes | None] | None = None, hang_up: bool = False) -> None:
        self.answers = answers
        self.hang_up = hang_up
        self.connections = 0
        self.requests: list[bytes] = []
        self.ended = threading.Semaphore(0)
        self.context: ssl.SSLContext | None = None
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                link, _ = self.listener.accept()
                self.connections += 1
                threading.Thread(target=self.serve, args=(link,), daemon=True).start()

    def serve(self, link: socket.socket) -> None:
        with contextlib.suppress(OSError):
            if self.context is not None:
                link = self.context.wrap_socket(link, server_side=True)
            with link:
                while (received := self.request(link)) and self.answer(link, received):
                    pass
        self.ended.release()

    def request(self, link: socket.socket) -> bytes:
        received = b""
        while b"\r\n\r\n" not in received or not received.endswith((b"\r\n\r\n", b"body")):
            part = link.recv(65536)
            if not part:
                return b""
            received += part
        return received

    def answer(self, link: socket.socket, received: bytes) -> bool:
        self.requests.append(received.split(b" ", 1)[0])
        answer = OK if self.answers is None else self.answers.pop(0)
        if answer is None:
            return False
        link.sendall(answer)
        return not self.hang_up

    def url(self) -> str:
        scheme = "http" if self.context is None else "https"
        return f"{scheme}://localhost:{self.port}/"

    def close(self) -> None:
        self.listener.close()


Serving = Callable[..., Counting]


@pytest.fixture
def serving() -> Iterator[Serving]:
    servers: list[Counting] = []

    def start(answers: list[bytes | None] | None = None, *, hang_up: bool = False) -> Counting:
        servers.append(Counting(answers, hang_up))
        return servers[-1]

    yield start
    for server in servers:
        server.close()


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A self-signed certificate for localhost, with its key, in one file."""
    folder = tmp_path_factory.mktemp("tls")
    subject = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"]
    kind = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2"]
    files = ["-keyout", str(folder / "key"), "-out", str(folder / "crt")]
    command = ["openssl", "req", "-x509", *kind, *subject, *files]
    subprocess.run(command, check=True, capture_output=True)
    both = folder / "both.pem"
    both.write_bytes((folder / "key").read_bytes() + (folder / "crt").read_bytes())
    return both


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_lock_3_twenty_requests_use_two_connections(
    scheme: str, serving: Serving, certificate: Path
) -> None:
    """Finding 3: every request had a connection of its own, and a handshake."""
    server = serving()
    transport = HttpTransport()
    if scheme == "https":
        server.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        server.context.load_cert_chain(certificate)
        transport = HttpTransport(ssl.create_default_context(cafile=certificate))
    answers: list[Answer] = []

    def work() -> None:
        for number in range(10):
            method, body = ("POST", "body") if number % 2 else ("GET", None)
            sent = request(server.url(), method=method, body=body)
            answers.append(transport(sent))

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [answer["status"] for answer in answers] == [200] * 20
    assert server.connections <= 2
    transport.close()


def test_lock_3_a_connection_that_was_closed_while_idle_is_not_used(serving: Serving) -> None:
    """Finding 3: a kept connection that the server has ended is noticed before the next request."""
    server = serving(hang_up=True)
    transport = HttpTransport()
    for method, body in [("GET", None), ("POST", "body"), ("GET", None)]:
        answer = transport(request(server.url(), method=method, body=body))
        assert answer["status"] == 200
        server.ended.acquire(timeout=patience(60))
    assert server.requests == [b"GET", b"POST", b"GET"], "nothing was sent twice"
    assert server.connections == 3


def test_lock_3_a_get_that_meets_the_end_of_its_connection_is_sent_again(serving: Serving) -> None:
    """Finding 3: the server ends the connection just as the request arrives."""
    server = serving([OK, None, OK])
    transport = HttpTransport()
    assert transport(request(server.url()))["status"] == 200
    assert transport(request(server.url()))["status"] == 200
    assert (server.requests, server.connections) == ([b"GET"] * 3, 2)


def test_lock_3_a_get_is_sent_again_once(serving: Serving) -> None:
    """Finding 3: a server that ends every connection gets two requests, not more."""
    server = serving([OK, None, None, None])
    transport = HttpTransport()
    assert transport(request(server.url()))["status"] == 200
    assert transport(request(server.url())) == {"error": "offline"}
    assert (server.requests, server.connections) == ([b"GET"] * 3, 2)


@pytest.mark.parametrize("method", ["POST", "PATCH"])
def test_lock_3_a_post_that_meets_the_end_of_its_connection_is_not_sent_again(
    method: str, serving: Serving
) -> None:
    """Finding 3: the server may have acted on it. The library asks, or sends it under its id."""
    server = serving([OK, None])
    transport = HttpTransport()
    assert transport(request(server.url()))["status"] == 200
    sent = request(server.url(), method=method, body="body")
    assert transport(sent) == {"error": "offline"}
    assert (server.requests, server.connections) == ([b"GET", method.encode()], 1)


def test_lock_3_a_new_connection_that_ends_is_a_failure(serving: Serving) -> None:
    """Finding 3: only a kept connection excuses a second attempt."""
    server = serving([None])
    assert HttpTransport()(request(server.url())) == {"error": "refused"}
    assert server.requests == [b"GET"]


@pytest.mark.parametrize("end", ["closed", "reset"])
@pytest.mark.parametrize(("scheme", "word"), [("http", "refused"), ("https", "tls")])
def test_a_port_that_speaks_no_http_is_no_bad_weather(scheme: str, word: str, end: str) -> None:
    """A database's port, for instance: it ends every connection that begins with a request."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            with contextlib.suppress(OSError):
                while True:
                    link, _ = listener.accept()
                    link.recv(10_000)
                    if end == "reset":
                        link.setsockopt(
                            socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0)
                        )
                    link.close()

        threading.Thread(target=serve, daemon=True).start()
        url = f"{scheme}://127.0.0.1:{listener.getsockname()[1]}/"
        for method in ("GET", "POST"):
            assert HttpTransport()(request(url, method=method)) == {"error": word}
        listener.shutdown(socket.SHUT_RDWR)


def test_lock_3_a_post_takes_only_a_connection_that_was_just_used(
    serving: Serving, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Finding 3: servers end idle connections; a POST must not meet that."""
    monkeypatch.setattr(connections, "FRESH_S", -1.0)
    server = serving()
    transport = HttpTransport()
    for method, count in [("GET", 1), ("POST", 2), ("GET", 2)]:
        body = "body" if method == "POST" else None
        assert transport(request(server.url(), method=method, body=body))["status"] == 200
        assert server.connections == count


def test_lock_3_a_connection_is_not_kept_for_long(
    serving: Serving, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Finding 3: routers forget idle connections without a word."""
    monkeypatch.setattr(connections.Connection, "idle_s", lambda _: connections.KEEP_S + 1)
    server = serving()
    transport = HttpTransport()
    for _ in range(2):
        assert transport(request(server.url()))["status"] == 200
    assert server.connections == 2


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\n{}",
        b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\n{}",
        b"HTTP/1.1 200 OK\r\nKeep-Alive: timeout=1\r\nContent-Length: 2\r\n\r\n{}",
        b"HTTP/1.1 103 Early\r\n\r\n",
        OK + b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nsmuggled!" + b" " * 100_000,
    ],
    ids=["close", "HTTP/1.0", "Keep-Alive", "not the last response", "bytes after the response"],
)
def test_lock_3_a_connection_that_cannot_carry_another_response_is_not_kept(
    answer: bytes, serving: Serving
) -> None:
    """Finding 3: what is left of one response is not taken for the next one."""
    server = serving([answer, OK])
    transport = HttpTransport()
    transport(request(server.url()))
    assert transport(request(server.url()))["body"] == "{}"
    assert server.connections == 2


def test_lock_3_a_refused_or_late_response_ends_its_connection(serving: Serving) -> None:
    """Finding 3: a connection in the middle of a response is not used again."""
    head = b"HTTP/1.1 200 OK\r\nContent-Length: 1001\r\n\r\n"
    server = serving([head + b"x" * 1001, head, OK])
    transport = HttpTransport(body_limit=1000)
    assert transport(request(server.url())) == {"error": "refused"}
    assert transport(request(server.url(), timeout_ms=SHORT_MS)) == {"error": "timeout"}
    assert transport(request(server.url()))["status"] == 200
    assert server.connections == 3


def test_lock_3_a_time_out_gives_up_the_other_idle_connections(serving: Serving) -> None:
    """Finding 3: after a change of the network none of them works, and each would cost a wait."""
    silent = b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n"
    server = serving([OK, OK, silent, OK])
    transport = HttpTransport()
    first, second = (
        transport.connections.new(connections.Route("http", "localhost", server.port, None))
        for _ in range(2)
    )
    for connection in (first, second):
        connection.link.request("GET", "/")
        response = connection.link.getresponse()
        response.read()
        transport.connections.keep(connection, response)
    assert server.connections == 2
    assert transport(request(server.url(), timeout_ms=SHORT_MS)) == {"error": "timeout"}
    assert server.connections == 2
    assert transport(request(server.url()))["status"] == 200
    assert server.connections == 3


def test_lock_3_idle_connections_are_few_and_end_with_the_transport(serving: Serving) -> None:
    """Finding 3: at most eight are kept, and close() ends them."""
    server = serving()
    kept = connections.Connections(None)
    route = connections.Route("http", "localhost", server.port, None)
    taken = [kept.take(route) for _ in range(12)]
    for connection in taken:
        connection.link.request("GET", "/")
        response = connection.link.getresponse()
        response.read()
        kept.keep(connection, response)
    for _ in range(4):
        assert server.ended.acquire(timeout=patience(60))
    assert not server.ended.acquire(blocking=False)
    kept.close()
    for _ in range(8):
        assert server.ended.acquire(timeout=patience(60))


def test_lock_3_a_forked_child_has_connections_of_its_own(serving: Serving) -> None:
    """Finding 3: parent and child on one connection would read each other's responses."""
    server = serving()
    transport = HttpTransport()
    assert transport(request(server.url()))["status"] == 200
    child = os.fork()
    if child == 0:
        try:
            good = transport(request(server.url())).get("status") == 200
            good = good and transport(request(server.url())).get("status") == 200
        finally:
            os._exit(0 if good else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert server.connections == 2
    assert transport(request(server.url()))["status"] == 200
    assert server.connections == 2, "the child did not end the parent's connection"


def test_lock_3_a_tunnel_of_a_proxy_is_kept(
    serving: Serving, certificate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Finding 3: a tunnel carries many requests, and only to its own server."""
    tunnel = b"HTTP/1.1 200 Connection established\r\n\r\n"
    proxy = serving([tunnel])
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    answer = proxy.answer

    def relay(link: socket.socket, received: bytes) -> bool:
        answer(link, received)
        with context.wrap_socket(link, server_side=True) as inner:
            while proxy.request(inner):
                inner.sendall(OK)
        return False

    monkeypatch.setattr(proxy, "answer", relay)
    monkeypatch.setenv("https_proxy", f"http://localhost:{proxy.port}")
    monkeypatch.setenv("no_proxy", "direct.example")
    transport = HttpTransport(ssl.create_default_context(cafile=certificate))
    for _ in range(3):
        assert transport(request("https://localhost/"))["status"] == 200
    assert (proxy.connections, proxy.requests) == (1, [b"CONNECT"])
    transport.close()


def test_lock_3_a_runner_that_stops_ends_its_connections(serving: Serving) -> None:
    """Finding 3: kept connections do not outlive their owner."""
    server = serving()
    runner = Runner(cast(Holdfast, None))
    assert runner.transport(request(server.url()))["status"] == 200
    runner.stop()
    assert server.ended.acquire(timeout=patience(60))


def test_lock_3_an_async_handle_that_closes_ends_its_connections(serving: Serving) -> None:
    """Finding 3: kept connections do not outlive their owner."""
    server = serving()

    async def main() -> None:
        app = AsyncHoldfast({})
        assert (await app._transport(request(server.url())))["status"] == 200
        await app.close()

    asyncio.run(main())
    assert server.ended.acquire(timeout=patience(60))


@pytest.mark.parametrize("head", ["Connection: close", "Connection: keep-alive"])
def test_lock_3_the_thread_of_a_dripping_answer_ends(head: str) -> None:
    """Finding 3: the caller got its time-out, but the thread read on for as long as bytes came."""
    begun = threading.Event()
    stop = threading.Event()
    listener = socket.create_server(("127.0.0.1", 0))

    def drip() -> None:
        link, _ = listener.accept()
        with link, contextlib.suppress(OSError):
            link.recv(65536)
            link.sendall(f"HTTP/1.1 200 OK\r\nContent-Length: 60000\r\n{head}\r\n\r\n".encode())
            begun.set()
            while not stop.wait(0.05):
                link.sendall(b"x")

    threading.Thread(target=drip, daemon=True).start()
    url = f"http://127.0.0.1:{listener.getsockname()[1]}/"
    before = set(threading.enumerate())
    answer = HttpTransport()(request(url, timeout_ms=SHORT_MS))
    try:
        assert begun.is_set()
        assert answer == {"error": "timeout"}
        for thread in set(threading.enumerate()) - before:
            if thread.name == "holdfast-http-request":
                thread.join(patience(60))
                assert not thread.is_alive()
    finally:
        stop.set()
        listener.close()
