"""A port whose connections are refused."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Iterator


@contextlib.contextmanager
def refused_port() -> Iterator[int]:
    """A port of loopback that nobody listens on, and that nobody else can take meanwhile.

    A socket that is bound and does not listen refuses every connection. The port of a closed
    socket may be another process's by then.
    """
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        yield int(held.getsockname()[1])
