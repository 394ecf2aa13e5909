"""Shared by the handlers of the data service: context, ranges and response formats."""

from __future__ import annotations

import csv
import dataclasses
import io
import json
import re
from contextlib import AbstractAsyncContextManager
from typing import Any

import psycopg

from . import query
from .config import Config
from .database import Database
from .messages import Reply, Request
from .prefer import Preferences
from .query_tree import Query
from .rest_auth import Caller
from .rest_errors import RestError
from .sql import Builder

Cursor = psycopg.AsyncRawCursor[Any]

JSON_TYPE = "application/json; charset=utf-8"
OBJECT_TYPE = "application/vnd.pgrst.object+json; charset=utf-8"
CSV_TYPE = "text/csv; charset=utf-8"
_MEDIA = {
    "*/*": JSON_TYPE,
    "application/*": JSON_TYPE,
    "application/json": JSON_TYPE,
    "application/vnd.pgrst.array+json": JSON_TYPE,
    "application/vnd.pgrst.object+json": OBJECT_TYPE,
    "text/csv": CSV_TYPE,
    "application/openapi+json": JSON_TYPE,
}


@dataclasses.dataclass
class Context:
    """A request before its query is read."""

    request: Request
    caller: Caller
    preferences: Preferences
    media: str
    config: Config
    database: Database

    @property
    def timeout_ms(self) -> int | None:
        """Override of the role's statement_timeout."""
        return self.config.statement_timeout_ms

    def transaction(self, *, read_only: bool) -> AbstractAsyncContextManager[Cursor]:
        """A transaction as the caller's role."""
        return self.database.transaction(
            self.caller,
            self.request,
            read_only=read_only,
            timeout_ms=self.timeout_ms,
            timezone=self.preferences.timezone,
        )


def media_type(request: Request) -> str:
    """The first known type of the Accept header; raises 406."""
    accept = request.header("accept") or "*/*"
    wanted = [part.split(";")[0].strip() for part in accept.split(",")]
    for name in wanted:
        if name in _MEDIA:
            return _MEDIA[name]
    raise RestError(406, "PGRST107", f"None of these media types are available: {accept}")


def apply_range(request: Request, config: Config, asked: Query) -> None:
    """Narrow limit and offset by the Range header (GET only) and by db-max-rows."""
    top = asked.top
    text = request.header("range")
    match = re.fullmatch(r"(?:items=)?(\d+)-(\d*)", text.strip()) if text else None
    if match and request.method in {"GET", "HEAD"}:
        first, last = int(match[1]), match[2]
        if last and int(last) < first:
            raise query.range_error(
                "The lower boundary must be lower than or equal to the upper boundary "
                "in the Range header."
            )
        top.offset += first
        if last:
            size = int(last) - first + 1
            top.limit = size if top.limit is None else max(0, min(top.limit - first, size))
    if config.max_rows is not None:
        top.limit = min(config.max_rows, top.limit if top.limit is not None else 1 << 62)


def content_range(count: int, offset: int, total: int | None) -> str:
    """Content-Range, such as `0-2/10`; a star stands for empty or unknown."""
    span = f"{offset}-{offset + count - 1}" if count else "*"
    return f"{span}/{'*' if total is None else total}"


def page_status(count: int, offset: int, total: int | None, applied: dict[str, str]) -> int:
    """Return 200, or 206 if a known total is larger. Raises 416 beyond the end."""
    if total is None:
        return 200
    if offset > total or (offset == total and offset > 0):
        raise query.range_error(
            f"An offset of {offset} was requested, but there are only {total} rows.",
            {"Content-Range": f"*/{total}", **applied},
        )
    return 206 if count < total else 200


async def one(cursor: Cursor) -> tuple[Any, ...]:
    """The single row of an aggregate."""
    row = await cursor.fetchone()
    assert row is not None
    return tuple(row)


async def fetch_rows(
    cursor: Cursor,
    builder: Builder,
    prefix: str,
    source: str,
    value: str = "_",
    total: str = "NULL",
) -> tuple[int, bytes, int | None]:
    """Run `prefix SELECT … FROM source`. Returns the row count, the rows as JSON, and `total`."""
    text = f"{prefix} SELECT count(*), coalesce(json_agg({value}), '[]')::text, {total} FROM {source} AS _"
    await cursor.execute(text.encode(), builder.parameters)
    count, body, all_rows = await one(cursor)
    return int(count), body.encode(), all_rows


def represent(
    context: Context, status: int, count: int, body: bytes, headers: dict[str, str]
) -> Reply:
    """Format rows in the requested media type."""
    if context.media == OBJECT_TYPE:
        if count != 1:
            raise RestError(
                406,
                "PGRST116",
                "Cannot coerce the result to a single JSON object",
                f"The result contains {count} rows",
            )
        body = body[1:-1]
    elif context.media == CSV_TYPE:
        body = _csv(body)
    return Reply(status, body, {"Content-Type": context.media, **headers})


def _csv(body: bytes) -> bytes:
    rows = json.loads(body)
    out = io.StringIO()
    if rows:
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(rows[0])
        for row in rows:
            writer.writerow(
                json.dumps(v) if isinstance(v, (dict, list)) else v for v in row.values()
            )
    return out.getvalue().rstrip("\n").encode()
