"""The data service at /rest/v1: routes to tables and functions."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import difflib
import json
import urllib.parse

import psycopg

from . import prefer, query, rest_auth, rest_errors, rest_write, rpc
from .config import Config
from .database import Database
from .messages import Reply, Request
from .query_tree import Query
from .rest_context import (
    Context,
    Cursor,
    apply_range,
    content_range,
    fetch_rows,
    media_type,
    one,
    page_status,
    represent,
)
from .rest_errors import RestError
from .schema_cache import SCHEMA, Table
from .sql import Builder

_METHODS = {"GET", "HEAD", "POST", "PATCH", "PUT", "DELETE", "OPTIONS"}


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
            request,
            caller,
            prefer.parse(request.all_headers("prefer"), database.cache.timezones),
            media_type(request),
            config,
            database,
        )
        return await _route_until_serializable(context, path)
    except RestError as error:
        return Reply(error.status, error.body(), error.all_headers())
    except psycopg.Error as error:
        known = rest_errors.from_database(error, caller is not None and caller.authenticated)
        return Reply(known.status, known.body(), known.all_headers())


async def _route_until_serializable(context: Context, path: str) -> Reply:
    """Repeat a transaction that failed with 40001. PostgREST does so without limit (measured)."""
    while True:
        with contextlib.suppress(psycopg.errors.SerializationFailure):
            return await _route(context, path)
        await asyncio.sleep(0.01)


async def _route(context: Context, path: str) -> Reply:
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
        return await rest_write.insert(context, table, asked)
    if method == "PUT":
        return await rest_write.put(context, table, asked)
    return await rest_write.change(context, table, asked)


def _check_profile(request: Request) -> None:
    reading = request.method in {"GET", "HEAD"}
    profile = request.header("accept-profile" if reading else "content-profile")
    if profile is not None and profile != SCHEMA:
        raise RestError(
            406,
            "PGRST106",
            f"Invalid schema: {profile}",
            hint=f"Only the following schemas are exposed: {SCHEMA}",
        )


def _no_table(context: Context, name: str) -> RestError:
    close = difflib.get_close_matches(name, context.database.cache.tables, 1)
    return RestError(
        404,
        "PGRST205",
        f"Could not find the table '{SCHEMA}.{name}' in the schema cache",
        hint=f"Perhaps you meant the table '{SCHEMA}.{close[0]}'" if close else None,
    )


def _root(context: Context) -> Reply:
    """A minimal OpenAPI description: the names of tables and functions."""
    cache = context.database.cache
    names = [*cache.tables, *(f"rpc/{name}" for name in cache.functions)]
    paths: dict[str, dict[str, str]] = {f"/{name}": {} for name in names}
    body = {"swagger": "2.0", "info": {"title": "local backend", "version": "14"}, "paths": paths}
    headers = {"Content-Type": "application/openapi+json; charset=utf-8"}
    return Reply(200, json.dumps(body).encode(), headers)


# Reading ------------------------------------------------------------------------------------------


async def _read(context: Context, table: Table, asked: Query) -> Reply:
    apply_range(context.request, context.config, asked)
    builder = Builder(context.database.cache)
    text = builder.read(table.name, asked)
    async with context.transaction(read_only=True) as cursor:
        count, body, _ = await fetch_rows(cursor, builder, f"WITH source AS ({text})", "source")
        total = await _total(context, cursor, table, asked, count)
    applied = context.preferences.applied("count", "handling", "timezone")
    status = page_status(count, asked.top.offset, total, applied)
    headers = {"Content-Range": content_range(count, asked.top.offset, total), **applied}
    return represent(context, status, count, body, headers)


async def _total(
    context: Context, cursor: Cursor, table: Table, asked: Query, count: int
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
