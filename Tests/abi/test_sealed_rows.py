"""Sealed rows that were edited while the app was closed: what opens, and under whose name."""

from __future__ import annotations

import contextlib
import sqlite3
from pathlib import Path

from conftest import MakeUser
from support import secrecy
from support.directory_fixtures import DirectoryFixtures
from support.queue import EMPTY, add, drain, stored

#: Where a sealed value's parts begin: version, nonce, ciphertext; the tag is its end.
NONCE, CIPHERTEXT, TAG = 1, 25, -16


def read_bodies(folder: Path) -> dict[int, bytes]:
    """Of every row of the queue, its sealed body, in the order of registration."""
    with contextlib.closing(sqlite3.connect(folder / "holdfast.db")) as database:
        return dict(database.execute("SELECT seq, body FROM queue ORDER BY seq"))


def write_bodies(folder: Path, bodies: dict[int, bytes]) -> None:
    """Other bodies in rows that are there."""
    with contextlib.closing(sqlite3.connect(folder / "holdfast.db")) as database, database:
        for seq, body in bodies.items():
            changed = database.execute("UPDATE queue SET body = ? WHERE seq = ?", (body, seq))
            assert changed.rowcount == 1


def flipped(body: bytes, index: int) -> bytes:
    """One bit of it is another."""
    damaged = bytearray(body)
    damaged[index] ^= 1
    return bytes(damaged)


def damages(one: bytes, other: bytes) -> list[bytes]:
    """What takes the place of `one`; `other` is the body of another row of the same user."""
    return [
        other,
        one[:CIPHERTEXT] + other[CIPHERTEXT:],
        *(flipped(one, index) for index in (0, NONCE, CIPHERTEXT, len(one) // 2, TAG, -1)),
        *(one[:count] for count in (0, 1, CIPHERTEXT, len(one) - 16, len(one) - 1)),
        one + b"\0",
    ]


def test_what_was_edited_opens_to_nothing_and_the_rest_is_sent(
    sign_in: MakeUser, directory: DirectoryFixtures
) -> None:
    # Given items of one user, of which all but the first and the last are edited on the disk
    user = sign_in()
    user.app.go_offline()
    kept = [add(user.app, minutes=1)]
    edited = [
        add(user.app, minutes=10 + number) for number in range(len(damages(bytes(100), bytes(100))))
    ]
    kept.append(add(user.app, minutes=2))
    user.phone.close()
    bodies = read_bodies(user.phone.folder)
    first, *between, _ = bodies
    write_bodies(
        user.phone.folder,
        {seq: damages(bodies[seq], bodies[first])[at] for at, seq in enumerate(between)},
    )
    # When the app opens, nothing of another row stands in a damaged one
    app = user.restart()
    items = app.queue_list()["items"]
    shown = [item["payload"]["minutes"] for item in items if item["payload"]]
    assert sorted(shown) == [1, 2]
    unreadable = [item for item in items if not item["payload"]]
    assert len(unreadable) == len(edited)
    for item in unreadable:
        secrecy.current.is_public(item["id"])  # made up from the row's tag
    # and when the queue is sent, the others go, and each of these is parked and can be cancelled
    user.phone.network.up = True
    app = user.restart()
    done = drain(app)
    assert (done["sent"], done["parked"]) == (len(kept), len(edited))
    assert stored(directory, user.person) == sorted(kept)
    for item in app.queue_list()["items"]:
        assert (item["state"], item["payload"]) == ("parked", {})
        assert item["reason"] is not None
        assert item["reason"]["code"] == "unreadable"
        app.queue_cancel({"id": item["id"]})
    assert app.queue_list()["counts"] == EMPTY


def test_two_bodies_swapped_are_both_refused(
    sign_in: MakeUser, directory: DirectoryFixtures
) -> None:
    # Given two items whose bodies have changed places
    user = sign_in()
    user.app.go_offline()
    for minutes in (10, 20):
        add(user.app, minutes=minutes)
    user.phone.close()
    (one, body_of_one), (other, body_of_other) = read_bodies(user.phone.folder).items()
    write_bodies(user.phone.folder, {one: body_of_other, other: body_of_one})
    # When the queue is sent
    user.phone.network.up = True
    app = user.restart()
    done = drain(app)
    # Then neither goes under the other's name
    assert (done["sent"], done["parked"]) == (0, 2)
    assert stored(directory, user.person) == []
    for item in app.queue_list()["items"]:
        secrecy.current.is_public(item["id"])
        assert item["payload"] == {}


def test_an_older_body_of_the_same_row_is_taken_for_the_row(
    sign_in: MakeUser, directory: DirectoryFixtures
) -> None:
    """What sealing does not detect (docs/security.md): the past of a row is authentic too."""
    # Given an item that was edited, and its body of before put back
    user = sign_in()
    user.app.go_offline()
    item = add(user.app, minutes=10)
    user.phone.close()
    before = read_bodies(user.phone.folder)
    app = user.restart()
    app.queue_edit({"id": item, "payload": {"type": "visit", "minutes": 20}})
    user.phone.close()
    assert read_bodies(user.phone.folder) != before
    write_bodies(user.phone.folder, before)
    # When the queue is sent
    user.phone.network.up = True
    app = user.restart()
    done = drain(app)
    # Then it goes as it was: once, its owner's, under its own id
    assert (done["sent"], done["parked"]) == (1, 0)
    [row] = directory.activities(user.person)
    assert (row["id"], row["minutes"]) == (item, 10)
