"""Reads a device's database without the library (the format: docs/storage.md)."""

from __future__ import annotations

import base64
import json
import os
import sqlite3
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

from support import attacker

_SESSION = (
    "SELECT generation, owner, ended, wrap_session IS NOT NULL, locked, "
    "(SELECT value FROM meta WHERE name = 'keyless') FROM session"
)
_SEALED = "SELECT wrap_session, tokens FROM session"
_QUEUED = "SELECT owner, count(*) FROM queue GROUP BY owner"


@dataclass(frozen=True)
class Tokens:
    """The stored session."""

    user: str
    access: str
    refresh: str


@dataclass(frozen=True)
class Stored:
    """The contents of a device's database at one moment."""

    generation: int = 0
    owner: bytes | None = None
    ended: str | None = None
    #: The device key opens the session.
    readable: bool = False
    locked: bool = False
    #: Owner -> number of queued items.
    queued: dict[bytes, int] = field(default_factory=dict)
    #: None while the session is locked or absent.
    tokens: Tokens | None = None
    #: File that was set aside -> the owners whose items were carried over from it.
    carried: dict[str, set[bytes]] = field(default_factory=dict)

    @property
    def usable(self) -> bool:
        """A user is signed in and the session is not locked."""
        return self.owner is not None and self.readable and not self.locked


class Observer:
    """A second connection to a device's database. Close it before the last process closes."""

    def __init__(self, folder: Path) -> None:
        """Prepare to read; the first look opens the file."""
        self.path = str(folder / "holdfast.db")
        self._database: sqlite3.Connection | None = None
        self._file = 0
        self._version = -1

    def file(self) -> int:
        """Return the number of the file; 0 when there is none."""
        try:
            return os.stat(self.path).st_ino
        except FileNotFoundError:
            return 0

    def look(self, session_key: Callable[[], bytes | None], before: Stored) -> Stored:
        """Read the file; return `before` when nobody wrote since."""
        file = self.file()
        if file == 0:
            self.close()
            return Stored()
        if self._database is None or file != self._file:
            self.close()
            self._database = sqlite3.connect(self.path, isolation_level=None)
            self._file = file
        version = int(self._database.execute("PRAGMA data_version").fetchone()[0])
        if version == self._version:
            return before
        self._version = version
        row = self._database.execute(_SESSION).fetchone()
        queued = dict(self._database.execute(_QUEUED).fetchall())
        generation, owner, ended, readable, locked, keyless = row
        same = before.generation == generation and before.owner == owner
        tokens = before.tokens if same else None
        if tokens is None and owner and readable:
            key = session_key()
            wrap, sealed = self._database.execute(_SEALED).fetchone()
            tokens = _unseal(owner, wrap, sealed, key) if key else None
            # A sign-in or unlock whose key was not saved can leave the row without the key of its
            # wrap, while the process that holds the vault goes on with the session.
            if tokens is None and before.owner == owner:
                tokens = before.tokens
        return Stored(
            generation,
            owner,
            ended,
            bool(readable),
            bool(locked),
            queued,
            tokens,
            _carried(keyless),
        )

    def close(self) -> None:
        """Close the connection; the next look opens it again."""
        if self._database is not None:
            self._database.close()
        self._database, self._version = None, -1


def _carried(keyless: str | None) -> dict[str, set[bytes]]:
    """The list of files that were set aside, as the main file has it."""
    return {
        name: {base64.urlsafe_b64decode(tag + "==") for tag in entry["users"]}
        for name, entry in json.loads(keyless or "{}").items()
    }


def _unseal(owner: bytes, wrap: bytes, sealed: bytes | None, session_key: bytes) -> Tokens | None:
    context = attacker.context("session", b"", owner, "wrap_session")
    vault = attacker.unseal(session_key, wrap, context)
    if vault is None:
        return None
    plain = attacker.unseal(vault, sealed, attacker.context("session", b"", owner, "tokens"))
    if plain is None:
        return None
    value = json.loads(plain)
    return Tokens(value["user_id"], value["access_token"], value["refresh_token"])


def queued_in(path: Path) -> int:
    """Count the items in a database that was set aside."""
    return int(attacker.rows(path, "SELECT count(*) FROM queue")[0][0])


def opens(path: Path, keys: Iterable[bytes]) -> bool:
    """Whether one of these device keys is the one of a database.

    A database that was set aside at the first start has no key.
    """
    checks = attacker.rows(path, "SELECT value FROM meta WHERE name = 'key_check'")
    context = attacker.context("meta", b"", b"", "key_check")
    halves = []
    for (check,) in checks:
        middle = len(check) // 2
        halves += [check[:middle], check[middle:]]
    return any(attacker.unseal(key, half, context) is not None for key in keys for half in halves)
