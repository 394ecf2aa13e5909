"""The driver's C functions, the fake core behind it, and a server with scripted answers."""

from __future__ import annotations

import ctypes
import json
import os
import pathlib
import select
import socket
import threading
from collections.abc import Callable
from typing import Any

from patience import eventually, patience

ROOT = pathlib.Path(__file__).resolve().parents[2]
SOURCES = ROOT / "Sources" / "HoldfastHTTP"
KEYS = ROOT / "Sources" / "HoldfastKeys"

OK, INVALID, STATE, NOT_FOUND, BUSY, CLOSED, FORKED = 0, 1, 2, 3, 8, 9, 10
KEYSTORE, STORAGE, FULL, NOMEM = 5, 6, 7, 11

#: How long a test waits for what must happen: for a request, for its completion, for an event. A
#: request gives up first, so that a hang is reported as the time-out of a request.
REQUEST_MS, COMPLETION_MS, EVENT_MS = (int(patience(seconds) * 1000) for seconds in (60, 90, 90))


def declare(library: ctypes.CDLL) -> None:
    """Declare the types of the driver's functions."""
    pointer, text = ctypes.c_void_p, ctypes.c_char_p
    library.holdfast_http_start.argtypes = [pointer, text, ctypes.POINTER(pointer)]
    library.holdfast_http_stop.argtypes = [pointer]
    library.holdfast_http_stop.restype = None
    library.holdfast_http_fd.argtypes = [pointer]
    library.holdfast_http_run.argtypes = [pointer, ctypes.POINTER(ctypes.c_int32)]
    library.holdfast_http_call.argtypes = [ctypes.c_int64, text, text]
    library.holdfast_http_call.restype = pointer
    library.holdfast_http_free.argtypes = [pointer]
    library.holdfast_http_free.restype = None


class Driver:
    """A running driver: with its own thread, or on the event loop of a host, which `Loop` plays."""

    #: The mode that a test did not ask for by itself; the fixture `mode` sets it.
    threaded = True

    def __init__(self, library: ctypes.CDLL, handle: int | None, **options: Any) -> None:
        self.library = library
        self._token = ctypes.c_void_p()
        if not self.threaded:
            options["thread"] = False
        text = json.dumps(options).encode() if options else None
        self.status = library.holdfast_http_start(handle, text, ctypes.byref(self._token))
        on_loop = not self.threaded and self.status == OK
        self._loop = Loop(library, self.token) if on_loop else None

    @property
    def token(self) -> int | None:
        return self._token.value

    def stop(self) -> None:
        if self._loop is not None:
            self._loop.end()
        self.library.holdfast_http_stop(self.token)


class Loop:
    """A host's event loop: watches the descriptor of a driver, and runs the driver when it is readable."""

    def __init__(self, library: ctypes.CDLL, token: int | None) -> None:
        self.library = library
        self.token = token
        self._quit_read, self._quit = os.pipe()
        self._thread = threading.Thread(target=self._turn, daemon=True)
        self._thread.start()

    def _turn(self) -> None:
        watched = select.poll()
        watched.register(self.library.holdfast_http_fd(self.token), select.POLLIN)
        watched.register(self._quit_read, select.POLLIN)
        status = OK
        while status == OK:
            if any(number == self._quit_read for number, _ in watched.poll()):
                return
            status = self.library.holdfast_http_run(self.token, None)

    def end(self) -> None:
        """End the loop; the driver goes on existing."""
        os.write(self._quit, b"x")
        self._thread.join()


class Core:
    """The test's control of the fake core."""

    def __init__(self, library: ctypes.CDLL) -> None:
        self.library = library
        self.handle: int = library.fake_open()
        self._id = 0

    def request(self, url: str, **fields: Any) -> int:
        """Hand out a request; return its id."""
        self._id += 1
        request = {
            "id": self._id,
            "purpose": "pull",
            "method": "GET",
            "url": url,
            "headers": {},
            "body": None,
            "timeout_ms": REQUEST_MS,
        } | fields
        self.library.fake_request(json.dumps(request).encode())
        return self._id

    def news(self, **thing: Any) -> None:
        """A thing for the reader of news."""
        self.library.fake_news(json.dumps(thing).encode())

    def completion(self, timeout_ms: int = COMPLETION_MS) -> dict[str, Any] | None:
        """Return the next argument of holdfast_complete(), or None."""
        text = self.library.fake_completion(timeout_ms)
        return None if text is None else dict(json.loads(text))

    def fetch(self, url: str, **fields: Any) -> dict[str, Any]:
        """Hand out one request and wait for its completion."""
        number = self.request(url, **fields)
        answer = self.completion()
        assert answer is not None and answer["id"] == number
        return answer

    def close(self) -> None:
        self.library.holdfast_close(self.handle)

    def live(self) -> int:
        """The number of live handles and replies."""
        return int(self.library.holdfast_live_count())

    def ends_empty(self) -> None:
        """Wait until no handle and no reply is left: a stopped driver may still be ending."""
        eventually(lambda: self.live() == 0, what="the driver has freed every reply")


Handler = Callable[[socket.socket, bytes], None]


class Server:
    """A server on loopback; `handler` writes the answer to each request."""

    def __init__(self) -> None:
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.listener.getsockname()[1]}"
        self.received: list[bytes] = []
        self.handler: Handler = lambda link, request: self.answer(link, b"{}")
        self.release = threading.Event()
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                link, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(link,), daemon=True).start()

    def _serve(self, link: socket.socket) -> None:
        try:
            while request := self._read(link):
                self.received.append(request)
                self.handler(link, request)
        except OSError:
            pass
        finally:
            link.close()

    @staticmethod
    def _read(link: socket.socket) -> bytes:
        data = b""
        while b"\r\n\r\n" not in data:
            part = link.recv(65536)
            if not part:
                return b""
            data += part
        head, _, body = data.partition(b"\r\n\r\n")
        length = 0
        for line in head.split(b"\r\n")[1:]:
            name, _, value = line.partition(b":")
            if name.lower() == b"content-length":
                length = int(value)
        while len(body) < length:
            body += link.recv(65536)
        return head + b"\r\n\r\n" + body

    @staticmethod
    def answer(link: socket.socket, body: bytes, status: str = "200 OK", headers: str = "") -> None:
        head = f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\n{headers}\r\n"
        link.sendall(head.encode("latin-1") + body)

    def always(self, body: bytes, status: str = "200 OK", headers: str = "") -> None:
        self.handler = lambda link, request: self.answer(link, body, status, headers)

    def hang(self) -> None:
        """Answer no request until `release` is set or the server is closed."""

        def handler(link: socket.socket, request: bytes) -> None:
            self.release.wait()
            self.answer(link, b"{}")

        self.handler = handler

    def close(self) -> None:
        self.release.set()
        self.listener.shutdown(socket.SHUT_RDWR)  # ends the thread that accepts
        self.listener.close()


class App:
    """A binding as its user would write it, over the fake core."""

    def __init__(self, library: ctypes.CDLL, **config: Any) -> None:
        self.library = library
        self.opened = self.raw(0, "open", {"data_dir": "x", **config})
        self.number = self.opened.get("app", 0)
        self.core = Core.__new__(Core)
        self.core.library, self.core.handle, self.core._id = library, self.number, 0

    def raw(self, app: int, operation: str | None, request: Any = None) -> dict[str, Any]:
        text = request if isinstance(request, bytes | None) else json.dumps(request).encode()
        name = None if operation is None else operation.encode()
        reply = self.library.holdfast_http_call(app, name, text)
        assert reply is not None
        value = json.loads(ctypes.string_at(reply))
        self.library.holdfast_http_free(reply)
        return dict(value)

    def call(self, operation: str, request: Any = None) -> dict[str, Any]:
        return self.raw(self.number, operation, request)

    def event(self, timeout_ms: int = EVENT_MS) -> dict[str, Any]:
        return self.call("next", {"timeout_ms": timeout_ms})
