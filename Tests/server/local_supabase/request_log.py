"""The log of requests and responses, for tests that count them. It omits secrets."""

from __future__ import annotations

import collections
import dataclasses
import json
import re
import time
from typing import Any

from .messages import Reply, Request

_SECRET_HEADERS = {"authorization", "apikey", "cookie"}
_SECRET_PARAMETERS = re.compile(r"((?:^|&)apikey=)[^&]*")
_CAPACITY = 20_000


@dataclasses.dataclass
class Entry:
    """One request. `status` is None before the response, and 0 if the connection was dropped."""

    number: int
    method: str
    path: str
    query: str
    headers: dict[str, str]
    body_bytes: int
    rows_in: int | None
    rows_out: int | None
    authorized: bool
    started_ms: int
    duration_ms: float | None
    status: int | None
    fault: str | None


class RequestLog:
    """A bounded list of entries, and an unbounded counter per method and path."""

    def __init__(self) -> None:
        self.entries: collections.deque[Entry] = collections.deque(maxlen=_CAPACITY)
        self.counts: collections.Counter[str] = collections.Counter()
        self._next = 1

    def begin(self, request: Request) -> Entry:
        """Add a request."""
        entry = Entry(
            number=self._next,
            method=request.method,
            path=request.path,
            query=_SECRET_PARAMETERS.sub(r"\1(present)", request.query),
            headers={k: "(present)" if k in _SECRET_HEADERS else v for k, v in request.headers},
            body_bytes=len(request.body),
            rows_in=_rows(request.body),
            rows_out=None,
            authorized=request.header("authorization") is not None,
            started_ms=int(time.time() * 1000),
            duration_ms=None,
            status=None,
            fault=None,
        )
        self._next += 1
        self.entries.append(entry)
        self.counts[f"{request.method} {request.path}"] += 1
        return entry

    def end(self, entry: Entry, reply: Reply | None, seconds: float) -> None:
        """Add the response; None: the connection was dropped."""
        entry.duration_ms = round(seconds * 1000, 3)
        entry.status = reply.status if reply else 0
        entry.rows_out = _rows(reply.body) if reply else None

    def list(self, *, path: str = "/", method: str | None = None) -> list[dict[str, Any]]:
        """Entries whose path has this prefix, oldest first."""
        return [
            dataclasses.asdict(e)
            for e in self.entries
            if e.path.startswith(path) and (method is None or e.method == method)
        ]

    def clear(self) -> None:
        """Clear the log."""
        self.entries.clear()
        self.counts.clear()


def _rows(body: bytes) -> int | None:
    """Length of a JSON array, or of the array in `{"items": […]}`; None for anything else."""
    if body.lstrip()[:1] not in {b"[", b"{"}:
        return None
    try:
        value = json.loads(body)
    except ValueError:
        return None
    if isinstance(value, dict) and len(value) == 1:
        value = next(iter(value.values()))
    return len(value) if isinstance(value, list) else None
