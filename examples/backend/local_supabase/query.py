"""The query string of the data service, read into a tree: select, filters, order, limits, embedding.

Syntax: https://docs.postgrest.org/en/stable/references/api/tables_views.html
"""

from __future__ import annotations

import dataclasses
import re
import urllib.parse

from .rest_errors import RestError

OPERATORS = {
    "eq": "=", "neq": "<>", "gt": ">", "gte": ">=", "lt": "<", "lte": "<=", "like": "like",
    "ilike": "ilike", "match": "~", "imatch": "~*", "cs": "@>", "cd": "<@", "ov": "&&",
    "isdistinct": "is distinct from",
}
_RESERVED = {"select", "columns", "on_conflict", "order", "limit", "offset"}
_LOGIC = {"and", "or", "not.and", "not.or"}
_NAME = re.compile(r"[^\s,().:!>\-\"]+(?:-(?!>)[^\s,().:!>\-\"]+)*")


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


def pairs(text: str) -> list[tuple[str, str]]:
    """Decoded names and values in order. A bare `+` is a space."""
    decoded = urllib.parse.parse_qsl(text, keep_blank_values=True, separator="&")
    # PostgreSQL's protocol ends a text at its first NUL; so does the real server's filter value.
    return [(name, value.split("\0", 1)[0]) for name, value in decoded]


def parse(items: list[tuple[str, str]]) -> Query:
    """Read all of a query string; raises RestError PGRST100 or PGRST103."""
    query = Query((Field(Column("*")),), {(): Level()})
    for name, value in items:
        *path, last = name.split(".")
        if last in {"and", "or"} and path and path[-1] == "not":
            path, last = path[:-1], f"not.{last}"
        level = query.levels.setdefault(tuple(path), Level())
        if last == "select" and not path:
            query.select = _Reader(value).select() if value else query.select
        elif last == "columns" and not path:
            query.columns = _names(value)
        elif last == "on_conflict" and not path:
            query.on_conflict = _names(value)
        elif last == "order":
            level.order = [_order(part) for part in value.split(",") if part]
        elif last in {"limit", "offset"}:
            _set_range(level, last, value)
        elif last in _LOGIC:
            word = last.removeprefix("not.")
            members = _Reader(value).logic_members()
            level.filters.append(Group(word, members, negated=last.startswith("not.")))
        else:
            level.filters.append(_condition(_column(last), value))
    for embedded in query.levels:
        _check_embedded(query.select, embedded)
    return query


def _check_embedded(items: tuple[Field | Embed, ...], path: tuple[str, ...]) -> None:
    """Filters, orders and limits may only name what `select` embeds."""
    for label in path:
        found = [i for i in items if isinstance(i, Embed) and i.label == label]
        if not found:
            raise RestError(
                400, "PGRST108", f"'{label}' is not an embedded resource in this request",
                hint=f"Verify that '{label}' is included in the 'select' query parameter.",
            )
        items = found[0].children


def is_reserved(name: str) -> bool:
    """Whether a query parameter is part of the syntax rather than a filter or a function's argument."""
    last = name.split(".")[-1]
    return name in _RESERVED or last in {"order", "limit", "offset"} or name in _LOGIC


def looks_like_filter(value: str) -> bool:
    """Whether a value begins with an operator, as `eq.5` does."""
    word = re.split(r"[.(]", value.removeprefix("not."), maxsplit=1)[0]
    return "." in value and (word in OPERATORS or word in {"in", "is"})


def _names(value: str) -> list[str]:
    return [part.strip().strip('"') for part in value.split(",") if part.strip()]


def _set_range(level: Level, word: str, value: str) -> None:
    """Values that are no integers are ignored, as the real server does."""
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


def _column(text: str) -> Column:
    parts = re.split(r"(->>?)", text)
    return Column(parts[0].strip('"'), tuple(zip(parts[1::2], parts[2::2], strict=True)))


def _order(text: str) -> Order:
    name, *words = text.strip().split(".")
    nulls = next((w.removeprefix("nulls") for w in words if w in {"nullsfirst", "nullslast"}), "")
    if any(w not in {"asc", "desc", "nullsfirst", "nullslast"} for w in words):
        raise _syntax("order", text)
    return Order(_column(name), "desc" in words, nulls)


def _condition(column: Column, text: str) -> Condition:
    negated = text.startswith("not.")
    word, dot, value = text.removeprefix("not.").partition(".")
    match = re.fullmatch(r"(\w+)(?:\((any|all)\))?", word)
    if not dot or match is None or match[1] not in {*OPERATORS, "in", "is"}:
        raise RestError(
            400, "PGRST100", f'"failed to parse filter ({text})" (line 1, column 1)',
            f'unexpected "{text[:1]}" expecting "not" or operator (eq, gt, ...)',
        )
    return Condition(column, match[1], value, negated, match[2] or "")


def _syntax(what: str, text: str) -> RestError:
    return RestError(400, "PGRST100", f'"failed to parse {what} ({text})" (line 1, column 1)')


class _Reader:
    """A cursor over `select=` and over the parentheses of `or=` and `and=`."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.place = 0

    def peek(self) -> str:
        return self.text[self.place : self.place + 1]

    def take(self, expected: str) -> bool:
        if not self.text.startswith(expected, self.place):
            return False
        self.place += len(expected)
        return True

    def fail(self, what: str) -> RestError:
        return RestError(
            400, "PGRST100", f'"failed to parse {what} ({self.text})" (line 1, column {self.place + 1})',
            f'unexpected "{self.peek()}"' if self.peek() else "unexpected end of input",
        )

    # select= --------------------------------------------------------------------------------------

    def select(self) -> tuple[Field | Embed, ...]:
        items = self.select_items()
        if self.peek():
            raise self.fail("select parameter")
        return items

    def select_items(self) -> tuple[Field | Embed, ...]:
        items = []
        while self.peek() not in {"", ")"}:
            items.append(self.select_item())
            if not self.take(","):
                break
        return tuple(items)

    def select_item(self) -> Field | Embed:
        if self.take("*"):
            return Field(Column("*"))
        name, alias = self.name("select parameter"), None
        if self.text.startswith(":", self.place) and not self.text.startswith("::", self.place):
            self.place += 1
            alias, name = name, self.name("select parameter")
        hint, inner = None, False
        while self.take("!"):
            word = self.name("select parameter")
            if word in {"inner", "left"}:
                inner = word == "inner"
            else:
                hint = word
        if self.take("("):
            children = self.select_items()
            if not self.take(")"):
                raise self.fail("select parameter")
            return Embed(name, children, alias, hint, inner)
        path = []
        while self.peek() == "-":
            arrow = "->>" if self.take("->>") else "->"
            self.take("->")
            path.append((arrow, self.name("select parameter")))
        cast = self.name("select parameter") if self.take("::") else None
        return Field(Column(name, tuple(path)), alias, cast)

    def name(self, what: str) -> str:
        if self.peek() == '"':
            return self.quoted(what)
        match = _NAME.match(self.text, self.place)
        if match is None:
            raise self.fail(what)
        self.place = match.end()
        return match[0]

    def quoted(self, what: str) -> str:
        self.place += 1
        out = []
        while self.peek() != '"':
            if not self.peek():
                raise self.fail(what)
            self.take("\\")
            out.append(self.peek())
            self.place += 1
        self.place += 1
        return "".join(out)

    # or=(…) ---------------------------------------------------------------------------------------

    def logic_members(self) -> tuple[Condition | Group, ...]:
        members = self.members()
        if self.peek():
            raise self.fail("logic tree")
        return members

    def members(self) -> tuple[Condition | Group, ...]:
        if not self.take("("):
            raise self.fail("logic tree")
        members = [self.member()]
        while self.take(","):
            members.append(self.member())
        if not self.take(")"):
            raise self.fail("logic tree")
        return tuple(members)

    def member(self) -> Condition | Group:
        for word in ("not.and", "not.or", "and", "or"):
            if self.text.startswith(word + "(", self.place):
                self.place += len(word)
                return Group(word.removeprefix("not."), self.members(), word.startswith("not."))
        start = self.place
        while self.peek() not in {"", ".", ",", ")"}:
            self.place += 1
        column = _column(self.text[start : self.place])
        if not self.take("."):
            raise self.fail("logic tree")
        operator = re.compile(r"(?:not\.)?\w+(?:\((?:any|all)\))?\.").match(self.text, self.place)
        if operator is None:
            raise self.fail("logic tree")
        self.place = operator.end()
        return _condition(column, operator[0] + self.value())

    def value(self) -> str:
        if self.peek() == '"':
            return self.quoted("logic tree")
        start, depth, in_quotes = self.place, 0, False
        while self.peek():
            char = self.peek()
            if in_quotes:
                in_quotes = char != '"'
            elif char == '"' and depth:
                in_quotes = True
            elif char in "({":
                depth += 1
            elif char in ")}" and depth:
                depth -= 1
            elif char in ",)" and not depth:
                break
            self.place += 1
        return self.text[start : self.place]


def list_items(text: str) -> list[str]:
    """The members of `(a,"b,c")`, as `in` takes them."""
    if not (text.startswith("(") and text.endswith(")")):
        raise _syntax("filter", text)
    items, place, body = [], 0, text[1:-1]
    for match in re.finditer(r'\s*(?:"((?:[^"\\]|\\.)*)"|([^,]*))(,|$)', body):
        if match.start() != place:
            raise _syntax("filter", text)
        place = match.end()
        quoted = match[1]
        items.append(re.sub(r"\\(.)", r"\1", quoted) if quoted is not None else match[2])
        if not match[3]:
            break
    return [] if items == [""] else items
