"""Numbers of every form (attack A4), in two columns that only this world's `activities` have.

A payload holds a number as its text after a mark, because Python would write it in its own form.
`encode` removes the mark.
"""

from __future__ import annotations

import dataclasses
import decimal
import random
import re

from memory_supabase import functions
from memory_supabase.schema import TABLES, Column
from memory_supabase.values import Value

#: Column -> PostgreSQL's type: numeric keeps a number's digits, double precision has its own form.
COLUMNS = {"exact": "numeric", "rough": "float"}
#: What a double holds.
HELD = (
    "3.3", "9.99", "0.1", "-0.7", "0.30000000000000004", "2.5e-7", "123456789.12345679", "1e3",
    "1E+3", "1.5e3", "1500.0", "1e22", "9007199254740992", "9007199254740992.0", "5e-324",
    "1.7976931348623157e308", "0.0", "0e5", "-1.10", "42", "0",
)  # fmt: skip
#: Those of them that PostgreSQL writes with more digits than 64 bits hold.
WIDE = ("1e22", "1.7976931348623157e308")
#: What it does not hold: the library must refuse it.
NOT_HELD = (
    "0.1234567890123456789", "9007199254740993", "9007199254740993.0", "1e-400",
    "100000000000000000000000000000.5",
)  # fmt: skip
_MARK = "number:"
_MARKED = re.compile(rb'"number:([^"]*)"')


def add_columns() -> None:
    """Give the table and the function of the server in memory the columns."""
    table = TABLES["activities"]
    if table.column("exact") is None:
        TABLES["activities"] = dataclasses.replace(
            table,
            columns=(*table.columns, *(Column(name, kind) for name, kind in COLUMNS.items())),
            insertable=table.insertable | set(COLUMNS),
            updatable=table.updatable | set(COLUMNS),
        )
        functions.KNOWN.extend(COLUMNS)


def draw(chance: random.Random, few: float = 0.03, *, wide: bool = True) -> dict[str, str]:
    """Return numbers for a payload; with probability `few` one that no double holds.

    `wide`: also whole numbers of more than 64 bits, which the library reads as null in a row.
    """
    held = HELD if wide else tuple(number for number in HELD if number not in WIDE)
    numbers = NOT_HELD if chance.random() < few else held
    return {name: _MARK + chance.choice(numbers) for name in COLUMNS if chance.random() < 0.6}


def encode(request: bytes) -> bytes:
    """Write each number as its text."""
    return _MARKED.sub(rb"\1", request) if b'"number:' in request else request


def is_held(payload: dict[str, object]) -> bool:
    """Whether a double holds every number of the payload."""
    return not any(_text(payload.get(name)) in NOT_HELD for name in COLUMNS)


def are_stored(payload: dict[str, object], row: dict[str, Value]) -> bool:
    """Whether a row at the server has the numbers of the payload."""
    for name, kind in COLUMNS.items():
        text, stored = _text(payload.get(name)), row[name]
        if text is None or stored is None:
            if text is not None or stored is not None:
                return False
        elif stored != (decimal.Decimal(text) if kind == "numeric" else float(text)):
            return False
    return True


def are_shown(payload: dict[str, object], shown: dict[str, object]) -> bool:
    """Whether a queued item has the numbers of the payload."""
    for name in COLUMNS:
        text, there = _text(payload.get(name)), _text(shown.get(name))
        if (text is None) is not (there is None):
            return False
        if text is not None and there is not None and float(text) != float(there):
            return False
    return True


def _text(value: object) -> str | None:
    return None if value is None else str(value).removeprefix(_MARK)
