"""Writing tables: POST, PUT, PATCH and DELETE."""

from __future__ import annotations

import dataclasses
import json
import urllib.parse
from typing import Any

from . import payload
from .messages import Reply
from .query_tree import Condition, Field, Group, Level, Query
from .rest_context import OBJECT_TYPE, Context, Cursor, content_range, one, represent
from .rest_errors import RestError
from .schema_cache import Table
from .sql import WRITTEN, Builder, ident, table_name


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
                400,
                "PGRST204",
                f"Could not find the '{name}' column of '{table.name}' in the schema cache",
            )


async def insert(context: Context, table: Table, asked: Query) -> Reply:
    """POST: one statement for all rows stores all of them or none."""
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
                context,
                cursor,
                builder,
                table,
                asked,
                statement,
                merging,
                with_key=sent.single and preferences.returning == "headers-only",
            )
    status = 200 if merging and count and inserted == 0 else 201
    headers = {
        "Content-Range": f"*/{count if preferences.count else '*'}",
        **preferences.applied("resolution", "missing", "return", "count", "handling", "timezone"),
    }
    if keys:
        filters = urllib.parse.urlencode({k: f"eq.{v}" for k, v in keys.items()})
        headers["Location"] = f"/{table.name}?{filters}"
    if preferences.returning == "representation":
        return represent(context, status, count, body, headers)
    return Reply(status, b"", headers)


async def put(context: Context, table: Table, asked: Query) -> Reply:
    """PUT: upsert one row, which the filters name by its whole primary key."""
    request = context.request
    keys = {
        c.column.name: c.value
        for c in asked.top.filters
        if isinstance(c, Condition) and c.operator == "eq" and not c.negated
    }
    if set(keys) != set(table.primary_key) or len(asked.top.filters) != len(keys):
        raise RestError(
            405,
            "PGRST105",
            "Filters must include all and only primary key columns with 'eq' operators",
        )
    sent = payload.read(request.body, request.header("content-type"), asked.columns)
    _check_columns(table, sent.names)
    values = payload.parse_json(request.body)
    row = values[0] if isinstance(values, list) and len(values) == 1 else values
    if not isinstance(row, dict) or any(
        str(row.get(k)).lower() != v.lower() for k, v in keys.items()
    ):
        raise RestError(400, "PGRST115", "Payload values do not match URL in primary key column(s)")
    context.preferences.resolution = "merge-duplicates"
    asked.top.filters.clear()
    builder = Builder(context.database.cache)
    rows = builder.rows_of_body(table, sent.names, sent.body, defaults=False)
    statement = builder.insert(
        table, sent.names, rows, ("merge-duplicates", list(table.primary_key))
    )
    async with context.transaction(read_only=False) as cursor:
        count, body, _, inserted = await _write(
            context, cursor, builder, table, asked, statement, merging=True
        )
    headers = context.preferences.applied("return", "count", "handling", "timezone")
    if context.preferences.returning == "representation":
        return represent(context, 201 if inserted else 200, count, body, headers)
    return Reply(201 if inserted else 204, b"", headers)


async def change(context: Context, table: Table, asked: Query) -> Reply:
    """PATCH and DELETE."""
    request, preferences = context.request, context.preferences
    builder = Builder(context.database.cache)
    level = dataclasses.replace(asked.top)
    statement: str | None = None
    if request.method == "PATCH":
        sent = payload.read(request.body, request.header("content-type"), asked.columns)
        _check_columns(table, sent.names)
        if sent.names and not sent.empty:
            defaults = preferences.missing == "default"
            rows = builder.rows_of_body(table, sent.names, sent.body, defaults)
            statement = builder.update(table, sent.names, rows, level)
    else:
        statement = builder.delete(table, level)
    # As in the real server, or= and and= choose among the changed rows once more.
    groups = [item for item in level.filters if isinstance(item, Group)]
    asked.levels[()] = Level(filters=list(groups), order=level.order)
    async with context.transaction(read_only=False) as cursor:
        count, body, _, _ = await _write(context, cursor, builder, table, asked, statement, False)
        if preferences.max_affected is not None and count > preferences.max_affected:
            raise RestError(
                400,
                "PGRST124",
                "Query result exceeds max-affected preference constraint",
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
    context: Context,
    cursor: Cursor,
    builder: Builder,
    table: Table,
    asked: Query,
    statement: str | None,
    merging: bool,
    *,
    with_key: bool = False,
) -> tuple[int, bytes, dict[str, Any] | None, int]:
    """Run a write. Returns row count, rows as JSON, optional key, count of new rows.

    Without a statement nothing is written, and no row is returned.
    """
    if context.preferences.returning == "representation":
        names = builder.needed_columns(table, asked)
    else:
        names = list(table.primary_key) if with_key else []
    returning = [f"{ident(table.name)}.{ident(n)}" for n in names]
    if merging:
        # xmax is the transaction in a row version that an UPDATE made, and 0 in an inserted one.
        returning.append(f"({ident(table.name)}.xmax = 0) AS _new")
    listed = ", ".join(returning) or "1"
    if statement is None:
        changed = f"SELECT {listed} FROM {table_name(table.name)} WHERE false"
    else:
        changed = f"{statement} RETURNING {listed}"
    prefix = f"WITH {WRITTEN} AS ({changed})"
    new = f"(SELECT count(*) FROM {WRITTEN} WHERE _new)" if merging else "0"
    if context.preferences.returning == "representation":
        rows = builder.read(table.name, asked, WRITTEN) if names else f"SELECT * FROM {WRITTEN}"
        if merging and any(isinstance(i, Field) and i.column.name == "*" for i in asked.select):
            columns = ", ".join(ident(n) for n in names)
            rows = builder.read(table.name, asked, f"(SELECT {columns} FROM {WRITTEN})")
    else:
        rows = f"SELECT * FROM {WRITTEN}"
    text = f"{prefix} SELECT count(*), coalesce(json_agg(_), '[]')::text, {new} FROM ({rows}) AS _"
    await cursor.execute(text.encode(), builder.parameters)
    count, body, inserted = await one(cursor)
    if context.preferences.returning == "representation" and context.media == OBJECT_TYPE:
        # Raise inside the transaction: nothing is stored.
        represent(context, 200, count, body.encode(), {})
    key = json.loads(body)[0] if with_key and count else None
    return int(count), body.encode(), key, int(inserted)
