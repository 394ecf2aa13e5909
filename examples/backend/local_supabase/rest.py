"""The data service at /rest/v1: tables, and the way to functions."""

from __future__ import annotations

import csv
import dataclasses
import io
import json
import re
import urllib.parse
from typing import Any

import psycopg

from . import payload, prefer, query, rest_auth, rest_errors
from .config import Config
from .database import Database
from .http import Reply, Request
from .prefer import Preferences
from .query import Condition, Query
from .rest_auth import Caller
from .rest_errors import RestError
from .schema_cache import SCHEMA, Table
from .sql import WRITTEN, Builder, ident, limit_clause, table_name

JSON_TYPE = "application/json; charset=utf-8"
OBJECT_TYPE = "application/vnd.pgrst.object+json; charset=utf-8"
CSV_TYPE = "text/csv; charset=utf-8"
_MEDIA = {
    "*/*": JSON_TYPE, "application/*": JSON_TYPE, "application/json": JSON_TYPE,
    "application/vnd.pgrst.array+json": JSON_TYPE, "application/vnd.pgrst.object+json": OBJECT_TYPE,
    "text/csv": CSV_TYPE, "application/openapi+json": JSON_TYPE,
}
_METHODS = {"GET", "HEAD", "POST", "PATCH", "PUT", "DELETE", "OPTIONS"}


@dataclasses.dataclass
class Context:
    """All that is known of a request before its query is looked at."""

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

    def transaction(self, *, read_only: bool) -> Any:
        """A transaction as the caller."""
        return self.database.transaction(
            self.caller, self.request, read_only=read_only, timeout_ms=self.timeout_ms,
            timezone=self.preferences.timezone,
        )


async def handle(request: Request, path: str, config: Config, database: Database) -> Reply:
    """Answer one request; `path` is what follows /rest/v1."""
    caller = None
    try:
        if request.method not in _METHODS:
            raise RestError(405, "PGRST117", f"Unsupported HTTP method: {request.method}")
        if request.method == "OPTIONS":
            return Reply(200, headers={"Allow": "OPTIONS,GET,HEAD,POST,PUT,PATCH,DELETE"})
        caller = rest_auth.identify(request.header("authorization"), config.jwt_secret)
        context = Context(
            request, caller,
            prefer.parse(request.all_headers("prefer"), database.cache.timezones),
            _media(request), config, database,
        )
        return await _route(context, path)
    except RestError as error:
        return Reply(error.status, error.body(), error.all_headers())
    except psycopg.Error as error:
        if error.sqlstate is None:
            database.mark_stopped() if database.stopped else None
        known = rest_errors.from_database(error, caller is not None and caller.authenticated)
        return Reply(known.status, known.body(), known.all_headers())


async def _route(context: Context, path: str) -> Reply:
    from . import rpc

    _check_profile(context.request)
    parts = [urllib.parse.unquote(part) for part in path.strip("/").split("/")]
    if path in {"", "/"}:
        return _root(context)
    if parts[0] == "rpc" and len(parts) == 2:
        return await rpc.call(context, parts[1])
    if len(parts) != 1 or path.endswith("/"):
        raise RestError(404, "PGRST125", "Invalid path specified in request URL")
    table = context.database.cache.tables.get(parts[0])
    if table is None:
        raise _no_table(context, parts[0])
    asked = query.parse(query.pairs(context.request.query))
    method = context.request.method
    if method in {"GET", "HEAD"}:
        return await _read(context, table, asked)
    if method == "POST":
        return await _insert(context, table, asked)
    if method == "PUT":
        return await _put(context, table, asked)
    return await _change(context, table, asked)


def _media(request: Request) -> str:
    accept = request.header("accept") or "*/*"
    wanted = [part.split(";")[0].strip() for part in accept.split(",")]
    for name in wanted:
        if name in _MEDIA:
            return _MEDIA[name]
    raise RestError(406, "PGRST107", f"None of these media types are available: {accept}")


def _check_profile(request: Request) -> None:
    reading = request.method in {"GET", "HEAD"}
    profile = request.header("accept-profile" if reading else "content-profile")
    if profile is not None and profile != SCHEMA:
        raise RestError(
            406, "PGRST106", f"Invalid schema: {profile}",
            hint=f"Only the following schemas are exposed: {SCHEMA}",
        )


def _no_table(context: Context, name: str) -> RestError:
    import difflib

    close = difflib.get_close_matches(name, context.database.cache.tables, 1)
    return RestError(
        404, "PGRST205", f"Could not find the table '{SCHEMA}.{name}' in the schema cache",
        hint=f"Perhaps you meant the table '{SCHEMA}.{close[0]}'" if close else None,
    )


def _root(context: Context) -> Reply:
    """A skeleton of the OpenAPI description: the names of tables and functions."""
    cache = context.database.cache
    paths = {f"/{name}": {} for name in cache.tables} | {f"/rpc/{n}": {} for n in cache.functions}
    body = {"swagger": "2.0", "info": {"title": "local backend", "version": "14"}, "paths": paths}
    headers = {"Content-Type": "application/openapi+json; charset=utf-8"}
    return Reply(200, json.dumps(body).encode(), headers)


# Reading ------------------------------------------------------------------------------------------


def apply_range(context: Context, asked: Query) -> None:
    """Narrow limit and offset by the Range header (GET only) and by db-max-rows."""
    top = asked.top
    text = context.request.header("range")
    match = re.fullmatch(r"(?:items=)?(\d+)-(\d*)", text.strip()) if text else None
    if match and context.request.method in {"GET", "HEAD"}:
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
    if context.config.max_rows is not None:
        top.limit = min(context.config.max_rows, top.limit if top.limit is not None else 1 << 62)


def content_range(count: int, offset: int, total: int | None) -> str:
    """`0-2/10`; a star for what is empty or unknown."""
    span = f"{offset}-{offset + count - 1}" if count else "*"
    return f"{span}/{'*' if total is None else total}"


def page_status(count: int, offset: int, total: int | None, applied: dict[str, str]) -> int:
    """200, or 206 when a known total says that there is more. Raises 416 beyond the end."""
    if total is None:
        return 200
    if offset > total or (offset == total and offset > 0):
        raise query.range_error(
            f"An offset of {offset} was requested, but there are only {total} rows.",
            {"Content-Range": f"*/{total}", **applied},
        )
    return 206 if count < total else 200


async def _read(context: Context, table: Table, asked: Query) -> Reply:
    apply_range(context, asked)
    builder = Builder(context.database.cache)
    text = builder.read(table.name, asked)
    async with context.transaction(read_only=True) as cursor:
        count, body = await fetch_rows(cursor, builder, f"WITH source AS ({text})", "source")
        total = await _total(context, cursor, table, asked, count)
    applied = context.preferences.applied("count", "handling", "timezone")
    status = page_status(count, asked.top.offset, total, applied)
    headers = {"Content-Range": content_range(count, asked.top.offset, total), **applied}
    return represent(context, status, count, body, headers)


async def _total(
    context: Context, cursor: psycopg.AsyncRawCursor[Any], table: Table, asked: Query, count: int
) -> int | None:
    how = context.preferences.count
    if how is None:
        return None
    builder = Builder(context.database.cache)
    bare = dataclasses.replace(asked, levels={**asked.levels, (): dataclasses.replace(asked.top)})
    bare.top.limit, bare.top.offset, bare.top.order = None, 0, []
    text = builder.read(table.name, bare)
    if how == "exact":
        await cursor.execute(f"SELECT count(*) FROM ({text}) AS _".encode(), builder.parameters)
        return int((await one(cursor))[0])
    await cursor.execute(f"EXPLAIN (FORMAT JSON) {text}".encode(), builder.parameters)
    return int((await one(cursor))[0][0]["Plan"]["Plan Rows"])


async def one(cursor: psycopg.AsyncRawCursor[Any]) -> tuple[Any, ...]:
    """The single row of an aggregate."""
    row = await cursor.fetchone()
    assert row is not None
    return tuple(row)


async def fetch_rows(
    cursor: psycopg.AsyncRawCursor[Any], builder: Builder, prefix: str, source: str, value: str = "_"
) -> tuple[int, bytes]:
    """Run `prefix SELECT … FROM source` and return how many rows it had and their JSON array."""
    text = f"{prefix} SELECT count(*), coalesce(json_agg({value}), '[]')::text FROM {source} AS _"
    await cursor.execute(text.encode(), builder.parameters)
    count, body = await one(cursor)
    return int(count), body.encode()


def represent(
    context: Context, status: int, count: int, body: bytes, headers: dict[str, str]
) -> Reply:
    """Rows in the media type that was asked for."""
    if context.media == OBJECT_TYPE:
        if count != 1:
            raise RestError(
                406, "PGRST116", "Cannot coerce the result to a single JSON object",
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


# Writing ------------------------------------------------------------------------------------------


def _conflict(context: Context, table: Table, asked: Query) -> tuple[str, list[str]] | None:
    target = asked.on_conflict or list(table.primary_key)
    if context.preferences.resolution is None or not target:
        context.preferences.resolution = None
        return None
    return context.preferences.resolution, target


def _check_columns(table: Table, names: list[str]) -> None:
    for name in names:
        if name not in table.columns:
            raise RestError(
                400, "PGRST204",
                f"Could not find the '{name}' column of '{table.name}' in the schema cache",
            )


async def _insert(context: Context, table: Table, asked: Query) -> Reply:
    request, preferences = context.request, context.preferences
    sent = payload.read(request.body, request.header("content-type"), asked.columns)
    _check_columns(table, sent.names)
    limit = context.config.max_body_rows
    if limit is not None and sent.rows > limit:
        return Reply(413, b"Payload Too Large", {"Content-Type": "text/plain"})
    builder = Builder(context.database.cache)
    conflict = _conflict(context, table, asked)
    merging = conflict is not None and conflict[0] == "merge-duplicates"
    inserted: int | None = None
    if sent.empty:
        count, body, keys = 0, b"[]", None
    else:
        rows = builder.rows_of_body(table, sent.names, sent.body, preferences.missing == "default")
        if not sent.names:
            builder.parameters.clear()
        statement = builder.insert(table, sent.names, rows, conflict)
        async with context.transaction(read_only=False) as cursor:
            count, body, keys, inserted = await _write(
                context, cursor, builder, table, asked, statement, merging,
                with_key=sent.single and preferences.returning == "headers-only",
            )
    status = 200 if merging and count and inserted == 0 else 201
    headers = {
        "Content-Range": f"*/{count if preferences.count else '*'}",
        **preferences.applied(
            "resolution", "missing", "return", "count", "handling", "timezone"
        ),
    }
    if keys:
        filters = urllib.parse.urlencode({k: f"eq.{v}" for k, v in keys.items()})
        headers["Location"] = f"/{table.name}?{filters}"
    if preferences.returning == "representation":
        return represent(context, status, count, body, headers)
    return Reply(status, b"", headers)


async def _put(context: Context, table: Table, asked: Query) -> Reply:
    """Upsert of one row that the filters name by its whole primary key."""
    request = context.request
    keys = {
        c.column.name: c.value
        for c in asked.top.filters
        if isinstance(c, Condition) and c.operator == "eq" and not c.negated
    }
    if set(keys) != set(table.primary_key) or len(asked.top.filters) != len(keys):
        raise RestError(
            405, "PGRST105", "Filters must include all and only primary key columns with 'eq' operators"
        )
    sent = payload.read(request.body, request.header("content-type"), asked.columns)
    _check_columns(table, sent.names)
    values = payload.parse_json(request.body)
    row = values[0] if isinstance(values, list) and len(values) == 1 else values
    if not isinstance(row, dict) or any(str(row.get(k)).lower() != v.lower() for k, v in keys.items()):
        raise RestError(400, "PGRST115", "Payload values do not match URL in primary key column(s)")
    context.preferences.resolution = "merge-duplicates"
    asked.top.filters.clear()
    builder = Builder(context.database.cache)
    rows = builder.rows_of_body(table, sent.names, sent.body, defaults=False)
    statement = builder.insert(table, sent.names, rows, ("merge-duplicates", list(table.primary_key)))
    async with context.transaction(read_only=False) as cursor:
        count, body, _, inserted = await _write(
            context, cursor, builder, table, asked, statement, merging=True
        )
    headers = context.preferences.applied("return", "count", "handling", "timezone")
    if context.preferences.returning == "representation":
        return represent(context, 201 if inserted else 200, count, body, headers)
    return Reply(201 if inserted else 204, b"", headers)


async def _change(context: Context, table: Table, asked: Query) -> Reply:
    """PATCH and DELETE."""
    request, preferences = context.request, context.preferences
    builder = Builder(context.database.cache)
    level = dataclasses.replace(asked.top)
    if request.method == "PATCH":
        sent = payload.read(request.body, request.header("content-type"), asked.columns)
        _check_columns(table, sent.names)
        if sent.empty or not sent.names:
            return Reply(204, b"", {"Content-Range": "*/*"})
        rows = builder.rows_of_body(table, sent.names, sent.body, preferences.missing == "default")
        statement = builder.update(table, sent.names, rows, level)
    else:
        statement = builder.delete(table, level)
    asked.levels[()] = query.Level(order=level.order)
    async with context.transaction(read_only=False) as cursor:
        count, body, _, _ = await _write(context, cursor, builder, table, asked, statement, False)
        if preferences.max_affected is not None and count > preferences.max_affected:
            raise RestError(
                400, "PGRST124", "Query result exceeds max-affected preference constraint",
                f"The query affects {count} rows",
            )
        total = count if preferences.count else None
        names = ("missing", "return", "count", "handling", "timezone", "max-affected")
        span = content_range(count if request.method == "PATCH" else 0, 0, total)
        headers = {"Content-Range": span, **preferences.applied(*names)}
        if preferences.returning == "representation":
            return represent(context, 200, count, body, headers)
    return Reply(204, b"", headers)


async def _write(
    context: Context, cursor: psycopg.AsyncRawCursor[Any], builder: Builder, table: Table,
    asked: Query, statement: str, merging: bool, *, with_key: bool = False,
) -> tuple[int, bytes, dict[str, Any] | None, int]:
    """Run a write. Returns its row count, the rows as JSON, the key if wanted, and how many are new."""
    if context.preferences.returning == "representation":
        names = builder.needed_columns(table, asked)
    else:
        names = list(table.primary_key) if with_key else []
    returning = [f"{ident(table.name)}.{ident(n)}" for n in names]
    if merging:
        # A row version that an UPDATE made carries its transaction in xmax; a fresh one has none.
        returning.append(f"({ident(table.name)}.xmax = 0) AS _new")
    prefix = f"WITH {WRITTEN} AS ({statement} RETURNING {', '.join(returning) or '1'})"
    new = f"(SELECT count(*) FROM {WRITTEN} WHERE _new)" if merging else "0"
    if context.preferences.returning == "representation":
        rows = builder.read(table.name, asked, WRITTEN) if names else f"SELECT * FROM {WRITTEN}"
        if merging and any(isinstance(i, query.Field) and i.column.name == "*" for i in asked.select):
            columns = ", ".join(ident(n) for n in names)
            rows = builder.read(table.name, asked, f"(SELECT {columns} FROM {WRITTEN})")
    else:
        rows = f"SELECT * FROM {WRITTEN}"
    text = (
        f"{prefix} SELECT count(*), coalesce(json_agg(_), '[]')::text, {new} FROM ({rows}) AS _"
    )
    await cursor.execute(text.encode(), builder.parameters)
    count, body, inserted = await one(cursor)
    if context.preferences.returning == "representation" and context.media == OBJECT_TYPE:
        # Raised inside the transaction, so that nothing is stored.
        represent(context, 200, count, body.encode(), {})
    key = json.loads(body)[0] if with_key and count else None
    return int(count), body.encode(), key, int(inserted)


__all__ = ["Context", "handle", "limit_clause", "table_name"]
