"""Functions of the database, called at /rest/v1/rpc/NAME."""

from __future__ import annotations

from . import payload, query
from .messages import Reply
from .query_tree import Column, Field, Query
from .rest_context import (
    OBJECT_TYPE,
    Context,
    apply_range,
    content_range,
    fetch_rows,
    page_status,
    represent,
)
from .rest_errors import RestError
from .schema_cache import SCHEMA, Function
from .sql import Builder, RawJson, ident, limit_clause, table_name

_RESULT = "pgrst_scalar"


async def call(context: Context, name: str) -> Reply:
    """GET, HEAD or POST of a function."""
    request = context.request
    if request.method not in {"GET", "HEAD", "POST"}:
        raise RestError(405, "PGRST101", f"Cannot use the {request.method} method on RPC")
    items = query.pairs(request.query)
    reading = request.method != "POST"
    builder = Builder(context.database.cache)
    if reading:
        names = [k for k, v in items if not query.is_reserved(k) and not query.looks_like_filter(v)]
        function = _choose(context, name, names)
        source = _call_with_values(builder, function, dict(items))
        items = [(k, v) for k, v in items if k not in names]
    else:
        function, source = _call_with_body(context, builder, name)
    asked = query.parse(items)
    apply_range(context.request, context.config, asked)
    async with context.transaction(read_only=reading) as cursor:
        if function.shape == "void":
            await cursor.execute(f"SELECT 1 FROM {source}".encode(), builder.parameters)
            return Reply(204, b"", {"Content-Range": "0-0/*"})
        is_row = function.shape == "row"
        if not is_row:
            asked.select = (Field(Column(_RESULT)),)
        limit, offset, asked.top.limit, asked.top.offset = (
            asked.top.limit,
            asked.top.offset,
            None,
            0,
        )
        page = f"SELECT * FROM every{limit_clause(limit, offset)}"
        prefix = f"WITH every AS ({_rows(builder, function, source, asked)}), source AS ({page})"
        count, body, total = await fetch_rows(
            cursor,
            builder,
            prefix,
            "source",
            "_" if is_row else f"_.{ident(_RESULT)}",
            "(SELECT count(*) FROM every)" if context.preferences.count else "NULL",
        )
    applied = context.preferences.applied("count", "handling", "timezone")
    headers = {"Content-Range": content_range(count, offset, total), **applied}
    status = page_status(count, offset, total, applied)
    if not function.returns_set and context.media != OBJECT_TYPE:
        body = body[1:-1]
    return represent(context, status, count, body, headers)


def _rows(builder: Builder, function: Function, source: str, asked: Query) -> str:
    """SELECT from the function's rows as from a table."""
    if function.shape == "row":
        return builder.read(
            function.name, asked, f"(SELECT {ident(function.name)}.* FROM {source})"
        )
    return builder.read(
        function.name, asked, f"(SELECT {ident(function.name)} AS {ident(_RESULT)} FROM {source})"
    )


def _call_with_body(context: Context, builder: Builder, name: str) -> tuple[Function, str]:
    data = context.request.body or b"{}"
    sent = payload.parse_json(data)
    if isinstance(sent, list):
        if sent and not payload.same_keys(sent):
            raise RestError(400, "PGRST102", "All object keys must match")
        names = list(sent[0]) if sent else []
    else:
        names = list(sent) if isinstance(sent, dict) else []
    function = _choose(context, name, names)
    alias = ident(function.name)
    if function.takes_body:
        place = f"{builder.parameter(RawJson(data))}::{function.arguments[0].type}"
        return function, f"{table_name(name)}({place}) AS {alias}"
    given = [a for a in function.arguments if a.name in names]
    if not given:
        return function, f"{table_name(name)}() AS {alias}"
    typed = ", ".join(f"{ident(a.name)} {a.type}" for a in given)
    passed = ", ".join(f"{ident(a.name)} := _args.{ident(a.name)}" for a in given)
    body = builder.parameter(RawJson(data))
    record = f"CASE json_typeof({body}) WHEN 'array' THEN {body} -> 0 ELSE {body} END"
    return function, (
        f"json_to_record({record}) AS _args({typed}), LATERAL {table_name(name)}({passed}) AS {alias}"
    )


def _call_with_values(builder: Builder, function: Function, values: dict[str, str]) -> str:
    passed = ", ".join(
        f"{ident(a.name)} := {builder.parameter(values[a.name])}::{a.type}"
        for a in function.arguments
        if a.name in values
    )
    return f"{table_name(function.name)}({passed}) AS {ident(function.name)}"


def _choose(context: Context, name: str, names: list[str]) -> Function:
    """Find the function with exactly these arguments, else one that takes the whole body."""
    known = context.database.cache.functions.get(name, ())
    for function in known:
        taken = {a.name for a in function.arguments if a.name}
        required = {a.name for a in function.arguments if not a.has_default}
        if set(names) <= taken and required <= set(names) and not function.takes_body:
            return function
    if context.request.method == "POST":
        for function in known:
            if function.takes_body:
                return function
    raise _not_found(name, names, known)


def _not_found(name: str, names: list[str], known: tuple[Function, ...]) -> RestError:
    listed = ", ".join(sorted(names))
    if names:
        called = f"{SCHEMA}.{name}({listed})"
        searched = f"with parameter{'s' if len(names) > 1 else ''} {listed}"
    else:
        called = f"{SCHEMA}.{name} without parameters"
        searched = "without parameters"
    hint = None
    if known:
        arguments = ", ".join(a.name for a in known[0].arguments)
        hint = f"Perhaps you meant to call the function {SCHEMA}.{name}({arguments})"
    return RestError(
        404,
        "PGRST202",
        f"Could not find the function {called} in the schema cache",
        f"Searched for the function {SCHEMA}.{name} {searched} or with a single unnamed json/jsonb "
        "parameter, but no matches were found in the schema cache.",
        hint,
    )
