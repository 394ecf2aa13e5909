"""Transports send requests; any function works, `HttpTransport` uses the standard library."""

from __future__ import annotations

import base64
import contextlib
import http.client
import socket
import ssl
import threading
import time
import urllib.parse
import urllib.request
from typing import TYPE_CHECKING, Any, Protocol, cast

if TYPE_CHECKING:
    from .types import CompleteRequest, HttpRequest, TransportError

#: The request of `complete` without its id: {"status", "headers", "body"} or {"error"}.
Answer = dict[str, Any]

#: The answer of a request whose response cannot be used.
REFUSED: Answer = {"error": "refused"}

CHUNK = 65536

#: The most bytes of one response.
BODY_LIMIT = 8 << 20


class RefusedError(Exception):
    """The response is over the limit, or no response of HTTP."""


class Transport(Protocol):
    """Sends one request and returns the answer; network failures are answers, not exceptions."""

    def __call__(self, request: HttpRequest, /) -> Answer:
        """The answer to hand to `complete`, without its id."""


class AsyncTransport(Protocol):
    """A transport for asyncio."""

    async def __call__(self, request: HttpRequest, /) -> Answer:
        """The answer to hand to `complete`, without its id."""
        ...


class HttpTransport:
    """HTTP/1.1 from the standard library, with the proxies of the environment or the system.

    One connection per request: the server may close a kept connection while a request is in flight,
    which leaves its outcome unknown. Follows no redirect, which would send credentials to another
    server. Any number of threads may call it. `timeout_ms` limits a request's total time, whatever
    the server trickles.
    """

    def __init__(self, context: ssl.SSLContext | None = None, body_limit: int = BODY_LIMIT) -> None:
        """`context` holds the trusted certificates; None trusts the system's."""
        self._context = context
        self._body_limit = body_limit

    def __call__(self, request: HttpRequest) -> Answer:
        """Send the request; failures become {"error": ...}."""
        # The standard library limits each step, not the whole: a thread of its own can be left.
        sending = Sending(self, request)
        sending.start()
        sending.join(request["timeout_ms"] / 1000)
        return sending.finish()

    def send(self, request: HttpRequest, sending: Sending) -> Answer:
        """Send the request without a limit of the total time; raises."""
        deadline = time.monotonic() + request["timeout_ms"] / 1000
        url = urllib.parse.urlsplit(request["url"])
        connection, target, headers = self._connection(url, request["timeout_ms"] / 1000)
        sending.connection = connection
        try:
            body = request["body"]
            connection.request(
                request["method"],
                target,
                None if body is None else body.encode("utf-8"),
                dict(request["headers"]) | headers,
            )
            response = connection.getresponse()
            parts: list[bytes] = []
            left = self._body_limit
            while part := response.read(min(CHUNK, left + 1)):
                parts.append(part)
                left -= len(part)
                if left < 0:
                    raise RefusedError
                if time.monotonic() > deadline:
                    raise TimeoutError
            if response.length:
                # The connection broke: `read` with a size does not say so.
                raise http.client.IncompleteRead(b"", response.length)
            answer_headers = folded(response.getheaders())
            if not 100 <= response.status <= 599 or "\0" in "".join(answer_headers.values()):
                raise RefusedError
            return {
                "status": response.status,
                "headers": answer_headers,
                "body": text(b"".join(parts)),
            }
        finally:
            connection.close()

    def _connection(
        self, url: urllib.parse.SplitResult, timeout: float
    ) -> tuple[http.client.HTTPConnection, str, dict[str, str]]:
        """Return a connection, the request target, and headers for a proxy."""
        target = urllib.parse.urlunsplit(("", "", url.path or "/", url.query, ""))
        host = url.hostname or ""
        proxy = proxy_for(url)
        if url.scheme == "https":
            # Made once: reading the system's certificates takes longer than many requests.
            context = self._context = self._context or ssl.create_default_context()
            if proxy is None:
                direct = http.client.HTTPSConnection(
                    host, url.port, timeout=timeout, context=context
                )
                return direct, target, {}
            tunnel = http.client.HTTPSConnection(
                proxy.hostname or "", proxy.port, timeout=timeout, context=context
            )
            tunnel.set_tunnel(host, url.port, credentials(proxy))
            return tunnel, target, {}
        if proxy is None:
            return http.client.HTTPConnection(host, url.port, timeout=timeout), target, {}
        relay = http.client.HTTPConnection(proxy.hostname or "", proxy.port, timeout=timeout)
        return relay, url.geturl(), credentials(proxy)


class Sending(threading.Thread):
    """One request on a thread of its own, a daemon: it delays neither its caller nor the exit."""

    def __init__(self, transport: HttpTransport, request: HttpRequest) -> None:
        """Does not send yet."""
        super().__init__(name="holdfast-http-request", daemon=True)
        self._transport = transport
        self._request = request
        self._answer: Answer | None = None
        self.connection: http.client.HTTPConnection | None = None

    def run(self) -> None:
        """Send."""
        try:
            self._answer = self._transport.send(self._request, self)
        except Exception as error:
            self._answer = {"error": failure(error)}

    def finish(self) -> Answer:
        """The answer; if there is none yet, end the connection: the request has timed out."""
        answer = self._answer
        if answer is not None:
            return answer
        connection = self.connection
        link = None if connection is None else connection.sock
        if link is not None:
            with contextlib.suppress(OSError):
                link.shutdown(socket.SHUT_RDWR)
        return {"error": "timeout"}


def proxy_for(url: urllib.parse.SplitResult) -> urllib.parse.SplitResult | None:
    """The proxy of the environment (https_proxy, no_proxy, ...) or the system for a URL."""
    named = urllib.request.getproxies().get(url.scheme)
    if not named or urllib.request.proxy_bypass(url.netloc.rpartition("@")[2]):
        return None
    return urllib.parse.urlsplit(named if "://" in named else f"http://{named}")


def credentials(proxy: urllib.parse.SplitResult) -> dict[str, str]:
    """The header with the user and password of a proxy's URL."""
    if proxy.username is None:
        return {}
    pair = f"{urllib.parse.unquote(proxy.username)}:{urllib.parse.unquote(proxy.password or '')}"
    return {"Proxy-Authorization": "Basic " + base64.b64encode(pair.encode()).decode("ascii")}


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
