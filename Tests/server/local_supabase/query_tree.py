"""The tree of a query string: columns, embeds, conditions, orders."""

from __future__ import annotations

import dataclasses

OPERATORS = {
    "eq": "=",
    "neq": "<>",
    "gt": ">",
    "gte": ">=",
    "lt": "<",
    "lte": "<=",
    "like": "like",
    "ilike": "ilike",
    "match": "~",
    "imatch": "~*",
    "cs": "@>",
    "cd": "<@",
    "ov": "&&",
    "isdistinct": "is distinct from",
}


@dataclasses.dataclass(frozen=True)
class Column:
    """A column with an optional path into JSON; `path` alternates arrow and key."""

    name: str
    path: tuple[tuple[str, str], ...] = ()


@dataclasses.dataclass(frozen=True)
class Field:
    """One selected column. `*` stands for all."""

    column: Column
    alias: str | None = None
    cast: str | None = None


@dataclasses.dataclass(frozen=True)
class Embed:
    """A related table inside a row. `hint` is a foreign key or column that resolves ambiguity."""

    target: str
    children: tuple[Field | Embed, ...]
    alias: str | None = None
    hint: str | None = None
    inner: bool = False

    @property
    def label(self) -> str:
        """The key in the row, which filters use too."""
        return self.alias or self.target


@dataclasses.dataclass(frozen=True)
class Condition:
    """`column operator value`, in PostgREST's words. `any_or_all` is the modifier, if given."""

    column: Column
    operator: str
    value: str
    negated: bool = False
    any_or_all: str = ""


@dataclasses.dataclass(frozen=True)
class Group:
    """Conditions joined by `and` or `or`."""

    word: str
    members: tuple[Condition | Group, ...]
    negated: bool = False


@dataclasses.dataclass(frozen=True)
class Order:
    """One sort key."""

    column: Column
    descending: bool = False
    nulls: str = ""


@dataclasses.dataclass
class Level:
    """Conditions, orders and limits of one table: the requested one or an embedded one."""

    filters: list[Condition | Group] = dataclasses.field(default_factory=list)
    order: list[Order] = dataclasses.field(default_factory=list)
    limit: int | None = None
    offset: int = 0


@dataclasses.dataclass
class Query:
    """A query string. `levels` maps paths of embeds; the empty path is the table itself."""

    select: tuple[Field | Embed, ...]
    levels: dict[tuple[str, ...], Level]
    columns: list[str] | None = None
    on_conflict: list[str] | None = None

    @property
    def top(self) -> Level:
        """The level of the requested table."""
        return self.levels[()]

    def level(self, path: tuple[str, ...]) -> Level:
        """The level at a path of embeds; an empty one if the query string has none."""
        return self.levels.get(path) or Level()
