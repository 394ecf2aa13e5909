"""The parts of a query string once read: columns, embeds, conditions, orders."""

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
    """A column, perhaps reaching into JSON: `path` alternates arrow and key."""

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
    """A related table inside a row. `hint` is a foreign key or column that tells two relations apart."""

    target: str
    children: tuple[Field | Embed, ...]
    alias: str | None = None
    hint: str | None = None
    inner: bool = False

    @property
    def label(self) -> str:
        """The key under which it appears, and by which filters address it."""
        return self.alias or self.target


@dataclasses.dataclass(frozen=True)
class Condition:
    """`column operator value`; `operator` is PostgREST's word. `any_or_all` is its modifier, if given."""

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
    """What applies to one table of the tree: the requested one or an embedded one."""

    filters: list[Condition | Group] = dataclasses.field(default_factory=list)
    order: list[Order] = dataclasses.field(default_factory=list)
    limit: int | None = None
    offset: int = 0


@dataclasses.dataclass
class Query:
    """The whole query string. `levels` is keyed by the path of embeds; the empty path is the table itself."""

    select: tuple[Field | Embed, ...]
    levels: dict[tuple[str, ...], Level]
    columns: list[str] | None = None
    on_conflict: list[str] | None = None

    @property
    def top(self) -> Level:
        """The level of the requested table."""
        return self.levels[()]

    def level(self, path: tuple[str, ...]) -> Level:
        """The level at a path of embeds; an untouched one when nothing was said about it."""
        return self.levels.get(path) or Level()
