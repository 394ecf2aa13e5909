"""The driver within a call on its handle: a function of the host that the real core calls, of its log."""

from __future__ import annotations

import ctypes
import json
import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from patience import patience

from driver_stand import BUSY, OK, ROOT, Driver, Server, declare

CORE = Path(os.environ.get("HOLDFAST_LIBRARY", ROOT / "build/lib/libholdfast.so"))
DRIVER = CORE.with_name("libholdfast_http.so")
NEWS, REQUESTS = 1, 2

pytestmark = pytest.mark.skipif(not DRIVER.exists(), reason="the driver is not built")

LogFunction = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int32, ctypes.c_char_p)


class Host:
    """A host of the real core. A call that is refused writes a line, inside which it does what `inside` says."""

    def __init__(self, folder: Path, url: str) -> None:
        self.core = ctypes.CDLL(str(CORE), ctypes.RTLD_GLOBAL)
        self.driver = ctypes.CDLL(str(DRIVER))
        declare(self.driver)
        self.core.holdfast_free.argtypes = self.core.holdfast_close.argtypes = [ctypes.c_void_p]
        self.inside: Callable[[], None] | None = None
        self.thread = threading.current_thread()
        self.function = LogFunction(self.on_line)
        self.core.holdfast_log(2, self.function, None)
        config = {
            "data_dir": str(folder / "data"),
            "backend": {"url": url, "api_key": "k"},
            "template": "volunteers",
            "policy": {"biometric": "off"},
            "keystore": {"kind": "file"},
        }
        self.handle, out = ctypes.c_void_p(), ctypes.c_void_p()
        places = ctypes.byref(self.handle), ctypes.byref(out)
        assert self.core.holdfast_open(json.dumps(config).encode(), None, *places) == OK
        self.core.holdfast_free(out)

    def on_line(self, _context: object, _level: int, line: bytes) -> None:
        if b"refused" in line and threading.current_thread() is self.thread:
            inside, self.inside = self.inside, None
            if inside is not None:
                inside()

    def call(self, operation: str, **request: Any) -> dict[str, Any]:
        out = ctypes.c_void_p()
        text = json.dumps(request).encode()
        self.core.holdfast_call(self.handle, operation.encode(), text, ctypes.byref(out))
        return self.read(out)

    def next(self, what: int = NEWS) -> dict[str, Any]:
        out = ctypes.c_void_p()
        self.core.holdfast_next(self.handle, what, 10, ctypes.byref(out))
        return self.read(out)

    def read(self, out: ctypes.c_void_p) -> dict[str, Any]:
        value = json.loads(ctypes.string_at(out.value or 0))
        self.core.holdfast_free(out)
        return dict(value)

    def sign_in(self) -> None:
        """One request: the server sees it, and does not answer yet."""
        person = {"email": "solo@example.org", "password": "x"}
        assert self.call("sign_in_complete", **person) == {}

    def within_a_call(self, inside: Callable[[], None]) -> None:
        self.inside = inside
        assert "error" in self.call("queue_get", id="no id")
        assert self.inside is None, "the call wrote no line"

    def screen(self, token: ctypes.c_void_p) -> dict[str, Any]:
        """The screen that the sign-in ends with."""
        while True:
            assert self.driver.holdfast_http_run(token, None) == OK
            shown = self.next().get("screen")
            if shown is not None and shown["screen"] != "wait":
                return dict(shown)

    def close(self) -> None:
        self.core.holdfast_log(-1, None, None)
        self.core.holdfast_close(self.handle)


@pytest.fixture
def host(tmp_path: Path, server: Server) -> Iterator[Host]:
    server.always(b'{"error_code":"invalid_credentials"}', "400 Bad Request")
    opened = Host(tmp_path, server.url)
    yield opened
    opened.close()


def test_a_step_within_a_call_takes_no_response_that_the_core_would_refuse(
    host: Host, server: Server
) -> None:
    """A refresh lost the new tokens: the response came, and the core could not take it."""
    token, answered = ctypes.c_void_p(), threading.Event()

    def answer(link: Any, request: bytes) -> None:
        server.release.wait()
        Server.answer(link, b'{"error_code":"invalid_credentials"}', "400 Bad Request")
        answered.set()

    server.handler = answer
    start = host.driver.holdfast_http_start
    assert start(host.handle, b'{"thread":false}', ctypes.byref(token)) == OK
    host.sign_in()
    while not server.received:
        assert host.driver.holdfast_http_run(token, None) == OK
    statuses: list[int] = []

    def inside() -> None:
        server.release.set()
        assert answered.wait(patience(60))
        statuses.extend(host.driver.holdfast_http_run(token, None) for _ in range(3))

    host.within_a_call(inside)
    assert statuses == [BUSY] * 3
    shown = host.screen(token)
    assert (shown["message"]["code"], len(server.received)) == ("sign_in_failed", 1)
    host.driver.holdfast_http_stop(token)


def test_stopping_within_a_call_does_not_wait_for_the_call(host: Host, server: Server) -> None:
    """The thread waited for the call, which waited for the thread."""
    server.hang()
    driver = Driver(host.driver, host.handle.value)
    assert driver.status == OK
    host.sign_in()
    while not server.received:
        host.next()
    done = threading.Event()

    def work() -> None:
        host.thread = threading.current_thread()
        host.within_a_call(driver.stop)
        done.set()

    threading.Thread(target=work, daemon=True).start()
    assert done.wait(patience(60)), "the call waits for itself"
    # Then the request in flight is completed, and there is another one
    while "request" not in host.next(REQUESTS):
        pass
