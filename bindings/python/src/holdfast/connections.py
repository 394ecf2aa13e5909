"""Connections of `HttpTransport`: kept open after a response, and used again while idle."""

from __future__ import annotations

import base64
import collections
import contextlib
import http.client
import os
import re
import selectors
import ssl
import time
import urllib.parse
import urllib.request
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from collections.abc import Callable

#: How long an idle connection is kept, in seconds. Routers forget one after a minute or more.
KEEP_S = 30.0

#: The same for a request that must not be sent twice. Servers close idle connections after two
#: seconds or more, and the outcome of a request that meets the end of its connection is unknown.
FRESH_S = 1.0

#: The most idle connections to one server.
IDLE_LIMIT = 8

Url = urllib.parse.SplitResult


@dataclass(frozen=True)
class Route:
    """How to reach a URL: directly, through a tunnel of a proxy (https), or by a proxy (http)."""

    scheme: str
    host: str
    port: int | None
    proxy: Url | None

    @classmethod
    def to(cls, url: Url) -> Self:
        """The route to a URL, by the proxies of the environment or the system."""
        return cls(url.scheme, url.hostname or "", url.port, proxy_for(url))

    @property
    def end(self) -> tuple[object, ...]:
        """What the connection is connected to: requests with the same end can share it."""
        if self.proxy is not None and self.scheme == "http":
            return (self.proxy,)
        return (self.scheme, self.host, self.port, self.proxy)

    @property
    def headers(self) -> dict[str, str]:
        """The headers for a proxy that reads the request."""
        if self.proxy is None or self.scheme == "https":
            return {}
        return credentials(self.proxy)

    def target(self, url: Url) -> str:
        """The target in the request line."""
        if self.proxy is not None and self.scheme == "http":
            return url.geturl()
        return urllib.parse.urlunsplit(("", "", url.path or "/", url.query, ""))

    def link(self, context: ssl.SSLContext | None) -> http.client.HTTPConnection:
        """A connection that connects when the first request is sent."""
        near = self.proxy
        host, port = (self.host, self.port) if near is None else (near.hostname or "", near.port)
        if context is None:
            return http.client.HTTPConnection(host, port)
        link = Secure(host, port, context=context)
        link.context, link.server = context, self.host
        if near is not None:
            link.set_tunnel(self.host, self.port, credentials(near))
        return link


class Secure(http.client.HTTPSConnection):
    """A connection over TLS whose socket is known during the handshake, so that it can be ended."""

    context: ssl.SSLContext
    #: The name in the server's certificate; behind a proxy, `host` is the proxy.
    server: str

    def connect(self) -> None:
        """Connect, through the proxy if there is one."""
        http.client.HTTPConnection.connect(self)
        secure = self.context.wrap_socket(
            self.sock, server_hostname=self.server, do_handshake_on_connect=False
        )
        self.sock = secure
        secure.do_handshake()


@dataclass
class Connection:
    """A connection, in the hands of one request or idle."""

    end: tuple[object, ...]
    link: http.client.HTTPConnection
    #: Whether it has carried a request: the server may have closed it since.
    used: bool = False
    idle_since: float = field(default_factory=time.monotonic)
    keep_s: float = KEEP_S

    def limit(self, seconds: float) -> None:
        """Limit each step of the next request."""
        self.link.timeout = seconds
        if self.link.sock is not None:
            self.link.sock.settimeout(seconds)

    def idle_s(self) -> float:
        """How long nobody has used it, in seconds."""
        return time.monotonic() - self.idle_since

    def is_open(self) -> bool:
        """Whether it may be used again: kept for long enough, and nothing to read.

        To read is the end of the connection, or bytes after the response, which could be taken for
        the next one.
        """
        socket = self.link.sock
        if socket is None or self.idle_s() > self.keep_s:
            return False
        if isinstance(socket, ssl.SSLSocket) and socket.pending():
            return False
        try:
            with selectors.DefaultSelector() as selector:
                selector.register(socket, selectors.EVENT_READ)
                return not selector.select(0)
        except (OSError, ValueError):
            return False

    def close(self) -> None:
        """Close."""
        with contextlib.suppress(OSError):
            self.link.close()


class Connections:
    """The idle connections, for any number of threads.

    A forked child closes its copies of the parent's, which leaves the parent's open, and opens its
    own. There is no lock that a fork could copy while it is held: the operations of dict and deque
    are atomic.
    """

    def __init__(self, context: ssl.SSLContext | None) -> None:
        """`context` holds the trusted certificates; None trusts the system's."""
        self._context = context
        self._idle: dict[tuple[object, ...], collections.deque[Connection]] = {}
        self._process = os.getpid()

    def take(self, route: Route, *, fresh: bool = False) -> Connection:
        """An idle connection, else a new one; with `fresh`, an idle one only if just used."""
        idle = self._of(route.end)
        while connection := taken(idle.pop):
            if not connection.is_open():
                connection.close()
            elif fresh and connection.idle_s() > FRESH_S:
                idle.append(connection)
                break
            else:
                return connection
        return self.new(route)

    def new(self, route: Route) -> Connection:
        """A new connection."""
        context = None
        if route.scheme == "https":
            # Made once: reading the system's certificates takes longer than many requests.
            context = self._context = self._context or ssl.create_default_context()
        return Connection(route.end, route.link(context))

    def keep(self, connection: Connection, response: http.client.HTTPResponse) -> None:
        """Keep a connection after its response, or close it if it cannot carry another one."""
        named = re.search(r"timeout=(\d{1,6})\b", response.headers.get("Keep-Alive", ""))
        if named:
            connection.keep_s = min(KEEP_S, int(named[1]) - 1)
        idle = self._of(connection.end)
        complete = response.isclosed() and not response.will_close
        # A response below 200 is not the last one.
        if not complete or response.status < 200 or connection.keep_s <= 0:
            connection.close()
            return
        connection.used = True
        connection.idle_since = time.monotonic()
        idle.append(connection)
        while len(idle) > IDLE_LIMIT and (oldest := taken(idle.popleft)):
            oldest.close()

    def drop(self, end: tuple[object, ...]) -> None:
        """Close the idle connections to one end, after one has failed: the network may be new."""
        idle = self._of(end)
        while connection := taken(idle.pop):
            connection.close()

    def close(self) -> None:
        """Close all idle connections."""
        for end in list(self._idle):
            self.drop(end)

    def _of(self, end: tuple[object, ...]) -> collections.deque[Connection]:
        if self._process != os.getpid():
            inherited, self._idle, self._process = self._idle, {}, os.getpid()
            for idle in inherited.values():
                for connection in idle:
                    connection.close()
        return self._idle.setdefault(end, collections.deque())

    def __del__(self) -> None:
        """Close all idle connections."""
        self.close()


def taken(take: Callable[[], Connection]) -> Connection | None:
    """The connection that `take` takes out of a deque; None: other threads have taken all."""
    try:
        return take()
    except IndexError:
        return None


def proxy_for(url: Url) -> Url | None:
    """The proxy of the environment (https_proxy, no_proxy, ...) or the system for a URL."""
    named = urllib.request.getproxies().get(url.scheme)
    if not named or urllib.request.proxy_bypass(url.netloc.rpartition("@")[2]):
        return None
    return urllib.parse.urlsplit(named if "://" in named else f"http://{named}")


def credentials(proxy: Url) -> dict[str, str]:
    """The header with the user and password of a proxy's URL."""
    if proxy.username is None:
        return {}
    pair = f"{urllib.parse.unquote(proxy.username)}:{urllib.parse.unquote(proxy.password or '')}"
    return {"Proxy-Authorization": "Basic " + base64.b64encode(pair.encode()).decode("ascii")}
