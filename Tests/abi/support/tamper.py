"""Changes stored values behind the library's back."""

from __future__ import annotations

import contextlib
import sqlite3
from pathlib import Path

TOKENS = "tokens"


def read(folder: Path, column: str = TOKENS) -> bytes | None:
    """A column of the session row."""
    with contextlib.closing(sqlite3.connect(folder / "holdfast.db")) as database:
        value = database.execute(f"SELECT {column} FROM session").fetchone()[0]
    assert value is None or isinstance(value, bytes)
    return value


def write(folder: Path, value: bytes | None, column: str = TOKENS) -> None:
    """Overwrite a column of the session row."""
    with contextlib.closing(sqlite3.connect(folder / "holdfast.db")) as database, database:
        changed = database.execute(f"UPDATE session SET {column} = ?", (value,)).rowcount
        assert changed == 1


def stored(folder: Path, column: str = TOKENS) -> bytes:
    """A column of the session row that must not be NULL."""
    value = read(folder, column)
    assert value is not None, f"nothing is stored as {column}"
    return value


def flipped(value: bytes, index: int) -> bytes:
    """The value with the lowest bit of one byte flipped."""
    damaged = bytearray(value)
    damaged[index] ^= 1
    return bytes(damaged)


def swap(file: Path, table: str, column: str) -> None:
    """Exchange this column between the first two rows of a table; the app must be closed."""
    with contextlib.closing(sqlite3.connect(file)) as database, database:
        rows = database.execute(f"SELECT row, {column} FROM {table} ORDER BY row LIMIT 2")
        (one, mine), (other, its) = rows.fetchall()
        for key, value in ((one, its), (other, mine)):
            changed = database.execute(
                f"UPDATE {table} SET {column} = ? WHERE row = ?", (value, key)
            )
            assert changed.rowcount == 1
