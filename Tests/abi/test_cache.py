"""The cache: what it holds, when it is erased or rebuilt, and that it follows the server."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from support import attacker, contact_data
from support.contact_data import pull
from support.directory_fixtures import DirectoryFixtures
from support.held import return_to_foreground, total
from support.phone import App
from support.queue import add, code_of, item_of, stored
from support.sizes import sampled
from support.users import MakePhone, MakeUser, SignedIn, signed_in


def lost(app: App) -> list[dict[str, object]]:
    """The notices about a lost cache."""
    return [
        event for event in app.of_type("storage_recovered") if event["reason"] == "cache_recovered"
    ]


DAMAGE: dict[str, Callable[[Path], object]] = {
    "deleted": Path.unlink,
    "noise": lambda path: path.write_bytes(bytes(range(256)) * 64),
    "truncated": lambda path: path.write_bytes(path.read_bytes()[:700]),
    "half": lambda path: path.write_bytes(path.read_bytes()[:8192]),
    "empty": lambda path: path.write_bytes(b""),
    "newer": lambda path: [
        run(path, f"PRAGMA {name} = 99") for name in ("user_version", "application_id")
    ],
    "other": lambda path: run(path, "DROP TABLE dataset"),
}


def run(path: Path, statement: str) -> None:
    """Run SQL on the cache file while the library does not know."""
    with contextlib.closing(sqlite3.connect(path)) as database, database:
        database.execute(statement)


@pytest.mark.parametrize("damage", sampled(sorted(DAMAGE), 3))
def test_CAC_4_a_damaged_cache_is_rebuilt_automatically(
    sign_in: MakeUser, directory: DirectoryFixtures, damage: str
) -> None:
    user = sign_in(contacts=200)
    item = user.offline().register()
    user.phone.close()
    for path in user.phone.folder.glob("cache.db-*"):
        path.unlink()
    DAMAGE[damage](user.phone.folder / "cache.db")
    app = user.restart(online=False)
    assert app.screen["screen"] == "home"
    assert app.contact_search({"query": ""})["total"] == 0
    assert app.queue_get({"id": item})["item"]["state"] == "pending"
    app.reconnect()
    assert app.contact_search({"query": ""})["total"] == 200
    assert stored(directory, user.person) == [item]
    # One notice reports it, and the queue is unaffected.
    assert len(lost(app)) == 1
    user.restart().settle()
    assert lost(user.app) == []
    assert [path for path in user.phone.folder.iterdir() if "holdfast.db." in path.name] == []


def test_CAC_4_a_page_found_damaged_during_use_is_rebuilt(sign_in: MakeUser) -> None:
    user = sign_in(contacts=2_000)
    user.phone.close()
    path = user.phone.folder / "cache.db"
    data = bytearray(path.read_bytes())
    for page in range(8, len(data) // 4096, 3):
        data[page * 4096 : page * 4096 + 200] = bytes(200)
    path.write_bytes(bytes(data))
    app = user.restart()
    assert app.contact_search({"query": "a"})["total"] < 2_000
    app.settle()
    assert app.contact_search({"query": ""})["total"] == 2_000
    assert len(lost(app)) == 1


def test_CAC_4_a_cache_deleted_while_the_app_runs_is_rebuilt(sign_in: MakeUser) -> None:
    user = sign_in(contacts=20)
    for path in user.phone.folder.glob("cache.db*"):
        path.unlink()
    assert total(user.app) == 0
    user.app.settle()
    assert total(user.app) == 20
    assert len(lost(user.app)) == 1


def test_the_cache_is_erased_when_the_user_changes(
    sign_in: MakeUser, directory: DirectoryFixtures
) -> None:
    user = sign_in(contacts=300)
    blobs = contact_data.sealed(user.phone.folder)
    assert contact_data.left_on_disk(user.phone.folder, blobs) == len(blobs) > 300
    person = directory.person(directory.organisation())
    user.app.session_adopt({"session": user.phone.session(person)})
    assert contact_data.left_on_disk(user.phone.folder, blobs) == 0
    user.app.settle()
    assert total(user.app) == 0


def test_the_cache_stays_when_the_same_user_signs_in_again(sign_in: MakeUser) -> None:
    user = sign_in(contacts=300)
    blobs = contact_data.sealed(user.phone.folder)
    user.start_as(user.person)
    user.app.go_offline()
    assert contact_data.left_on_disk(user.phone.folder, blobs) >= 300
    assert total(user.app) == 300


@pytest.mark.parametrize("sends", ["asked", "everything"])
def test_CAC_2_no_network_only_column_is_on_the_disk(
    user: SignedIn, directory: DirectoryFixtures, sends: str
) -> None:
    # Given a contact with network-only columns, and a server that may send them unasked
    secret = {"phone": "+47 471 11 222", "address": "Kirkeveien 4711", "national_id": "01019912345"}
    contact = directory.contact(user.org, "Ragna Prøve", **secret)

    if sends == "everything":
        user.phone.network.rewrite("pull", lambda rows: [{**row, **secret} for row in rows])
    pull(user, after_s=60)
    user.app.contact_get({"id": contact, "live": True})
    user.app.settle()
    [event] = user.app.of_type("contact")
    assert event["contact"]["phone"] == secret["phone"]
    key = user.phone.keychain.stored("session")
    for running in (True, False):
        if not running:
            user.phone.close()
        opened = attacker.decrypted(user.phone.folder, key)["contacts"]
        assert "Ragna Prøve".encode() in opened
        for value in secret.values():
            assert value.encode() not in opened
    for path in user.phone.folder.rglob("*"):
        if path.is_file():
            data = path.read_bytes()
            assert not [value for value in secret.values() if value.encode() in data]


def test_a_membership_that_vanishes_and_is_not_the_chosen_one_is_over(
    phones: MakePhone, directory: DirectoryFixtures
) -> None:
    first, second = directory.organisation(contacts=3), directory.organisation(contacts=300)
    person = directory.person(first, second)
    user = signed_in(phones, person, second)
    phone, app = user.phone, user.app
    of_second = contact_data.sealed(phone.folder)
    assert len(of_second) > 300
    app.go_offline()
    item = add(app)
    app.org_select({"org_id": first.id})
    # (The server takes no uploads, so that only the list of memberships can tell.)
    directory.control.respond("/rest/v1/activities", 503, times=-1)
    app.reconnect()
    assert contact_data.left_on_disk(phone.folder, of_second) == len(of_second)
    assert item_of(app, item)["state"] == "pending"
    directory.control.sql(
        "delete from memberships where user_id = %s and org_id = %s", person.id, second.id
    )
    return_to_foreground(user)
    assert contact_data.left_on_disk(phone.folder, of_second) == 0
    assert code_of(app, item) == "waiting_organisation"
    assert app.screen["screen"] == "home"
    assert app.contact_search({"query": ""})["total"] == 3
