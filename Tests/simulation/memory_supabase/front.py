"""The server in memory over real HTTP with the real clock, for the tests of the local backend."""

from __future__ import annotations

import http.server
import threading
import time
import urllib.parse
from typing import Self

from local_supabase.messages import Request

from .control import MemoryControl
from .server import MemoryServer


class _Handler(http.server.BaseHTTPRequestHandler):
    """Handles one request at a time, under the server's lock."""

    protocol_version = "HTTP/1.1"
    server: _Front

    def _answer(self) -> None:
        length = int(self.headers.get("content-length") or 0)
        body = self.rfile.read(length)
        parts = urllib.parse.urlsplit(self.path)
        headers = tuple((name.lower(), value) for name, value in self.headers.items())
        base = f"http://127.0.0.1:{self.server.server_address[1]}"
        request = Request(self.command, parts.path, parts.query, headers, body, base)
        with self.server.lock:
            reply = self.server.inner.handle(request)
        self.send_response_only(reply.status)
        for name, value in reply.headers.items():
            self.send_header(name, value)
        if reply.status != 204:
            self.send_header("Content-Length", str(len(reply.body)))
        self.end_headers()
        self.wfile.write(reply.body)

    do_GET = do_POST = do_PATCH = do_PUT = do_DELETE = _answer  # noqa: N815

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing: requests carry tokens."""


class _Front(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64

    def __init__(self, inner: MemoryServer) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.inner = inner
        self.lock = threading.Lock()


class MemorySupabase:
    """Has the interface of `LocalSupabase` that the common tests use."""

    def __init__(self, *, demo: bool = False) -> None:
        self.server = MemoryServer(time.time)
        if demo:
            self.server.control.seed_demo()
        self._front = _Front(self.server)
        self.url = f"http://127.0.0.1:{self._front.server_address[1]}"
        self.anon_key, self.service_key = self.server.anon_key, self.server.service_key
        self.jwt_secret = self.server.config.jwt_secret
        self.rest_url, self.auth_url = f"{self.url}/rest/v1", f"{self.url}/auth/v1"

    @property
    def control(self) -> MemoryControl:
        """The test tool."""
        return self.server.control

    def __enter__(self) -> Self:
        threading.Thread(target=self._front.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._front.shutdown()
        self._front.server_close()
