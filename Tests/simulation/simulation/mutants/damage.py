"""Mutants of the invariants about flipped bits."""

from __future__ import annotations

import contextlib
import random
import sqlite3
from collections.abc import Iterator
from unittest import mock

from holdfast import HoldfastError

from support.flips import FILES, FRAME_HEADER, Original

from .. import damage
from ..damage import Flip, Host
from .injection import Json, Mutant, violates


@violates("a damaged file works within two calls")
def _broken_for_ever() -> Mutant:
    def fail(*_: object) -> Json:
        raise HoldfastError.of(2, {
            "error": {
                "code": "storage.damaged", "message": "", "field": None, "retryable": False,
                "detail": None,
            }
        })  # fmt: skip

    return mock.patch.object(Host, "_make", fail)


@violates("damage changes no other item")
def _changed() -> Mutant:
    close = Host.close

    def change(self: Host) -> None:
        close(self)
        # A file that was damaged while the app ran may not open.
        with contextlib.suppress(sqlite3.DatabaseError):
            database = sqlite3.connect(self.folder / FILES[0])
            with contextlib.closing(database), database:
                database.execute("UPDATE queue SET body = zeroblob(64)")

    return mock.patch.object(Host, "close", change)


@violates("what damage costs is said")
@contextlib.contextmanager
def _not_told() -> Iterator[None]:
    """The pages that hold items are not pages any more, and no event says so."""

    def wipe(original: Original, _: random.Random) -> list[Flip]:
        starts = [
            (name, at + (FRAME_HEADER if name == FILES[1] else 0)) for name, at in original.held
        ]
        return [(name, at, bit) for name, at in starts for bit in (0, 1)]

    with (
        mock.patch.object(damage, "_draw", wipe),
        mock.patch.object(Host, "said", lambda _: False),
    ):
        yield
