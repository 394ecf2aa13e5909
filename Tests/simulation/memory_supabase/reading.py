"""PostgREST queries over rows in memory: filters, groups, order, ranges, columns, embedding."""

from __future__ import annotations

import re
from collections.abc import Iterator
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
    found = [
        row for row in given if all(holds(database, table, row, f, caller) for f in level.filters)
    ]
    for item in asked.select:
        if isinstance(item, Embed) and item.inner:
            found = [row for row in found if _related(database, table, row, item, asked, caller)]
    found = ordered(database, table, found, level, caller)
    end = None if level.limit is None else level.offset + level.limit
    return found[level.offset : end]


def ordered(
    database: Database, table: Table, found: list[Row], level: Level, caller: str
) -> list[Row]:
    """Sort by the last key first: the sort is stable."""
    for order in reversed(level.order):
        name = _known(table, order.column.name)
        keyed = [(_value(database, table, row, name, caller), row) for row in found]
        found = _sorted(keyed, order)
    return found


def _sorted(keyed: list[tuple[Value, Row]], order: Order) -> list[Row]:
    known = [pair for pair in keyed if pair[0] is not None]
    known.sort(key=lambda pair: cast(Any, pair[0]), reverse=order.descending)
    values = [row for _, row in known]
    nulls = [row for value, row in keyed if value is None]
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
            name = _known(table, item.column.name)
            value = show(_value(database, table, row, name, caller))
            result[item.alias or item.column.name] = str(value) if item.cast == "text" else value
    return result


# Filters ------------------------------------------------------------------------------------------


def _known(table: Table, name: str) -> str:
    if table.column(name) is None and name not in table.computed:
        raise SqlError("42703", f"column {table.name}.{name} does not exist")
    return name


def _value(database: Database, table: Table, row: Row, name: str, caller: str) -> Value:
    """Return the value of a column or of a computed field."""
    computed = table.computed.get(name)
    return row[name] if computed is None else computed(database, caller, row)


def named(
    table: Table, select: tuple[Field | Embed, ...], level: Level, asked: Query
) -> Iterator[tuple[Table, str]]:
    """Yield every column that a query reads, with its table. `*` stands for all of a table."""
    for item in select:
        if isinstance(item, Field):
            yield table, item.column.name
        elif item.target in TABLES:
            inner = asked.level((item.label,))
            yield from named(TABLES[item.target], item.children, inner, asked)
    for order in level.order:
        yield table, order.column.name
    parts = list(level.filters)
    while parts:
        part = parts.pop()
        if isinstance(part, Group):
            parts += part.members
        else:
            yield table, part.column.name


def holds(database: Database, table: Table, row: Row, part: Condition | Group, caller: str) -> bool:
    """Whether the row meets the condition."""
    if isinstance(part, Group):
        members = [holds(database, table, row, member, caller) for member in part.members]
        return (all(members) if part.word == "and" else any(members)) is not part.negated
    name = _known(table, part.column.name)
    column = table.column(name)
    kind = "text" if column is None else column.kind
    found = _compares(kind, _value(database, table, row, name, caller), part)
    # A comparison with NULL is unknown, and so is its negation.
    return found is not None and found is not part.negated


def _compares(kind: str, value: Value, condition: Condition) -> bool | None:
    if condition.operator == "is":
        return _is(value, condition.value)
    if condition.operator == "in":
        wanted = [convert(kind, text) for text in list_items(condition.value)]
        return None if value is None else value in wanted
    if condition.operator in {"like", "ilike"}:
        return None if value is None else _like(str(value), condition)
    wanted_value = convert(kind, condition.value)
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
    return [r for r in found if all(holds(database, target, r, f, caller) for f in level.filters)]


def _embedded(
    database: Database, table: Table, row: Row, embed: Embed, asked: Query, caller: str
) -> Any:  # noqa: ANN401 - an object, a list, or null
    target = TABLES.get(embed.target)
    related = _related(database, table, row, embed, asked, caller)
    assert target is not None
    level = asked.level((embed.label,))
    found = ordered(database, target, related, level, caller)
    end = None if level.limit is None else level.offset + level.limit
    values = [
        shown(database, target, one, embed.children, asked, caller)
        for one in found[level.offset : end]
    ]
    if any(reference.table == target.name for reference in table.references):
        return values[0] if values else None
    return values
