"""Parsers for the values of a query string: `select=`, `order=`, filters and `or=(…)`."""

from __future__ import annotations

import re

from .query_tree import OPERATORS, Column, Condition, Embed, Field, Group, Order
from .rest_errors import RestError

_NAME = re.compile(r"[^\s,().:!>\-\"]+(?:-(?!>)[^\s,().:!>\-\"]+)*")


def column(text: str) -> Column:
    """Read a column with an optional path into JSON."""
    parts = re.split(r"(->>?)", text)
    return Column(parts[0].strip('"'), tuple(zip(parts[1::2], parts[2::2], strict=True)))


def order(text: str) -> Order:
    """One sort key, such as `name.desc.nullslast`."""
    name, *words = text.strip().split(".")
    nulls = next((w.removeprefix("nulls") for w in words if w in {"nullsfirst", "nullslast"}), "")
    if any(w not in {"asc", "desc", "nullsfirst", "nullslast"} for w in words):
        raise _syntax("order", text)
    return Order(column(name), "desc" in words, nulls)


def condition(place: Column, text: str) -> Condition:
    """What follows the column: `not.eq.5`."""
    negated = text.startswith("not.")
    word, dot, value = text.removeprefix("not.").partition(".")
    match = re.fullmatch(r"(\w+)(?:\((any|all)\))?", word)
    if not dot or match is None or match[1] not in {*OPERATORS, "in", "is"}:
        raise RestError(
            400,
            "PGRST100",
            f'"failed to parse filter ({text})" (line 1, column 1)',
            f'unexpected "{text[:1]}" expecting "not" or operator (eq, gt, ...)',
        )
    return Condition(place, match[1], value, negated, match[2] or "")


def _syntax(what: str, text: str) -> RestError:
    return RestError(400, "PGRST100", f'"failed to parse {what} ({text})" (line 1, column 1)')


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


class Reader:
    """A cursor over `select=` and over the parentheses of `or=` and `and=`."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.place = 0

    def peek(self) -> str:
        """The next character; empty at the end."""
        return self.text[self.place : self.place + 1]

    def take(self, expected: str) -> bool:
        """Consume this text if it comes next."""
        if not self.text.startswith(expected, self.place):
            return False
        self.place += len(expected)
        return True

    def fail(self, what: str) -> RestError:
        """PGRST100, pointing at this place."""
        return RestError(
            400,
            "PGRST100",
            f'"failed to parse {what} ({self.text})" (line 1, column {self.place + 1})',
            f'unexpected "{self.peek()}"' if self.peek() else "unexpected end of input",
        )

    # select= --------------------------------------------------------------------------------------

    def select(self) -> tuple[Field | Embed, ...]:
        """All of `select=`."""
        items = self.select_items()
        if self.peek():
            raise self.fail("select parameter")
        return items

    def select_items(self) -> tuple[Field | Embed, ...]:
        """Items up to a closing parenthesis."""
        items = []
        while self.peek() not in {"", ")"}:
            items.append(self.select_item())
            if not self.take(","):
                break
        return tuple(items)

    def select_item(self) -> Field | Embed:
        """`alias:name!hint(…)` or `alias:name->path::cast`."""
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
        """A bare or quoted name."""
        if self.peek() == '"':
            return self.quoted(what)
        match = _NAME.match(self.text, self.place)
        if match is None:
            raise self.fail(what)
        self.place = match.end()
        return match[0]

    def quoted(self, what: str) -> str:
        """A text in double quotes, with backslash escapes."""
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
        """All of `or=` or `and=`."""
        members = self.members()
        if self.peek():
            raise self.fail("logic tree")
        return members

    def members(self) -> tuple[Condition | Group, ...]:
        """Members in parentheses."""
        if not self.take("("):
            raise self.fail("logic tree")
        members = [self.member()]
        while self.take(","):
            members.append(self.member())
        if not self.take(")"):
            raise self.fail("logic tree")
        return tuple(members)

    def member(self) -> Condition | Group:
        """A nested group or `column.operator.value`."""
        for word in ("not.and", "not.or", "and", "or"):
            if self.text.startswith(word + "(", self.place):
                self.place += len(word)
                return Group(word.removeprefix("not."), self.members(), word.startswith("not."))
        start = self.place
        while self.peek() not in {"", ".", ",", ")"}:
            self.place += 1
        place = column(self.text[start : self.place])
        if not self.take("."):
            raise self.fail("logic tree")
        operator = re.compile(r"(?:not\.)?\w+(?:\((?:any|all)\))?\.").match(self.text, self.place)
        if operator is None:
            raise self.fail("logic tree")
        self.place = operator.end()
        return condition(place, operator[0] + self.value())

    def value(self) -> str:
        """A value up to the comma or parenthesis that ends it."""
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
