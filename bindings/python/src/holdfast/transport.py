"""Transports send requests; any function works, `HttpTransport` uses the standard library."""

from __future__ import annotations

import contextlib
import http.client
import socket
import ssl
import threading
import time
import urllib.parse
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from .connections import Connection, Connections, Route, Url

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from .types import CompleteRequest, HttpRequest, TransportError

#: The request of `complete` without its id: {"status", "headers", "body"} or {"error"}.
Answer = dict[str, Any]

#: Sends one request and returns the answer for `complete`, without the id. A failure of the network
#: is an answer, too: {"error": "offline" | "timeout" | "tls" | "dns" | "refused" | "cancelled"}.
Transport: TypeAlias = "Callable[[HttpRequest], Answer]"
AsyncTransport: TypeAlias = "Callable[[HttpRequest], Awaitable[Answer]]"

#: The answer of a request whose response cannot be used.
REFUSED: Answer = {"error": "refused"}

CHUNK = 65536

#: The most bytes of one response.
BODY_LIMIT = 8 << 20

#: The methods that may be sent twice (RFC 9110, 9.2.2), of those that the library uses.
REPEATABLE = {"GET", "HEAD"}


class RefusedError(Exception):
    """The response is over the limit, or no response of HTTP."""


class HttpTransport:
    """HTTP/1.1 from the standard library, with the proxies of the environment or the system.

    Keeps connections open for the next requests, and closes those that are idle for long. When the
    server closes a connection just as a request is sent on it, GET and HEAD are sent again, once.
    Any other request is answered {"error": "offline"}, since the server may have acted on it; the
    library then asks the server, or sends it again under the same id. So that this is rare, such a
    request takes only a connection that was used within the last second.

    Follows no redirect, which would send credentials to another server, and stores no cookies. Any
    number of threads may call it, also in a forked child. `timeout_ms` limits a request's total
    time, whatever the server trickles.
    """

    def __init__(self, context: ssl.SSLContext | None = None, body_limit: int = BODY_LIMIT) -> None:
        """`context` holds the trusted certificates; None trusts the system's."""
        self.connections = Connections(context)
        self._body_limit = body_limit

    def __call__(self, request: HttpRequest) -> Answer:
        """Send the request; failures become {"error": ...}."""
        # The standard library limits each step, not the whole: a thread of its own can be left.
        sending = Sending(request, self.connections, self._body_limit)
        sending.start()
        sending.join(request["timeout_ms"] / 1000)
        return sending.finish()

    def close(self) -> None:
        """Close the idle connections; the next request opens a new one."""
        self.connections.close()


class Sending(threading.Thread):
    """One request on a thread of its own, a daemon: it delays neither its caller nor the exit."""

    def __init__(self, request: HttpRequest, connections: Connections, body_limit: int) -> None:
        """Does not send yet."""
        super().__init__(name="holdfast-http-request", daemon=True)
        self._request = request
        self._connections = connections
        self._body_limit = body_limit
        self._deadline = time.monotonic() + request["timeout_ms"] / 1000
        self._answer: Answer | None = None
        # Guards the connection, which this request holds, or another one after the release.
        self._lock = threading.Lock()
        self._connection: Connection | None = None
        # A link forgets its socket when the response is the last one on it.
        self._socket: socket.socket | None = None
        self._given_up = False

    def run(self) -> None:
        """Send."""
        try:
            self._answer = self._send()
        except Exception as error:
            self._answer = {"error": failure(error)}

    def _send(self) -> Answer:
        url = urllib.parse.urlsplit(self._request["url"])
        route = Route.to(url)
        repeatable = self._request["method"] in REPEATABLE
        connection = self._connections.take(route, fresh=not repeatable)
        try:
            try:
                response = self._begin(connection, route, url)
            except (ConnectionError, ssl.SSLEOFError) as error:
                if not connection.used:
                    raise unspoken(error, route) from error
                # The server has closed it meanwhile, and the other idle ones, too.
                connection.close()
                self._connections.drop(connection.end)
                if not repeatable:
                    raise ConnectionResetError from error
                connection = self._connections.new(route)
                response = self._begin(connection, route, url)
            answer = self._read(response)
        except BaseException as error:
            connection.close()
            if isinstance(error, TimeoutError):
                self._connections.drop(connection.end)  # the network may be another one
            raise
        with self._lock:
            # Later requests may have the connection, unless this one has timed out.
            self._connection = self._socket = None
            if self._given_up:
                connection.close()
            else:
                self._connections.keep(connection, response)
        return answer

    def _begin(self, connection: Connection, route: Route, url: Url) -> http.client.HTTPResponse:
        """Send the request on a connection and read the head of the response; raises."""
        connection.limit(max(self._deadline - time.monotonic(), 0.001))
        self._hold(connection)
        if connection.link.sock is None:
            connection.link.connect()
            # Nothing could end the search for the name: a request that has timed out in it is not
            # sent.
            self._hold(connection)
        body = self._request["body"]
        connection.link.request(
            self._request["method"],
            route.target(url),
            None if body is None else body.encode("utf-8"),
            dict(self._request["headers"]) | route.headers,
        )
        return connection.link.getresponse()

    def _hold(self, connection: Connection) -> None:
        """Note the connection of this request; raises if the request has timed out."""
        with self._lock:
            if self._given_up:
                raise TimeoutError
            self._connection = connection
            self._socket = connection.link.sock

    def _read(self, response: http.client.HTTPResponse) -> Answer:
        parts: list[bytes] = []
        left = self._body_limit
        while part := response.read(min(CHUNK, left + 1)):
            parts.append(part)
            left -= len(part)
            if left < 0:
                raise RefusedError
            if time.monotonic() > self._deadline:
                raise TimeoutError
        if response.length:
            # The connection broke: `read` with a size does not say so.
            raise http.client.IncompleteRead(b"", response.length)
        headers = folded(response.getheaders())
        if not 100 <= response.status <= 599 or "\0" in "".join(headers.values()):
            raise RefusedError
        return {"status": response.status, "headers": headers, "body": text(b"".join(parts))}

    def finish(self) -> Answer:
        """The answer; if there is none yet, end the connection: the request has timed out."""
        answer = self._answer
        if answer is not None:
            return answer
        with self._lock:
            self._given_up = True
            connection = self._connection
            link = self._socket
            if link is None and connection is not None:
                link = connection.link.sock
            if link is not None:
                with contextlib.suppress(OSError):
                    # Not SSLSocket's own, which drops the session that the thread is reading.
                    socket.socket.shutdown(link, socket.SHUT_RDWR)
        if connection is not None:
            self._connections.drop(connection.end)
        return {"error": "timeout"}


def unspoken(error: OSError, route: Route) -> Exception:
    """Why a new connection ended without a response: the other end speaks no HTTP, or no TLS."""
    if isinstance(error, http.client.RemoteDisconnected):
        return RefusedError()
    if isinstance(error, ConnectionResetError | BrokenPipeError):
        return ssl.SSLEOFError() if route.scheme == "https" else RefusedError()
    return error


def failure(error: BaseException) -> TransportError:
    """The library's `error` value for an exception."""
    if isinstance(error, ssl.SSLError):
        return "timeout" if isinstance(error, TimeoutError) else "tls"
    if isinstance(error, socket.gaierror):
        return "dns"
    if isinstance(error, TimeoutError):
        return "timeout"
    if isinstance(error, ConnectionRefusedError | RefusedError):
        return "refused"
    return "offline"


def folded(headers: list[tuple[str, str]]) -> dict[str, str]:
    """Headers as a dict; equal names are joined, as RFC 9110 allows."""
    result: dict[str, str] = {}
    for name, value in headers:
        key = name.lower()
        result[key] = f"{result[key]}, {value}" if key in result else value
    return result


def answered(request: HttpRequest, answer: Answer) -> CompleteRequest:
    """The request of `complete` for an answer."""
    return cast("CompleteRequest", {"id": request["id"], **answer})


def text(body: bytes) -> str | None:
    """The body as text, or None if it is not UTF-8 or holds a NUL."""
    if b"\0" in body:
        return None
    try:
        return body.decode("utf-8")
    except UnicodeDecodeError:
        return None
