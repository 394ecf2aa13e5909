"""`HttpTransport` against real sockets."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import os
import re
import socket
import ssl
import struct
import subprocess
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, cast

import pytest
from fake_library import CONFIG, FakeLibrary, opened
from holdfast import AsyncHoldfast, HttpTransport, Library, Runner, connections
from holdfast.transport import failure
from holdfast.types import HttpRequest
from patience import patience
from refused import refused_port

#: The limit of a request that will be too late, but is sent before.
SHORT_MS = int(patience(1) * 1000)
HEAD = b"HTTP/1.1 200 OK\r\n"
OK = HEAD + b"Content-Length: 2\r\n\r\n{}"

#: The bytes of an answer, or its parts one after the other; None ends the connection without one.
Script = bytes | Iterable[bytes] | None


def request(url: str, **changes: object) -> HttpRequest:
    value = {"id": 1, "purpose": "pull", "method": "GET", "url": url, "headers": {}, "body": None}
    return cast(HttpRequest, value | {"timeout_ms": int(patience(60) * 1000)} | changes)


class Server:
    """Counts its connections, keeps its requests, and answers by a list.

    After an answer the connection stays open, unless `hang_up` says that the server ends it.
    """

    def __init__(self, answers: Iterable[Script] | None = None, hang_up: bool = False) -> None:
        self.answers = iter(answers if answers is not None else itertools.repeat(OK))
        self.hang_up = hang_up
        self.connections = 0
        self.requests: list[bytes] = []
        self.begun, self.ended = threading.Event(), threading.Semaphore(0)
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
                while (received := self.read(link)) and self.answer(link, received):
                    pass
        self.ended.release()

    def read(self, link: socket.socket) -> bytes:
        received = b""
        while True:
            head, end, body = received.partition(b"\r\n\r\n")
            length = re.search(rb"(?i)\r\ncontent-length: (\d+)", head)
            if end and len(body) >= (int(length[1]) if length else 0):
                return received
            part = link.recv(65536)
            if not part:
                return b""
            received += part

    def answer(self, link: socket.socket, received: bytes) -> bool:
        self.requests.append(received)
        answer = next(self.answers, None)
        if answer is None:
            return False
        for part in (answer,) if isinstance(answer, bytes) else answer:
            link.sendall(part)
            self.begun.set()
        return not self.hang_up

    @property
    def methods(self) -> list[bytes]:
        return [received.split(b" ", 1)[0] for received in self.requests]

    def url(self, path: str = "/") -> str:
        scheme = "http" if self.context is None else "https"
        return f"{scheme}://localhost:{self.port}{path}"

    def has_ended(self, times: int = 1) -> bool:
        return all(self.ended.acquire(timeout=patience(60)) for _ in range(times))


Serving = Callable[..., Server]


@pytest.fixture
def serving() -> Iterator[Serving]:
    servers: list[Server] = []

    def start(answers: Iterable[Script] | None = None, *, hang_up: bool = False) -> Server:
        servers.append(Server(answers, hang_up))
        return servers[-1]

    yield start
    for server in servers:
        server.listener.close()


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


def server_context(certificate: Path) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    return context


# ---- one request, one answer ----


def test_a_request_and_its_answer_arrive_as_they_are(serving: Serving) -> None:
    body = '{"å":1}'.encode()
    head = b"HTTP/1.1 201 Made\r\nX-Twice: a\r\nx-twice: b\r\nContent-Length: %d\r\n\r\n"
    server = serving([head % len(body) + body])
    sent = request(server.url("/a?b=c%2Bd"), method="POST", body="blå body", headers={"X-My": "y"})
    answer = HttpTransport()(sent)
    assert (answer["status"], answer["body"]) == (201, body.decode())
    assert answer["headers"]["x-twice"] == "a, b"
    [received] = server.requests
    assert received.startswith(b"POST /a?b=c%2Bd HTTP/1.1\r\n")
    assert b"X-My: y\r\n" in received and received.endswith("blå body".encode())


@pytest.mark.parametrize(
    ("head", "body", "answer"),
    [
        (b"302 Moved\r\nLocation: /to\r\nContent-Length: 0", b"", {"status": 302, "body": ""}),
        # A body that is no text is null, one over the limit is refused, and one that breaks off is
        # a broken connection: the part that had arrived was passed on as the whole body
        (b"200 OK\r\nContent-Length: 2", b"\xff\xfe", {"status": 200, "body": None}),
        (b"200 OK\r\nContent-Length: 2", b"a\0", {"status": 200, "body": None}),
        (b"200 OK\r\nConnection: close", b"x" * 1000, {"status": 200, "body": "x" * 1000}),
        (b"200 OK\r\nConnection: close", b"x" * 1001, {"error": "refused"}),
        (b"200 OK\r\nContent-Length: 10", b"[]", {"error": "offline"}),
    ],
)
def test_a_response_and_its_answer(
    head: bytes, body: bytes, answer: dict[str, object], serving: Serving
) -> None:
    server = serving([b"HTTP/1.1 " + head + b"\r\n\r\n" + body], hang_up=True)
    given = HttpTransport(body_limit=1000)(request(server.url()))
    assert given.items() >= answer.items()


def test_a_refused_connection_is_an_answer() -> None:
    with refused_port() as port:
        assert HttpTransport()(request(f"http://127.0.0.1:{port}/")) == {"error": "refused"}


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


@pytest.mark.parametrize("end", ["closed", "reset", "never"])
@pytest.mark.parametrize(("scheme", "word"), [("http", "refused"), ("https", "tls")])
def test_a_port_that_speaks_no_http_is_no_bad_weather(scheme: str, word: str, end: str) -> None:
    """A database's port, for instance, or one of plain HTTP where the URL says https."""
    server = Server()

    def answer(link: socket.socket, received: bytes) -> bool:
        if end == "never":
            link.sendall(b"what?\r\n")
        if end == "reset":
            link.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        return False

    server.answer = answer  # type: ignore[method-assign]
    server.read = lambda link: link.recv(10_000)  # type: ignore[method-assign]
    if end == "never" and scheme == "http":
        word = "offline"
    for method in ("GET", "POST"):
        url = f"{scheme}://127.0.0.1:{server.port}/"
        assert HttpTransport()(request(url, method=method)) == {"error": word}
    server.listener.close()


@pytest.mark.parametrize("where", ["status", "headers", "body", "nothing"])
def test_a_trickled_answer_ends_at_its_deadline(where: str, serving: Serving) -> None:
    """Each byte began the time-out anew, and the thread read on for as long as bytes came."""
    head = HEAD + b"Content-Length: 60000\r\n"
    at_once = {"headers": head + b"X:", "body": head + b"\r\n"}.get(where, b"")

    def drip() -> Iterator[bytes]:
        yield at_once
        drops = itertools.chain(head if where == "status" else b"", itertools.repeat(ord("x")))
        for drop in drops:
            time.sleep(0.05)
            yield b"" if where == "nothing" else bytes([drop])

    server = serving([drip()])
    before = set(threading.enumerate())
    assert HttpTransport()(request(server.url(), timeout_ms=SHORT_MS)) == {"error": "timeout"}
    assert server.begun.is_set()
    for thread in set(threading.enumerate()) - before:
        if thread.name == "holdfast-http-request":
            thread.join(patience(60))
            assert not thread.is_alive()


def test_a_request_that_times_out_before_it_is_connected_is_never_sent(
    serving: Serving, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its user may have cancelled the item meanwhile."""
    looking, found, look = threading.Event(), threading.Event(), socket.getaddrinfo

    def slow(host: str, *more: int) -> list[Any]:
        looking.set()
        found.wait(patience(60))
        return list(look(host, *more))

    monkeypatch.setattr(socket, "getaddrinfo", slow)
    server = serving()
    late = request(server.url(), method="POST", body="{}", timeout_ms=SHORT_MS)
    assert HttpTransport()(late) == {"error": "timeout"}
    assert looking.is_set()
    [thread] = [one for one in threading.enumerate() if one.name == "holdfast-http-request"]
    found.set()
    thread.join(patience(60))
    assert server.has_ended()
    assert server.requests == []


@pytest.mark.parametrize("where", ["headers", "one header", "body", "chunks"])
def test_an_endless_answer_ends(where: str, serving: Serving) -> None:
    chunk = b"3E8\r\n" + b"x" * 1000 + b"\r\n"
    begin, more = {
        "headers": (HEAD, b"X: y\r\n" * 1000),
        "one header": (HEAD + b"X: ", b"y" * 100_000),
        "body": (HEAD + b"Connection: close\r\n\r\n", b"x" * 10_000),
        "chunks": (HEAD + b"Transfer-Encoding: chunked\r\n\r\n", chunk),
    }[where]
    server = serving([itertools.chain([begin], itertools.repeat(more))])
    answer = HttpTransport(body_limit=1_000_000)(request(server.url()))
    assert answer in ({"error": "refused"}, {"error": "offline"})
    assert server.has_ended()


def test_any_status_is_an_answer(serving: Serving) -> None:
    """A status of 600, or a NUL in a header, ended the runner for good."""
    texts = [*(f"{number:03}" for number in range(0, 1000, 7)), "600", "-1", "1000", "2", "abc", ""]
    end = b"Connection: close\r\nContent-Length: 2\r\n\r\n{}"
    answers = [f"HTTP/1.1 {status} Odd\r\n".encode() + end for status in texts]
    server = serving([HEAD + b"X: a\0b\r\n" + end, *answers], hang_up=True)
    transport = HttpTransport()
    assert transport(request(server.url())) == {"error": "refused"}
    for status in texts:
        answer = transport(request(server.url()))
        if "error" in answer:
            assert answer["error"] in {"offline", "timeout", "refused"}, status
            assert not "200" <= status <= "599", status
        else:
            assert answer["status"] == int(status), status
            assert 100 <= answer["status"] <= 599


# ---- proxies ----


@pytest.fixture
def proxy(serving: Serving, monkeypatch: pytest.MonkeyPatch) -> Server:
    server = serving([OK, None])
    for scheme in ("http", "https"):
        monkeypatch.setenv(f"{scheme}_proxy", f"http://me:p%40ss@127.0.0.1:{server.port}")
    monkeypatch.setenv("no_proxy", "direct.example")
    return server


def test_requests_take_the_proxy_that_the_environment_names(proxy: Server) -> None:
    transport = HttpTransport()
    assert transport(request("http://far.example/a?b=c"))["status"] == 200
    # This one opens no tunnel
    assert "error" in transport(request("https://far.example/a?b=c"))
    assert "error" in transport(request("http://direct.example/", timeout_ms=500))
    plain, tunnel = proxy.requests
    assert plain.startswith(b"GET http://far.example/a?b=c HTTP/1.1\r\n")
    assert tunnel.startswith(b"CONNECT far.example:443 ")
    for received in (plain, tunnel):
        assert b"Proxy-Authorization: Basic bWU6cEBzcw==\r\n" in received


def test_a_tunnel_of_a_proxy_is_kept(
    proxy: Server, certificate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer = proxy.answer

    def relay(link: socket.socket, received: bytes) -> bool:
        answer(link, received)
        with server_context(certificate).wrap_socket(link, server_side=True) as inner:
            while proxy.read(inner):
                inner.sendall(OK)
        return False

    proxy.answers = iter([HEAD + b"\r\n"])
    monkeypatch.setattr(proxy, "answer", relay)
    transport = HttpTransport(ssl.create_default_context(cafile=certificate))
    for _ in range(3):
        assert transport(request("https://localhost/"))["status"] == 200
    assert (proxy.connections, proxy.methods) == (1, [b"CONNECT"])
    transport.close()


# ---- connections that are kept ----


def statuses(transport: HttpTransport, server: Server, *methods: str) -> list[object]:
    """The status of each answer, or its error."""
    bodies = [None if method == "GET" else "body" for method in methods]
    sent = [request(server.url(), method=m, body=b) for m, b in zip(methods, bodies, strict=True)]
    return [answer.get("status", answer.get("error")) for answer in map(transport, sent)]


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_twenty_requests_use_two_connections(
    scheme: str, serving: Serving, certificate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every request had a connection of its own, and a handshake."""
    monkeypatch.setattr(connections, "FRESH_S", connections.KEEP_S)  # on a slow machine
    server = serving()
    transport = HttpTransport()
    if scheme == "https":
        server.context = server_context(certificate)
        transport = HttpTransport(ssl.create_default_context(cafile=certificate))
    with ThreadPoolExecutor(2) as both:
        found = both.map(lambda _: statuses(transport, server, *["GET", "POST"] * 5), range(2))
    assert list(found) == [[200] * 10] * 2
    assert server.connections <= 2
    transport.close()
    assert server.has_ended(server.connections)


def test_a_connection_that_was_closed_while_idle_is_not_used(serving: Serving) -> None:
    server = serving(hang_up=True)
    transport = HttpTransport()
    for method in ("GET", "POST", "GET"):
        assert statuses(transport, server, method) == [200]
        assert server.has_ended()
    assert server.methods == [b"GET", b"POST", b"GET"], "nothing was sent twice"


@pytest.mark.parametrize(
    ("script", "methods", "found", "sent"),
    [
        # A GET that meets the end of its connection is sent again, once
        ([OK, None, OK], ["GET", "GET"], [200, 200], 3),
        ([OK, None, None, None], ["GET", "GET"], [200, "offline"], 3),
        # The server may have acted on anything else: the library asks, or sends it under its id
        ([OK, None], ["GET", "POST"], [200, "offline"], 2),
        ([OK, None], ["GET", "PATCH"], [200, "offline"], 2),
        # Only a kept connection excuses a second attempt
        ([None], ["GET"], ["refused"], 1),
    ],
)
def test_a_request_that_meets_the_end_of_its_connection(
    script: list[Script], methods: list[str], found: list[object], sent: int, serving: Serving
) -> None:
    server = serving(script)
    assert statuses(HttpTransport(), server, *methods) == found
    assert len(server.requests) == sent


def test_a_post_takes_only_a_connection_that_was_just_used(
    serving: Serving, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Servers end idle connections; a POST must not meet that."""
    monkeypatch.setattr(connections, "FRESH_S", -1.0)
    server = serving()
    transport = HttpTransport()
    for method, count in [("GET", 1), ("POST", 2), ("GET", 2)]:
        assert statuses(transport, server, method) == [200]
        assert server.connections == count


def test_a_connection_is_not_kept_for_long(
    serving: Serving, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Routers forget idle connections without a word."""
    monkeypatch.setattr(connections.Connection, "idle_s", lambda _: connections.KEEP_S + 1)
    server = serving()
    assert statuses(HttpTransport(), server, "GET", "GET") == [200, 200]
    assert server.connections == 2


@pytest.mark.parametrize(
    "answer",
    [
        HEAD + b"Connection: close\r\nContent-Length: 2\r\n\r\n{}",
        b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\n{}",
        HEAD + b"Keep-Alive: timeout=1\r\nContent-Length: 2\r\n\r\n{}",
        b"HTTP/1.1 103 Early\r\n\r\n",
        OK + HEAD + b"Content-Length: 9\r\n\r\nsmuggled!" + b" " * 100_000,
    ],
    ids=["close", "HTTP/1.0", "Keep-Alive", "not the last response", "bytes after the response"],
)
def test_a_connection_that_cannot_carry_another_response_is_not_kept(
    answer: bytes, serving: Serving
) -> None:
    """What is left of one response is not taken for the next one."""
    server = serving([answer, OK])
    transport = HttpTransport()
    transport(request(server.url()))
    assert transport(request(server.url()))["body"] == "{}"
    assert server.connections == 2


def idle(kept: connections.Connections, server: Server, count: int) -> None:
    """Keep this many connections, each after a request."""
    route = connections.Route("http", "localhost", server.port, None)
    for connection in [kept.new(route) for _ in range(count)]:
        connection.link.request("GET", "/")
        response = connection.link.getresponse()
        response.read()
        kept.keep(connection, response)


def test_a_refused_or_late_response_ends_its_connection_and_the_idle_ones(serving: Serving) -> None:
    """In the middle of a response none is used again; a time-out may mean another network."""
    head = HEAD + b"Content-Length: 1001\r\n\r\n"
    server = serving([OK, OK, OK, head + b"x" * 1001, head])
    transport = HttpTransport(body_limit=1000)
    idle(transport.connections, server, 3)
    assert statuses(transport, server, "GET") == ["refused"]
    assert transport(request(server.url(), timeout_ms=SHORT_MS)) == {"error": "timeout"}
    assert server.connections == 3
    server.answers = itertools.repeat(OK)
    assert statuses(transport, server, "GET") == [200]
    assert server.connections == 4


def test_idle_connections_are_few_and_end_with_the_transport(serving: Serving) -> None:
    server = serving()
    kept = connections.Connections(None)
    idle(kept, server, 12)
    assert server.has_ended(4)
    assert not server.ended.acquire(blocking=False)
    kept.close()
    assert server.has_ended(8)


def test_a_forked_child_has_connections_of_its_own(serving: Serving) -> None:
    """Parent and child on one connection would read each other's responses."""
    server = serving()
    transport = HttpTransport()
    assert statuses(transport, server, "GET") == [200]
    child = os.fork()
    if child == 0:
        good = False
        try:
            good = statuses(transport, server, "GET", "GET") == [200, 200]
        finally:
            os._exit(0 if good else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert server.connections == 2
    assert statuses(transport, server, "GET") == [200]
    assert server.connections == 2, "the child did not end the parent's connection"


def test_kept_connections_do_not_outlive_their_owner(serving: Serving) -> None:
    server = serving()
    runner = Runner(opened(FakeLibrary()))
    assert runner.transport(request(server.url()))["status"] == 200
    runner.stop()
    assert server.has_ended()

    async def main() -> None:
        async with AsyncHoldfast(CONFIG, library=cast(Library, FakeLibrary())) as app:
            assert (await asyncio.to_thread(app._http, request(server.url())))["status"] == 200

    asyncio.run(main())
    assert server.has_ended()
