"""Column types: conversion from JSON as in PostgreSQL, from a query string, and to JSON."""

from __future__ import annotations

import datetime
import decimal
import functools
import json
import re
import uuid

Value = str | int | float | decimal.Decimal | datetime.datetime | None

#: Before the text of a number that JSON must hold as it is; `write` removes it.
_NUMBER = "\x01number:"
_MARKED = re.compile(r'"\\u0001number:([^"]*)"')


class SqlError(Exception):
    """An error as PostgreSQL raises it: code, message, and the column if it names one."""

    def __init__(self, state: str, message: str, column: str | None = None) -> None:
        super().__init__(message)
        self.state = state
        self.message = message
        self.column = column


def convert(kind: str, value: object) -> Value:
    """Convert a JSON value to this column type; like PostgreSQL, by way of text."""
    if value is None:
        return None
    text = value if isinstance(value, str) else json.dumps(value)
    if "\0" in text:
        raise SqlError("22P05", "unsupported Unicode escape sequence")
    if kind == "text":
        return text
    if kind == "int":
        return _integer(text)
    if kind == "uuid":
        return _uuid(text)
    if kind in {"numeric", "float"}:
        return _number(kind, text)
    return _timestamp(text)


def _integer(text: str) -> int:
    if re.fullmatch(r"\s*[+-]?\d+\s*", text) is None:
        raise SqlError("22P02", f'invalid input syntax for type integer: "{text}"')
    number = int(text)
    if not -(2**31) <= number < 2**31:
        raise SqlError("22003", f'value "{text}" is out of range for type integer')
    return number


def _number(kind: str, text: str) -> float | decimal.Decimal:
    if re.fullmatch(r"\s*[+-]?(\d+[.]?\d*|[.]\d+)([eE][+-]?\d+)?\s*", text) is None:
        name = "numeric" if kind == "numeric" else "double precision"
        raise SqlError("22P02", f'invalid input syntax for type {name}: "{text}"')
    if kind == "float":
        return float(text)
    number = decimal.Decimal(text.strip())
    # numeric has no exponent: 1e3 is stored as 1000, and 1.50 keeps its scale.
    return decimal.Decimal(format(number, "f"))


@functools.lru_cache(maxsize=4096)
def _uuid(text: str) -> str:
    try:
        return str(uuid.UUID(text))
    except ValueError as error:
        raise SqlError("22P02", f'invalid input syntax for type uuid: "{text}"') from error


def _timestamp(text: str) -> datetime.datetime:
    try:
        moment = datetime.datetime.fromisoformat(text)
    except ValueError as error:
        message = f'invalid input syntax for type timestamp with time zone: "{text}"'
        raise SqlError("22007", message) from error
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=datetime.UTC)
    return moment.astimezone(datetime.UTC)


def show(value: Value) -> str | int | None:
    """Format a value for an answer: timestamps have an offset and no trailing zeros."""
    if isinstance(value, decimal.Decimal):
        return _NUMBER + format(value, "f")
    if isinstance(value, float):
        return _NUMBER + repr(value).removesuffix(".0")
    if not isinstance(value, datetime.datetime):
        return value
    text = value.strftime("%Y-%m-%dT%H:%M:%S.%f").rstrip("0").rstrip(".")
    return text + "+00:00"


def write(values: object) -> bytes:
    """JSON of values that `show` formatted, with each number in PostgreSQL's own form."""
    text = json.dumps(values, ensure_ascii=False)
    return (_MARKED.sub(r"\1", text) if "\\u0001number:" in text else text).encode()
