"""The cache: what it holds, and when it is erased or rebuilt."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest
from holdfast import HoldfastError

from support import attacker
from support.directory_fixtures import DirectoryFixtures
from support.phone import App
from support.queue import stored
from support.users import MakePhone, MakeUser


def rows(folder: Path) -> int:
    """The number of contacts in the cache file."""
    [(count,)] = attacker.rows(folder / "cache.db", "SELECT count(*) FROM contact")
    return int(count)


def test_KEEP_4_logout_erases_the_cache(sign_in: MakeUser) -> None:
    user = sign_in(contacts=5)
    assert rows(user.phone.folder) == 5
    user.app.session_logout()
    assert rows(user.phone.folder) == 0


def test_CAC_5_a_locked_session_refuses_cache_reads(sign_in: MakeUser) -> None:
    user = sign_in(contacts=300)
    assert user.app.contact_search({"query": "", "limit": 200})["total"] == 300
    user.app.session_lock()
    with pytest.raises(HoldfastError) as caught:
        user.app.contact_search({"query": ""})
    assert caught.value.code == "session.locked"
    user.app.touch()
    reply = user.app.contact_search({"query": "", "limit": 200})
    assert (len(reply["contacts"]), reply["total"]) == (200, 300)


def test_CAC_2_withheld_columns_are_never_requested(sign_in: MakeUser) -> None:
    user = sign_in(contacts=5)
    user.app.sync_now()
    user.app.settle()
    pulls = [r["url"] for r in user.phone.network.sent if "/rest/v1/contacts" in r["url"]]
    assert pulls
    for url in pulls:
        assert "select=" in url
        assert "select=*" not in url
        for column in ("phone", "address", "national_id"):
            assert column not in url
    for contact in user.app.contact_search({"query": ""})["contacts"]:
        assert set(contact) & {"phone", "address", "national_id"} == set()


def test_CAC_1_a_pull_follows_late_changed_and_deleted_rows(
    sign_in: MakeUser, directory: DirectoryFixtures
) -> None:
    # Given cached contacts
    user = sign_in()
    names = ["Kari Prøve", "Ola Prøve", "Per Prøve"]
    ids = [directory.contact(user.org, name) for name in names]

    def shown() -> list[str]:
        user.phone.pass_time(60)
        user.app.sync_now()
        user.app.settle()
        return sorted(c["name"] for c in user.app.contact_search({"query": ""})["contacts"])

    assert shown() == names
    # When one changes, one is marked as deleted, and a new one has an older time
    directory.control.sql("update contacts set name = 'Kari Ny' where id = %s", ids[0])
    directory.control.sql("update contacts set deleted_at = now() where id = %s", ids[1])
    assert shown() == ["Kari Ny", "Per Prøve"]
    with directory.times_as_given():
        late = directory.contact(user.org, "Sen Commit")
        directory.control.sql(
            "update contacts set updated_at = now() - interval '5 seconds' where id = %s", late
        )
    # Then the next pull brings all three changes
    assert shown() == ["Kari Ny", "Per Prøve", "Sen Commit"]
    # and the reconcile removes rows that were deleted without a mark
    directory.control.sql("delete from contacts where id = %s", ids[2])
    user.phone.pass_time(2 * 86_400)
    user.restart()
    if user.app.screen["screen"] == "unlock":
        user.app.touch()
        user.app.settle()
    assert shown() == ["Kari Ny", "Sen Commit"]


def test_CAC_3_the_cache_of_an_ended_membership_is_erased(
    phones: MakePhone, directory: DirectoryFixtures
) -> None:
    first, second = directory.organisation(contacts=4), directory.organisation(contacts=3)
    person = directory.person(first, second)
    app = phones().start()
    app.sign_in(person, first)
    assert app.contact_search({"query": ""})["total"] == 4
    directory.control.set_membership(person.id, first.id, status="ended")
    app.session_background()
    app.session_foreground()
    app.settle()
    assert app.screen["screen"] == "select_org"
    app.org_select({"org_id": second.id})
    app.settle()
    directory.control.set_membership(person.id, first.id, status="active")
    app.session_background()
    app.session_foreground()
    app.settle()
    app.go_offline()
    app.org_select({"org_id": first.id})
    assert app.contact_search({"query": ""})["total"] == 0


def lost(app: App) -> list[dict[str, object]]:
    """The events about a lost cache."""
    return [
        event
        for event in app.of_type("storage_recovered")
        if event["message"]["code"] == "cache_recovered"
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


@pytest.mark.parametrize("damage", sorted(DAMAGE))
def test_CAC_4_a_damaged_cache_is_rebuilt_automatically(
    sign_in: MakeUser, directory: DirectoryFixtures, damage: str
) -> None:
    user = sign_in(contacts=200)
    user.app.go_offline()
    item = user.app.register()
    user.phone.close()
    for path in user.phone.folder.glob("cache.db-*"):
        path.unlink()
    DAMAGE[damage](user.phone.folder / "cache.db")
    app = user.restart(online=False)
    assert app.screen["screen"] == "home"
    assert app.contact_search({"query": ""})["total"] == 0
    assert app.queue_get({"id": item})["item"]["state"] == "pending"
    app.go_online()
    app.settle()
    assert app.contact_search({"query": ""})["total"] == 200
    assert stored(directory, user.person) == [item]
    # One event reports it, and the queue is unaffected.
    assert len({event["seq"] for event in lost(app)}) == 1
    app.poll({"ack": lost(app)[0]["seq"]})
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
    assert len({event["seq"] for event in lost(app)}) == 1


def test_CAC_4_a_cache_deleted_while_the_app_runs_is_rebuilt(sign_in: MakeUser) -> None:
    user = sign_in(contacts=20)
    for path in user.phone.folder.glob("cache.db*"):
        path.unlink()
    assert user.app.contact_search({"query": ""})["total"] == 0
    user.app.settle()
    assert user.app.contact_search({"query": ""})["total"] == 20
    assert len(lost(user.app)) == 1


def test_the_cache_of_version_1_is_fetched_again(sign_in: MakeUser) -> None:
    user = sign_in(contacts=20)
    user.phone.close()
    for path in user.phone.folder.glob("cache.db*"):
        path.unlink()
    path = user.phone.folder / "cache.db"
    for statement in (
        "CREATE TABLE contact(row BLOB PRIMARY KEY, org BLOB NOT NULL, sealed BLOB NOT NULL) "
        "WITHOUT ROWID",
        "CREATE INDEX contact_org ON contact(org)",
        "CREATE TABLE source(org BLOB NOT NULL, name TEXT NOT NULL, cursor BLOB, "
        "as_of_ms INTEGER NOT NULL, reconciled_ms INTEGER NOT NULL DEFAULT 0, sealed BLOB, "
        "PRIMARY KEY(org, name)) WITHOUT ROWID",
        "INSERT INTO contact VALUES (x'01', x'02', x'03')",
        "INSERT INTO source(org, name, as_of_ms) VALUES (x'02', 'contacts', 1)",
        "PRAGMA user_version = 1",
    ):
        run(path, statement)
    app = user.restart()
    app.settle()
    assert app.contact_search({"query": ""})["total"] == 20
    assert rows(user.phone.folder) == 20
    assert lost(app) == []
