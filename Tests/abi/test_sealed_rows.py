"""Sealed rows that were edited while the app was closed: only authentic ones open."""

from __future__ import annotations

import contextlib
import sqlite3
from pathlib import Path

from support import secrecy
from support.directory_fixtures import DirectoryFixtures
from support.queue import EMPTY, add, drain, stored
from support.tamper import flipped
from support.users import MakeUser

#: The offsets of a sealed value's parts: version, nonce, ciphertext; the tag is at the end.
NONCE, CIPHERTEXT, TAG = 1, 25, -16


def read_bodies(folder: Path) -> dict[int, bytes]:
    """The sealed bodies of the queue's rows, in the order of registration."""
    with contextlib.closing(sqlite3.connect(folder / "holdfast.db")) as database:
        return dict(database.execute("SELECT seq, body FROM queue ORDER BY seq"))


def write_bodies(folder: Path, bodies: dict[int, bytes]) -> None:
    """Overwrite bodies of existing rows."""
    with contextlib.closing(sqlite3.connect(folder / "holdfast.db")) as database, database:
        for seq, body in bodies.items():
            changed = database.execute("UPDATE queue SET body = ? WHERE seq = ?", (body, seq))
            assert changed.rowcount == 1


def damages(one: bytes, other: bytes) -> list[bytes]:
    """Replacements for the body `one`; `other` is the body of another row of the same user."""
    return [
        other,
        one[:CIPHERTEXT] + other[CIPHERTEXT:],
        *(flipped(one, index) for index in (0, NONCE, CIPHERTEXT, len(one) // 2, TAG, -1)),
        *(one[:count] for count in (0, 1, CIPHERTEXT, len(one) - 16, len(one) - 1)),
        one + b"\0",
    ]


def test_edited_rows_do_not_open_and_the_others_are_sent(
    sign_in: MakeUser, directory: DirectoryFixtures
) -> None:
    # Given items of one user; all except the first and the last are edited on the disk
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
    # When the app opens, no damaged row shows content of another row
    app = user.restart()
    items = app.queue_list()["items"]
    shown = [item["payload"]["minutes"] for item in items if item["payload"]]
    assert sorted(shown) == [1, 2]
    unreadable = [item for item in items if not item["payload"]]
    assert len(unreadable) == len(edited)
    for item in unreadable:
        secrecy.current.is_public(item["id"])  # an id derived from the row's tag
    # and when the queue is sent, the damaged ones are parked, and each can be cancelled
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
    # Given two items whose bodies are swapped
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
    # Then neither is sent under the other's id
    assert (done["sent"], done["parked"]) == (0, 2)
    assert stored(directory, user.person) == []
    for item in app.queue_list()["items"]:
        secrecy.current.is_public(item["id"])
        assert item["payload"] == {}


def test_an_older_body_of_the_same_row_is_accepted(
    sign_in: MakeUser, directory: DirectoryFixtures
) -> None:
    """Sealing does not detect an old body of the same row (docs/security.md)."""
    # Given an edited item whose earlier body is put back
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
    # Then the earlier content is sent: once, for its owner, under its own id
    assert (done["sent"], done["parked"]) == (1, 0)
    [row] = directory.activities(user.person)
    assert (row["id"], row["minutes"]) == (item, 10)
