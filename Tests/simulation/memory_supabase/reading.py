"""PostgREST queries over rows in memory: filters, groups, order, ranges, columns, embedding."""

from __future__ import annotations

import re
from typing import Any, cast

from local_supabase.query_reader import list_items
from local_supabase.query_tree import Condition, Embed, Field, Group, Level, Order, Query

from .database import Database
from .schema import TABLES, Row, Table
from .values import SqlError, Value, convert, show


def rows(
    database: Database, table: Table, asked: Query, caller: str, given: list[Row]
) -> list[Row]:
    """Return the given rows that the query selects, in its order and range."""
    level = asked.top
    found = [row for row in given if all(holds(table, row, f) for f in level.filters)]
    for item in asked.select:
        if isinstance(item, Embed) and item.inner:
            found = [row for row in found if _related(database, table, row, item, asked, caller)]
    found = ordered(table, found, level)
    end = None if level.limit is None else level.offset + level.limit
    return found[level.offset : end]


def ordered(table: Table, found: list[Row], level: Level) -> list[Row]:
    """Sort by the last key first: the sort is stable."""
    for order in reversed(level.order):
        found = _sorted(found, _known(table, order.column.name), order)
    return found


def _sorted(found: list[Row], name: str, order: Order) -> list[Row]:
    values = [row for row in found if row[name] is not None]
    nulls = [row for row in found if row[name] is None]
    values.sort(key=lambda row: cast(Any, row[name]), reverse=order.descending)
    first = order.nulls == "first" or (order.nulls == "" and order.descending)
    return nulls + values if first else values + nulls


def shown(
    database: Database,
    table: Table,
    row: Row,
    select: tuple[Field | Embed, ...],
    asked: Query,
    caller: str,
) -> dict[str, Any]:
    """Return the columns that `select` names."""
    result: dict[str, Any] = {}
    for item in select:
        if isinstance(item, Embed):
            result[item.label] = _embedded(database, table, row, item, asked, caller)
        elif item.column.name == "*":
            result.update({name: show(value) for name, value in row.items()})
        else:
            value = show(row[_known(table, item.column.name)])
            result[item.alias or item.column.name] = str(value) if item.cast == "text" else value
    return result


# Filters ------------------------------------------------------------------------------------------


def _known(table: Table, name: str) -> str:
    if table.column(name) is None:
        raise SqlError("42703", f"column {table.name}.{name} does not exist")
    return name


def holds(table: Table, row: Row, part: Condition | Group) -> bool:
    """Whether the row meets the condition."""
    if isinstance(part, Group):
        members = [holds(table, row, member) for member in part.members]
        return (all(members) if part.word == "and" else any(members)) is not part.negated
    name = _known(table, part.column.name)
    found = _compares(table, row[name], name, part)
    # A comparison with NULL is unknown, and so is its negation.
    return found is not None and found is not part.negated


def _compares(table: Table, value: Value, name: str, condition: Condition) -> bool | None:
    column = table.column(name)
    assert column is not None
    if condition.operator == "is":
        return _is(value, condition.value)
    if condition.operator == "in":
        wanted = [convert(column.kind, text) for text in list_items(condition.value)]
        return None if value is None else value in wanted
    if condition.operator in {"like", "ilike"}:
        return None if value is None else _like(str(value), condition)
    wanted_value = convert(column.kind, condition.value)
    if value is None or wanted_value is None:
        return None
    left: Any = value
    right: Any = wanted_value
    comparisons = {
        "eq": left == right, "neq": left != right, "gt": left > right, "gte": left >= right,
        "lt": left < right, "lte": left <= right,
    }  # fmt: skip
    if condition.operator not in comparisons:
        raise NotImplementedError(f"operator {condition.operator}")
    return bool(comparisons[condition.operator])


def _is(value: Value, word: str) -> bool:
    if word.lower() == "null":
        return value is None
    if word.lower() == "not_null":
        return value is not None
    raise NotImplementedError(f"is.{word}")


def _like(value: str, condition: Condition) -> bool:
    parts = re.split(r"[*%]", condition.value)
    pattern = ".*".join(re.escape(part).replace("_", ".") for part in parts)
    flags = re.DOTALL | (re.IGNORECASE if condition.operator == "ilike" else 0)
    return re.fullmatch(pattern, value, flags) is not None


# Embedding ----------------------------------------------------------------------------------------


def _related(
    database: Database, table: Table, row: Row, embed: Embed, asked: Query, caller: str
) -> list[Row]:
    """Return the visible rows of the embedded table that belong to this row."""
    target = TABLES.get(embed.target)
    if target is None:
        raise SqlError("PGRST200", f"no relationship between {table.name} and {embed.target}")
    visible = database.visible(target, caller)
    for reference in table.references:
        if reference.table == target.name:
            keys = tuple(row[c] for c in reference.columns)
            found = [r for r in visible if tuple(r[c] for c in reference.target) == keys]
            break
    else:
        found = []
        for reference in target.references:
            if reference.table == table.name:
                keys = tuple(row[c] for c in reference.target)
                found = [r for r in visible if tuple(r[c] for c in reference.columns) == keys]
                break
        else:
            raise SqlError("PGRST200", f"no relationship between {table.name} and {target.name}")
    level = asked.level((embed.label,))
    return [r for r in found if all(holds(target, r, f) for f in level.filters)]


def _embedded(
    database: Database, table: Table, row: Row, embed: Embed, asked: Query, caller: str
) -> Any:  # noqa: ANN401 - an object, a list, or null
    target = TABLES.get(embed.target)
    related = _related(database, table, row, embed, asked, caller)
    assert target is not None
    level = asked.level((embed.label,))
    found = ordered(target, related, level)
    end = None if level.limit is None else level.offset + level.limit
    values = [
        shown(database, target, one, embed.children, asked, caller)
        for one in found[level.offset : end]
    ]
    if any(reference.table == target.name for reference in table.references):
        return values[0] if values else None
    return values
