"""Makes SQL from a query tree. Every value is a parameter, every name is quoted."""

from __future__ import annotations

from typing import Any

import psycopg
from psycopg.adapt import Buffer, Dumper
from psycopg.pq import Format

from .query_reader import list_items
from .query_tree import OPERATORS, Column, Condition, Embed, Field, Group, Level, Order, Query
from .rest_errors import RestError
from .schema_cache import SCHEMA, Relation, SchemaCache, Table

#: Name of the table expression with the written rows.
WRITTEN = "written"


class RawJson:
    """A request's body, passed to PostgreSQL unchanged, which checks encoding and syntax."""

    def __init__(self, data: bytes) -> None:
        self.data = data


class RawJsonDumper(Dumper):
    """Sends RawJson as a text parameter of type json."""

    format = Format.TEXT
    oid = psycopg.adapters.types["json"].oid

    def dump(self, obj: RawJson) -> Buffer | None:
        """The bytes, unchanged."""
        return obj.data


def ident(name: str) -> str:
    """A quoted identifier."""
    return '"' + name.replace('"', '""') + '"'


def table_name(name: str) -> str:
    """A quoted name in the exposed schema."""
    return f"{ident(SCHEMA)}.{ident(name)}"


def array_literal(items: list[str]) -> str:
    """PostgreSQL's text form of an array, whose element type the context decides."""
    quoted = ('"' + item.replace("\\", "\\\\").replace('"', '\\"') + '"' for item in items)
    return "{" + ",".join(quoted) + "}"


class Builder:
    """Builds one statement and collects its parameters."""

    def __init__(self, cache: SchemaCache) -> None:
        self.cache = cache
        self.parameters: list[Any] = []

    def parameter(self, value: Any) -> str:
        """The placeholder of a new parameter."""
        self.parameters.append(value)
        return f"${len(self.parameters)}"

    # Reading --------------------------------------------------------------------------------------

    def read(self, table: str, query: Query, source: str | None = None, key: str = "") -> str:
        """SELECT the tree from a table, or from `source` under its name. `key`: see `condition`."""
        return self._select(
            source or table_name(table), table, table, query, query.select, (), query.top, [], key
        )

    def _select(
        self,
        source: str,
        table: str,
        alias: str,
        query: Query,
        items: tuple[Field | Embed, ...],
        path: tuple[str, ...],
        level: Level,
        extra: list[str],
        key: str = "",
    ) -> str:
        columns, wheres = [], list(extra)
        for item in items:
            if isinstance(item, Field):
                columns.append(self.field(alias, item))
            else:
                fragment, where = self._embed(table, alias, query, item, path)
                columns.append(fragment)
                wheres += where
        wheres += [self.condition(alias, c, key) for c in level.filters]
        text = f"SELECT {', '.join(columns) or 'NULL'} FROM {source} AS {ident(alias)}"
        text += where_clause(wheres) + self.order_clause(alias, level.order)
        return text + limit_clause(level.limit, level.offset)

    def field(self, alias: str, item: Field) -> str:
        """One selected column."""
        if item.column.name == "*":
            return f"{ident(alias)}.*"
        text = self.column(alias, item.column)
        if item.cast:
            text = (
                f"CAST({text} AS {ident(item.cast)})"
                if not item.cast.isalnum()
                else (f"CAST({text} AS {item.cast})")
            )
        label = item.alias or (item.column.path[-1][1] if item.column.path else item.column.name)
        return f"{text} AS {ident(label)}"

    def column(self, alias: str, column: Column) -> str:
        """A column, or a place inside a JSON column."""
        text = f"{ident(alias)}.{ident(column.name)}"
        if column.path:
            text = f"to_jsonb({text})"
        for arrow, key in column.path:
            is_index = key.lstrip("-").isdigit()
            text += f"{arrow}{key}" if is_index else f"{arrow}{self.parameter(key)}::text"
        return f"({text})" if column.path else text

    def relation(self, table: str, embed: Embed) -> Relation:
        """Resolve an embed to one relation. Raises RestError PGRST200 or PGRST201."""
        found = self.cache.relations(table, embed.target, embed.hint)
        if not found:
            raise RestError(
                400,
                "PGRST200",
                f"Could not find a relationship between '{table}' and '{embed.target}' in the schema cache",
                f"Searched for a foreign key relationship between '{table}' and '{embed.target}' "
                f"in the schema '{SCHEMA}', but no matches were found.",
            )
        if len(found) > 1:
            raise RestError(
                300,
                "PGRST201",
                "Could not embed because more than one relationship was found for "
                f"'{table}' and '{embed.target}'",
            )
        return found[0]

    def _embed(
        self, table: str, alias: str, query: Query, embed: Embed, path: tuple[str, ...]
    ) -> tuple[str, list[str]]:
        relation = self.relation(table, embed)
        here = (*path, embed.label)
        level = query.level(here)
        inside = f"{embed.label}_{len(here)}"
        joins = [
            f"{ident(inside)}.{ident(theirs)} = {ident(alias)}.{ident(ours)}"
            for ours, theirs in relation.pairs
        ]

        def rows() -> str:
            return self._select(
                table_name(relation.target),
                relation.target,
                inside,
                query,
                embed.children,
                here,
                level,
                joins,
            )

        if relation.to_one:
            column = f"(SELECT to_jsonb(_) FROM ({rows()}) AS _)"
        else:
            column = f"(SELECT coalesce(jsonb_agg(_), '[]') FROM ({rows()}) AS _)"
        wheres = [f"EXISTS ({rows()})"] if embed.inner else []
        return f"{column} AS {ident(embed.label)}", wheres

    def needed_columns(self, table: Table, query: Query) -> list[str]:
        """The columns that RETURNING must return, so that `query` can read the written rows."""
        names: dict[str, None] = {}
        for item in query.select:
            if isinstance(item, Embed):
                names.update((ours, None) for ours, _ in self.relation(table.name, item).pairs)
            elif item.column.name == "*":
                names.update((name, None) for name in table.columns)
            else:
                names[item.column.name] = None
        return list(names)

    # Conditions -----------------------------------------------------------------------------------

    def wheres(self, alias: str, level: Level) -> str:
        """The WHERE clause of one level, or nothing."""
        return where_clause([self.condition(alias, c) for c in level.filters])

    def condition(self, alias: str, item: Condition | Group, key: str = "") -> str:
        """One condition. `key` is the output column of a scalar function, to which all apply."""
        if isinstance(item, Group):
            inner = f" {item.word} ".join(self.condition(alias, m, key) for m in item.members)
            return f"{'NOT ' if item.negated else ''}({inner})"
        text = self._compare(self.column(alias, item.column), item)
        return f"NOT ({text})" if item.negated else text

    def _compare(self, column: str, item: Condition) -> str:
        if item.operator == "is":
            word = item.value.lower().replace("_", " ")
            if word not in {"null", "not null", "true", "false", "unknown"}:
                raise RestError(400, "PGRST100", f'"failed to parse filter (is.{item.value})"')
            return f"{column} IS {word}"
        if item.operator == "in":
            return f"{column} = ANY ({self.parameter(array_literal(list_items(item.value)))})"
        value = item.value
        if item.operator in {"like", "ilike"}:
            value = value.replace("*", "%")
        placeholder = self.parameter(value)
        if item.any_or_all:
            placeholder = f"{item.any_or_all} ({placeholder})"
        return f"{column} {OPERATORS[item.operator]} {placeholder}"

    def order_clause(self, alias: str, keys: list[Order]) -> str:
        """ORDER BY, or nothing."""
        parts = [
            self.column(alias, key.column)
            + (" DESC" if key.descending else "")
            + (f" NULLS {key.nulls.upper()}" if key.nulls else "")
            for key in keys
        ]
        return f" ORDER BY {', '.join(parts)}" if parts else ""

    # Writing --------------------------------------------------------------------------------------

    def rows_of_body(self, table: Table, names: list[str], body: RawJson, defaults: bool) -> str:
        """A table expression `_` with the named columns of every object in the body."""
        placeholder = self.parameter(body)
        if not names:
            return f"(SELECT 1 FROM json_array_elements({_as_array('json', placeholder)})) AS _"
        typed = ", ".join(f"{ident(n)} {table.columns[n].type}" for n in names)
        with_default = [n for n in names if defaults and table.columns[n].default]
        if not with_default:
            return f"json_to_recordset({_as_array('json', placeholder)}) AS _({typed})"
        made = ", ".join(
            f"{self.parameter(n)}::text, {table.columns[n].default}" for n in with_default
        )
        return (
            f"(SELECT r.* FROM jsonb_array_elements({_as_array('jsonb', placeholder + '::jsonb')}) AS e, "
            f"LATERAL jsonb_to_record(jsonb_build_object({made}) || e) AS r({typed})) AS _"
        )

    def insert(
        self, table: Table, names: list[str], rows: str, conflict: tuple[str, list[str]] | None
    ) -> str:
        """INSERT without RETURNING. `conflict`: the resolution and its target columns."""
        listed = ", ".join(ident(n) for n in names)
        text = f"INSERT INTO {table_name(table.name)}"
        text += f"({listed}) SELECT {listed} FROM {rows}" if names else " DEFAULT VALUES"
        if conflict is None:
            return text
        resolution, columns = conflict
        target = ", ".join(ident(c) for c in columns)
        if resolution == "ignore-duplicates" or not names:
            return f"{text} ON CONFLICT ({target}) DO NOTHING"
        updates = ", ".join(f"{ident(n)} = EXCLUDED.{ident(n)}" for n in names)
        return f"{text} ON CONFLICT ({target}) DO UPDATE SET {updates}"

    def update(self, table: Table, names: list[str], rows: str, level: Level) -> str:
        """UPDATE without RETURNING, from the first row of `rows`."""
        sets = ", ".join(f"{ident(n)} = _.{ident(n)}" for n in names)
        listed = ", ".join(ident(n) for n in names)
        return (
            f"UPDATE {table_name(table.name)} SET {sets} FROM (SELECT {listed} FROM {rows} LIMIT 1) AS _"
            + self.wheres(table.name, level)
        )

    def delete(self, table: Table, level: Level) -> str:
        """DELETE without RETURNING."""
        return f"DELETE FROM {table_name(table.name)}" + self.wheres(table.name, level)


def where_clause(conditions: list[str]) -> str:
    """WHERE, or nothing."""
    return f" WHERE {' AND '.join(conditions)}" if conditions else ""


def limit_clause(limit: int | None, offset: int) -> str:
    """LIMIT and OFFSET, or nothing."""
    text = f" LIMIT {limit}" if limit is not None else ""
    return text + (f" OFFSET {offset}" if offset else "")


def _as_array(kind: str, value: str) -> str:
    """The JSON value itself when it is an array, else an array of it."""
    return f"CASE {kind}_typeof({value}) WHEN 'array' THEN {value} ELSE {kind}_build_array({value}) END"
