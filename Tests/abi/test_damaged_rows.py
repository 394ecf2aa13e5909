"""Sealed rows that were edited while the app was closed: only authentic ones open."""

from __future__ import annotations

import contextlib
import sqlite3
from pathlib import Path

import pytest

from support import secrecy, tamper
from support.contact_data import pull
from support.directory_fixtures import DirectoryFixtures
from support.errors import error_of
from support.queue import EMPTY, add, add_offline, drain, stored
from support.tamper import flipped
from support.users import MakeUser, SignedIn

pytestmark = pytest.mark.both_flavours

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
    user: SignedIn, directory: DirectoryFixtures
) -> None:
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
    app = user.restart()
    items = app.queue_list()["items"]
    shown = [item["payload"]["minutes"] for item in items if item["payload"]]
    assert sorted(shown) == [1, 2]
    unreadable = [item for item in items if not item["payload"]]
    assert len(unreadable) == len(edited)
    for item in unreadable:
        secrecy.current.is_public(item["id"])  # an id derived from the row's tag
    user.phone.network.up = True
    app = user.restart()
    done = drain(app)
    assert (done["sent"], done["parked"]) == (len(kept), len(edited))
    assert stored(directory, user.person) == sorted(kept)
    for item in app.queue_list()["items"]:
        assert (item["state"], item["payload"]) == ("parked", {})
        assert item["reason"] is not None
        assert item["reason"]["code"] == "unreadable"
        assert error_of(app.queue_edit, {"id": item["id"], "payload": {}}).status != 0
        app.queue_cancel({"id": item["id"]})
    assert app.queue_list()["counts"] == EMPTY
    told = {event["id"] for event in app.of_type("item_parked")}
    assert told == {item["id"] for item in unreadable}


def test_an_older_body_of_the_same_row_is_accepted(
    user: SignedIn, directory: DirectoryFixtures
) -> None:
    """Sealing does not detect an old body of the same row (docs/security.md)."""
    item = add(user.offline(), minutes=10)
    user.phone.close()
    before = read_bodies(user.phone.folder)
    app = user.restart()
    app.queue_edit({"id": item, "payload": {"type": "visit", "minutes": 20}})
    user.phone.close()
    assert read_bodies(user.phone.folder) != before
    write_bodies(user.phone.folder, before)
    user.phone.network.up = True
    app = user.restart()
    done = drain(app)
    assert (done["sent"], done["parked"]) == (1, 0)
    [row] = directory.activities(user.person)
    assert (row["id"], row["minutes"]) == (item, 10)


def test_two_swapped_rows_of_the_cache_do_not_open(
    user: SignedIn, directory: DirectoryFixtures
) -> None:
    names = {directory.contact(user.org, name): name for name in ("Kari", "Ola", "Per")}
    pull(user, after_s=60)
    assert user.app.contact_search({"query": ""})["total"] == 3
    user.phone.close()
    path = user.phone.folder / "cache.db"
    tamper.swap(path, "contact", "sealed")
    app = user.restart(online=False)
    shown = {one["id"]: one["name"] for one in app.contact_search({"query": ""})["contacts"]}
    assert len(shown) == 1
    assert shown.items() <= names.items()


STRANGE = {
    "a state of a newer version": "state = 77",
    "a negative state": "state = -1",
    "a state that is text": "state = 'x'",
    "a state that is no whole number (R7)": "state = 1.5",
    "a state that is a blob (R7)": "state = x'00'",
    "a reason that is no whole number (R7)": "state = 2, wait_reason = 1.5",
    "a reason that is text (R7)": "state = 2, wait_reason = 'x'",
    "a wait without a reason": "state = 2, wait_reason = 0",
    "a reason of a newer version": "state = 2, wait_reason = 99",
}


@pytest.mark.parametrize("running", [False, True])
def test_an_item_of_an_unknown_state_is_counted_and_sent(
    sign_in: MakeUser, directory: DirectoryFixtures, running: bool
) -> None:
    user = sign_in(policy={"biometric": "off"})
    user.app.go_offline()
    ids = [add(user.app) for _ in range(1 + len(STRANGE))]
    if not running:
        user.phone.close()
    with contextlib.closing(sqlite3.connect(user.phone.folder / "holdfast.db")) as database:
        for seq, strange in enumerate(STRANGE.values(), 1):
            assert database.execute(f"UPDATE queue SET {strange} WHERE seq = {seq}").rowcount == 1
        database.commit()
    app = user.app if running else user.restart(online=False)
    assert [item["id"] for item in app.queue_list()["items"]] == ids
    assert sum(app.queue_list()["counts"].values()) == len(ids)
    explained = app.queue_explain()
    assert sum(reason["count"] for reason in explained["reasons"]) == len(ids)
    app.go_online()
    drain(app)
    assert stored(directory, user.person) == sorted(ids)
    assert app.queue_list()["counts"] == EMPTY


@pytest.mark.parametrize("column", ["batch_key", "item"])
def test_a_bit_that_makes_a_text_of_a_blob_stops_no_queue(
    sign_in: MakeUser, directory: DirectoryFixtures, column: str
) -> None:
    user = sign_in(policy={"biometric": "off"})
    ids = add_offline(user, 3)
    user.phone.close()
    with contextlib.closing(sqlite3.connect(user.phone.folder / "holdfast.db")) as database:
        database.execute(
            f"UPDATE queue SET {column} = CAST({column} AS TEXT)"
            " WHERE seq = (SELECT max(seq) FROM queue)"
        )
        database.commit()
    app = user.restart(online=False)
    app.go_online()
    for _ in range(20):
        app.settle()
        user.phone.pass_time(60)
    assert stored(directory, user.person) == sorted(ids)
    assert app.queue_list()["counts"] == EMPTY


@pytest.mark.parametrize("place", [0, NONCE, CIPHERTEXT, -1, -40])
def test_KEEP_1_a_damaged_proof_of_the_key_costs_neither_session_nor_items(
    user: SignedIn, place: int
) -> None:
    user.app.go_offline()
    item = add(user.app, minutes=1)
    user.phone.close()
    with contextlib.closing(sqlite3.connect(user.phone.folder / "holdfast.db")) as database:
        find = "SELECT value FROM meta WHERE name = 'key_check'"
        check = flipped(database.execute(find).fetchone()[0], place)
        with database:
            database.execute("UPDATE meta SET value = ? WHERE name = 'key_check'", (check,))
    app = user.restart(online=False)
    assert app.screen["screen"] == "home"
    assert [one["id"] for one in app.queue_list()["items"]] == [item]
