"""The HTTP runner, against real sockets."""

from __future__ import annotations

import http.server
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any, cast

import pytest

from holdfast import Holdfast, HttpTransport, Runner
from holdfast.runner import failure, folded, text
from holdfast.types import Event, HttpRequest


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


def test_an_answer(base: str) -> None:
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


def test_time_out(base: str) -> None:
    assert HttpTransport()(request(f"{base}/slow", timeout_ms=100)) == {"error": "timeout"}


def test_refused() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
    assert HttpTransport()(request(f"http://127.0.0.1:{port}/")) == {"error": "refused"}


def test_tls(base: str) -> None:
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
def test_words_for_failures(error: Exception, word: str) -> None:
    assert failure(error) == word


def test_folding_and_text() -> None:
    assert folded([("A", "1"), ("a", "2"), ("B", "3")]) == {"a": "1, 2", "b": "3"}
    assert text("å".encode()) == "å"
    assert text(b"\xe5") is None


class Scripted:
    """Stands in for `Holdfast`: polls by script, remembers what was completed."""

    def __init__(self, polls: list[dict[str, Any]]) -> None:
        self.polls = polls
        self.asked: list[object] = []
        self.completed: list[dict[str, Any]] = []

    def poll(self, given: dict[str, Any] | None = None) -> dict[str, Any]:
        self.asked.append(given)
        nothing: dict[str, Any] = {"requests": [], "events": [], "wake_in_ms": None}
        return nothing | self.polls.pop(0) if self.polls else nothing

    def complete(self, given: dict[str, Any]) -> dict[str, Any]:
        self.completed.append(given)
        return {"accepted": True}

    def wait(self, timeout_ms: int) -> bool:
        time.sleep(timeout_ms / 1000)
        return True


def runner_for(scripted: Scripted, seen: Callable[[Event], None]) -> Runner:
    return Runner(cast(Holdfast, scripted), seen, lambda _: {"status": 204})


def test_a_step_sends_completes_and_acknowledges_what_was_seen() -> None:
    event = {"seq": 4, "type": "session_ended"}
    app = Scripted([{"requests": [request("http://x")], "events": [event]}])
    seen: list[Event] = []
    runner = runner_for(app, seen.append)
    step = runner.step()
    assert (seen, step.accepted, app.completed) == ([event], [True], [{"id": 1, "status": 204}])
    assert runner.step().idle
    assert app.asked == [None, {"ack": 4}]


def test_an_event_that_was_not_handled_is_not_acknowledged() -> None:
    def failing(_: Event) -> None:
        raise RuntimeError

    app = Scripted([{"events": [{"seq": 4, "type": "session_ended"}]}])
    runner = runner_for(app, failing)
    with pytest.raises(RuntimeError):
        runner.step()
    runner.step()
    assert app.asked == [None, None]


def test_run_until_idle_has_a_limit() -> None:
    busy = {"requests": [request("http://x")]}
    assert len(runner_for(Scripted([busy, busy]), lambda _: None).run_until_idle()) == 2
    with pytest.raises(RuntimeError):
        runner_for(Scripted([busy] * 9), lambda _: None).run_until_idle(limit=5)


def test_the_thread_works_until_stopped() -> None:
    app = Scripted([{"wake_in_ms": 20}, {"requests": [request("http://x")]}])
    with runner_for(app, lambda _: None):
        deadline = time.monotonic() + 5
        while not app.completed and time.monotonic() < deadline:
            time.sleep(0.01)
    assert app.completed == [{"id": 1, "status": 204}]
    polls = len(app.asked)
    time.sleep(0.05)
    assert len(app.asked) == polls
