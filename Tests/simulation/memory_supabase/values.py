"""Column types: conversion from JSON as in PostgreSQL, from a query string, and to JSON."""

from __future__ import annotations

import datetime
import functools
import json
import re
import uuid

Value = str | int | datetime.datetime | None


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
    return _timestamp(text)


def _integer(text: str) -> int:
    if re.fullmatch(r"\s*[+-]?\d+\s*", text) is None:
        raise SqlError("22P02", f'invalid input syntax for type integer: "{text}"')
    number = int(text)
    if not -(2**31) <= number < 2**31:
        raise SqlError("22003", f'value "{text}" is out of range for type integer')
    return number


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
    if not isinstance(value, datetime.datetime):
        return value
    text = value.strftime("%Y-%m-%dT%H:%M:%S.%f").rstrip("0").rstrip(".")
    return text + "+00:00"
