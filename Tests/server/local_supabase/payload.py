"""Request bodies of the data service: rows as JSON, CSV or a form."""

from __future__ import annotations

import csv
import dataclasses
import io
import json
import re
import urllib.parse
from collections.abc import Callable
from typing import Any

from .rest_errors import RestError
from .sql import RawJson


@dataclasses.dataclass
class Payload:
    """The body for PostgreSQL, the columns that it names, and whether it was a single object."""

    body: RawJson
    names: list[str]
    empty: bool
    single: bool
    rows: int


def read(data: bytes, content_type: str | None, columns: list[str] | None) -> Payload:
    """Read a body. With the parameter `columns`, JSON is passed on unparsed, as in PostgREST."""
    kind = (content_type or "application/json").split(";")[0].strip().lower()
    if kind == "text/csv":
        rows: Any = list(csv.DictReader(io.StringIO(data.decode("utf-8", "replace"))))
        data = json.dumps(
            [{k: None if v == "NULL" else v for k, v in row.items()} for row in rows]
        ).encode()
    elif kind == "application/x-www-form-urlencoded":
        data = json.dumps(
            dict(urllib.parse.parse_qsl(data.decode(), keep_blank_values=True))
        ).encode()
    elif kind not in {"application/json", "application/vnd.pgrst.object+json"}:
        raise _invalid(f"Content-Type not acceptable: {kind}")
    if columns is not None:
        text = data.lstrip()
        empty = re.fullmatch(rb"\[\s*\]\s*", text) is not None
        return Payload(RawJson(data), columns, empty, text.startswith(b"{"), data.count(b"{"))
    value = parse_json(data)
    if isinstance(value, dict):
        return Payload(RawJson(data), list(value), empty=False, single=True, rows=1)
    if not isinstance(value, list) or not value:
        return Payload(RawJson(b"[]"), [], empty=True, single=False, rows=0)
    if not same_keys(value):
        raise _invalid("All object keys must match")
    return Payload(RawJson(data), list(value[0]), empty=False, single=False, rows=len(value))


def parse_json(data: bytes, fraction: Callable[[str], Any] | None = None) -> Any:
    """Strict JSON: valid UTF-8, no byte-order mark, no NaN, no lone surrogates. Raises PGRST102.

    `fraction` makes the value of a number that is not an integer from its text.
    """
    try:
        text = data.decode("utf-8")
        value = json.loads(text, parse_constant=_no_constant, parse_float=fraction)
        if rb"\ud" in data.lower():
            json.dumps(value, ensure_ascii=False).encode("utf-8")
    except (ValueError, RecursionError) as error:
        raise _invalid("Empty or invalid json") from error
    return value


def same_keys(rows: list[Any]) -> bool:
    """Whether all members are objects with the same keys."""
    first = rows[0]
    return isinstance(first, dict) and all(
        isinstance(row, dict) and row.keys() == first.keys() for row in rows
    )


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


def _invalid(message: str) -> RestError:
    return RestError(400, "PGRST102", message)
