"""Reads the query string of the data service into a tree.

Syntax: https://docs.postgrest.org/en/stable/references/api/tables_views.html
"""

from __future__ import annotations

import functools
import re
import urllib.parse

from .query_reader import Reader, column, condition, order
from .query_tree import OPERATORS, Column, Embed, Field, Group, Level, Query
from .rest_errors import RestError

_RESERVED = {"select", "columns", "on_conflict", "order", "limit", "offset"}
_LOGIC = {"and", "or", "not.and", "not.or"}


def pairs(text: str) -> list[tuple[str, str]]:
    """Decoded names and values in order, without the gateway's `apikey`. A bare `+` is a space."""
    decoded = urllib.parse.parse_qsl(text, keep_blank_values=True, separator="&")
    # PostgreSQL's protocol ends a text at its first NUL, and so does the real server.
    return [(name, value.split("\0", 1)[0]) for name, value in decoded if name != "apikey"]


def parse(items: list[tuple[str, str]]) -> Query:
    """Read all of a query string; raises RestError PGRST100 or PGRST103."""
    query = Query((Field(Column("*")),), {(): Level()})
    for name, value in items:
        *path, last = name.split(".")
        if last in {"and", "or"} and path and path[-1] == "not":
            path, last = path[:-1], f"not.{last}"
        level = query.levels.setdefault(tuple(path), Level())
        if last == "select" and not path:
            query.select = _selected(value) if value else query.select
        elif last == "columns" and not path:
            query.columns = _names(value)
        elif last == "on_conflict" and not path:
            query.on_conflict = _names(value)
        elif last == "order":
            level.order = [order(part) for part in value.split(",") if part]
        elif last in {"limit", "offset"}:
            _set_range(level, last, value)
        elif last in _LOGIC:
            word = last.removeprefix("not.")
            members = Reader(value).logic_members()
            level.filters.append(Group(word, members, negated=last.startswith("not.")))
        else:
            level.filters.append(condition(column(last), value))
    for embedded in query.levels:
        _check_embedded(query.select, embedded)
    return query


@functools.lru_cache(maxsize=256)
def _selected(value: str) -> tuple[Field | Embed, ...]:
    return Reader(value).select()


def _check_embedded(items: tuple[Field | Embed, ...], path: tuple[str, ...]) -> None:
    """Check that filters, orders and limits name only tables that `select` embeds."""
    for label in path:
        found = [i for i in items if isinstance(i, Embed) and i.label == label]
        if not found:
            raise RestError(
                400,
                "PGRST108",
                f"'{label}' is not an embedded resource in this request",
                hint=f"Verify that '{label}' is included in the 'select' query parameter.",
            )
        items = found[0].children


def is_reserved(name: str) -> bool:
    """Whether a parameter is syntax, not a filter or a function's argument."""
    last = name.split(".")[-1]
    return name in _RESERVED or last in {"order", "limit", "offset"} or name in _LOGIC


def looks_like_filter(value: str) -> bool:
    """Whether a value begins with an operator, as `eq.5` does."""
    word = re.split(r"[.(]", value.removeprefix("not."), maxsplit=1)[0]
    return "." in value and (word in OPERATORS or word in {"in", "is"})


def _names(value: str) -> list[str]:
    return [part.strip().strip('"') for part in value.split(",") if part.strip()]


def _set_range(level: Level, word: str, value: str) -> None:
    """Values that are not integers are ignored, as in the real server."""
    try:
        number = int(value)
    except ValueError:
        return
    if number < 0 and word == "limit":
        raise range_error("Limit should be greater than or equal to zero.")
    if word == "limit":
        level.limit = number
    else:
        level.offset = max(0, number)


def range_error(details: str, headers: dict[str, str] | None = None) -> RestError:
    """416 PGRST103."""
    return RestError(416, "PGRST103", "Requested range not satisfiable", details, headers=headers)
