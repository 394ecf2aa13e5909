"""Requests and replies as values, so that a fault can act between handler and network."""

from __future__ import annotations

import dataclasses
import urllib.parse


@dataclasses.dataclass(frozen=True)
class Request:
    """One request with its whole body. Header names are in lower case."""

    method: str
    path: str
    query: str
    headers: tuple[tuple[str, str], ...]
    body: bytes
    base_url: str

    def header(self, name: str) -> str | None:
        """The first header of this name."""
        return next((v for k, v in self.headers if k == name), None)

    def all_headers(self, name: str) -> list[str]:
        """Every header of this name, in order."""
        return [v for k, v in self.headers if k == name]

    def parameters(self) -> dict[str, str]:
        """The query parameters; of repeated names the last."""
        return dict(urllib.parse.parse_qsl(self.query, keep_blank_values=True))


@dataclasses.dataclass
class Reply:
    """The response."""

    status: int
    body: bytes = b""
    headers: dict[str, str] = dataclasses.field(default_factory=dict)
