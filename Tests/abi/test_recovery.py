"""What a recovery keeps, what it counts, and what it leaves alone."""

from __future__ import annotations

import contextlib
import random
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from holdfast import HoldfastError, Library
from local_supabase import LocalSupabase

from support.damage import change, destroy_header, home, listed, recovered, restart_after
from support.directory_fixtures import DirectoryFixtures
from support.errors import error_of
from support.held import return_to_foreground, taken
from support.missing import lose, until_lost
from support.phone import App, FilePhone
from support.queue import (
    BOTH,
    EMPTY,
    UPLOADS,
    add,
    add_offline,
    code_of,
    drain,
    edit,
    item_of,
    only_the_user_can_tell,
    stored,
    user_of,
)
from support.screens import seen
from support.sizes import crossed
from support.users import MakePhone, MakeUser, SignedIn


def completed(app: App) -> dict[str, Any]:
    """The first `sync_completed` of the app."""
    if not app.of_type("sync_completed"):
        app.settle_until("sync_completed", within_s=7200)
    [done] = app.of_type("sync_completed")
    return done


@pytest.mark.both_flavours
@BOTH
def test_an_edit_after_a_salvage_is_not_mistaken_for_what_is_stored(
    sign_in: MakeUser, directory: DirectoryFixtures, upload: str
) -> None:
    user = user_of(sign_in, upload)
    item = add(user.app, minutes=30)
    directory.control.drop_after(UPLOADS[upload], method="POST")
    user.app.settle()
    assert item_of(user.app, item)["attempts"] == 1
    app = restart_after(user)
    assert item_of(app, item)["attempts"] >= 1
    edit(app, item, 45)
    home(user)
    # Then it does not count as sent: the server has 30 minutes, and only the user can tell
    only_the_user_can_tell(app, item, completed(app))
    assert item_of(app, item)["payload"]["minutes"] == 45
    assert [row["minutes"] for row in directory.activities(user.person)] == [30]


@pytest.mark.both_flavours
def test_a_salvage_while_an_item_is_being_sent_counts_the_attempt(
    user: SignedIn, directory: DirectoryFixtures
) -> None:
    item = add(user.app, minutes=30)
    user.phone.network(taken(user, "upload"))
    assert stored(directory, user.person) == [item]
    # The handle gives its leases back when it is closed; a killed process does not.
    app = restart_after(user, "UPDATE queue SET state = 1, attempts = 0, lease = x'00'")
    edit(app, item, 45)
    home(user)
    only_the_user_can_tell(app, item, completed(app))


@pytest.mark.both_flavours
def test_an_item_that_a_salvage_brings_back_may_be_stored(
    user: SignedIn, directory: DirectoryFixtures
) -> None:
    item = add(user.offline(), minutes=30)
    user.phone.close()
    path = user.phone.folder / "holdfast.db"
    old = path.read_bytes()
    user.app = user.phone.start()
    home(user)
    assert completed(user.app)["sent"] == 1
    assert stored(directory, user.person) == [item]
    user.phone.close()
    for log in user.phone.folder.glob("holdfast.db-*"):
        log.unlink()
    path.write_bytes(old)
    app = restart_after(user)
    edit(app, item, 45)
    home(user)
    only_the_user_can_tell(app, item, completed(app))


@pytest.mark.both_flavours
def test_what_an_item_waits_for_outlives_a_salvage(user: SignedIn) -> None:
    user.app.go_offline()
    held, later, parked = (add(user.app, minutes=number) for number in (10, 20, 30))
    user.phone.close()
    until = user.phone.now_ms + 3_600_000
    path = user.phone.folder / "holdfast.db"
    with contextlib.closing(sqlite3.connect(path)) as database, database:
        for state, reason, not_before, minutes in [(2, 3, 0, 0), (2, 2, until, 1), (3, 0, 0, 2)]:
            database.execute(
                "UPDATE queue SET state = ?, wait_reason = ?, not_before_ms = ?, attempts = 4, "
                "history = -1 WHERE seq = (SELECT seq FROM queue ORDER BY seq LIMIT 1 OFFSET ?)",
                (state, reason, not_before, minutes),
            )
    before = [(held, "waiting"), (later, "waiting"), (parked, "parked")]
    app = restart_after(user)
    assert [(id_, item_of(app, id_)["state"]) for id_ in (held, later, parked)] == before
    assert code_of(app, held) == "waiting_organisation"
    assert code_of(app, later) == "waiting_time"
    user.phone.close()
    with contextlib.closing(sqlite3.connect(path)) as database:
        rows = database.execute(
            "SELECT wait_reason, not_before_ms, attempts, history FROM queue ORDER BY seq"
        ).fetchall()
    assert rows == [(3, 0, 4, -1), (2, until, 4, -1), (0, 0, 4, -1)]


def test_a_file_that_a_newer_library_has_migrated_stays_where_it_is(user: SignedIn) -> None:
    item = add(user.offline())
    path = user.phone.folder / "holdfast.db"
    with contextlib.closing(sqlite3.connect(path)) as database:
        [version] = database.execute("PRAGMA user_version").fetchone()
        database.executescript(
            "BEGIN; ALTER TABLE queue RENAME COLUMN body TO content;"
            "ALTER TABLE session RENAME COLUMN tokens TO tickets;"
            "PRAGMA user_version = 99; PRAGMA application_id = 99; COMMIT"
        )
    for _ in range(3):
        assert error_of(add, user.app).code == "storage.newer_version"
    assert not list(user.phone.folder.glob("holdfast.db.*"))
    with contextlib.closing(sqlite3.connect(path)) as database:
        assert database.execute("SELECT count(*) FROM queue").fetchone() == (1,)
        database.executescript(
            "BEGIN; ALTER TABLE queue RENAME COLUMN content TO body;"
            "ALTER TABLE session RENAME COLUMN tickets TO tokens;"
            f"PRAGMA user_version = {version}; PRAGMA application_id = {version}; COMMIT"
        )
    app = user.restart(online=False)
    assert item_of(app, item)["state"] == "pending"


#: What is in the place of the device key: the key of another installation, or one that is cut off.
DEVICE_KEYS = {"foreign": bytes(range(32)), **{f"{n} bytes": bytes(n) for n in (0, 7, 31, 33)}}


@pytest.mark.parametrize(
    "key", crossed(DEVICE_KEYS, fast=lambda key: key in ("foreign", "0 bytes", "33 bytes"))
)
def test_ATK_14_a_foreign_or_damaged_device_key_ends_in_a_sign_in(
    tmp_path: Path, library: Library, backend: LocalSupabase, directory: DirectoryFixtures, key: str
) -> None:
    phone = FilePhone(tmp_path / "phone", library, backend, policy={"biometric": "preferred"})
    person = directory.person(directory.organisation())
    app = phone.start()
    app.sign_in(person)
    app.go_offline()
    for _ in range(3):
        add(app)
    phone.close()
    (phone.folder / "keys" / "device.key").write_bytes(DEVICE_KEYS[key])
    app = phone.start()
    until_lost(app)
    app.go_online()
    app.sign_in(person)
    assert app.screen["screen"] == "home"
    app.settle()
    [event] = app.of_type("storage_recovered")
    assert (event["carried"], event["unreadable"], event["session"]) == (0, True, False)
    assert (phone.folder / event["file"]).exists()
    add(app)
    app = phone.start()
    assert seen(app.screen) == ("home", None)
    phone.close()


@pytest.mark.both_flavours
@pytest.mark.parametrize("loss", ["damage", "key"])
def test_ATK_14_a_salvage_keeps_the_order_of_registration(user: SignedIn, loss: str) -> None:
    # Given items whose pages are not in their order: some of them were freed in between
    user.app.go_offline()
    cancelled = [add(user.app, note="x" * 400) for _ in range(40)]
    kept = [add(user.app, note="y" * 400) for _ in range(40)]
    for item in cancelled:
        user.app.queue_cancel({"id": item, "force": True})
    kept += [add(user.app, note="z" * 400) for _ in range(40)]
    if loss == "damage":
        app = restart_after(user)
    else:
        user.phone.close()
        lose(user.phone)
        app = user.restart(online=False)
        until_lost(app)
        app.sign_in(user.person)
        user.phone.keychain.forget_script()
        app = user.restart(online=False)
    listed = app.queue_list({"limit": 200})["items"]
    assert [item["id"] for item in listed] == kept


@pytest.mark.both_flavours
def test_ATK_3_a_salvage_carries_notices_that_were_not_acknowledged(user: SignedIn) -> None:
    user.app.go_offline()
    add(user.app, minutes=10)
    first = None
    app = restart_after(user)
    while first is None:
        first = app.next(0).get("notice")
    app = restart_after(user)
    again, second = recovered(app)
    assert again == first
    assert second["file"] != first["file"]
    assert recovered(user.restart(online=False)) == []


@pytest.mark.both_flavours
def test_ATK_3_a_salvage_carries_an_order_to_revoke_a_session(user: SignedIn) -> None:
    user.app.go_offline()
    user.app.session_logout()
    app = restart_after(user)
    app.reconnect()
    assert [r["purpose"] for r in user.phone.network.sent if r["purpose"] == "revoke"] == ["revoke"]


@pytest.mark.both_flavours
def test_ATK_3_a_salvage_links_an_item_to_a_parent_that_is_found_after_it(
    user: SignedIn,
) -> None:
    parent = add(user.offline())
    child = add(user.app, depends_on=[parent])
    app = restart_after(user, "UPDATE queue SET seq = 100 WHERE seq = 1")
    assert item_of(app, parent)["state"] == "pending"
    assert code_of(app, child) == "dependency_waiting"


#: What damage makes of the links of waiting items.
LOST_LINKS = {
    "the link is gone": "DELETE FROM dependency",
    "it is another item's": "UPDATE dependency SET item = zeroblob(16)",
    "it names no item": "UPDATE dependency SET parent = zeroblob(16)",
}


@pytest.mark.both_flavours
@pytest.mark.parametrize("sql", LOST_LINKS.values(), ids=LOST_LINKS)
def test_ATK_3_an_item_whose_link_damage_took_is_sent_after_its_parent(
    user: SignedIn, directory: DirectoryFixtures, sql: str
) -> None:
    parent = add(user.offline())
    child = add(user.app, depends_on=[parent])
    change(user, sql)
    user.app = user.phone.start(online=False)
    user.app.go_online()
    user.app.settle_until("sync_completed", within_s=7200)
    assert stored(directory, user.person) == sorted([parent, child])
    uploads = [one for one in user.phone.network.sent if one["method"] == "POST"]
    bodies = [one["body"] or "" for one in uploads if one["purpose"] == "upload"]
    assert [parent in body for body in bodies] == [True, False]
    assert user.app.queue_list()["counts"] == EMPTY


@pytest.mark.both_flavours
@pytest.mark.parametrize("sql", LOST_LINKS.values(), ids=LOST_LINKS)
def test_ATK_3_an_item_whose_parent_and_link_damage_took_says_why_it_is_not_sent(
    user: SignedIn, directory: DirectoryFixtures, sql: str
) -> None:
    parent = add(user.offline(), minutes=10)
    child = add(user.app, minutes=20, follows=parent)
    other = add(user.app, minutes=30)
    assert code_of(user.app, child) == "dependency_waiting"
    change(user, sql, "DELETE FROM queue WHERE seq = 1")
    user.app = user.phone.start(online=False)
    user.app.go_online()
    user.app.settle_until("sync_completed", within_s=7200)
    assert stored(directory, user.person) == [other]
    assert code_of(user.app, child) == "missing_parent"
    assert item_of(user.app, child)["state"] == "parked"


def test_a_file_that_is_damaged_before_it_has_carried_over_another_one(
    sign_in: MakeUser, directory: DirectoryFixtures
) -> None:
    user = sign_in(policy={"biometric": "off"})
    ids = add_offline(user, 3)
    user.phone.close()
    user.phone.keychain.unlocked_since_boot = False
    destroy_header(user.phone.folder)
    user.restart(online=False)
    user.phone.close()
    destroy_header(user.phone.folder)
    user.restart(online=False)
    user.phone.close()
    assert len(list(user.phone.folder.glob("holdfast.db.damaged-*[0-9]"))) == 2
    user.phone.keychain.unlocked_since_boot = True
    app = user.restart(online=False)
    assert listed(app) == ids
    app.go_online()
    drain(app)
    assert stored(directory, user.person) == sorted(ids)
    events = app.of_type("storage_recovered")
    found = [(event["carried"], event["unreadable"]) for event in events]
    assert found == [(0, False), (3, False)]


def test_items_held_for_their_organisation_are_held_after_a_salvage(
    user: SignedIn, directory: DirectoryFixtures
) -> None:
    item = add(user.offline())
    directory.control.set_membership(user.person.id, user.org.id, status="ended")
    user.app.reconnect()
    assert code_of(user.app, item) == "waiting_organisation"
    app = restart_after(user)
    assert code_of(app, item) == "waiting_organisation"
    user.phone.network.forget()
    app.go_online()
    if app.screen["screen"] == "sign_in":
        app.sign_in(user.person)
    app.settle()
    assert user.phone.network.count("upload") == 0
    assert code_of(app, item) == "waiting_organisation"
    directory.control.set_membership(user.person.id, user.org.id, status="active")
    return_to_foreground(user)
    drain(app)
    assert stored(directory, user.person) == [item]


def noise(data: bytes, first: int) -> bytes:
    """The data with random bytes from `first` on."""
    return data[:first] + random.Random(7).randbytes(len(data) - first)


@pytest.mark.both_flavours
@pytest.mark.parametrize("spared", [0, 4096, 3 / 4])
def test_QUE_16_a_damaged_file_is_set_aside_and_salvaged(
    user: SignedIn, directory: DirectoryFixtures, spared: float
) -> None:
    user.app.go_offline()
    ids = [user.app.register(minutes=1 + number % 60, note="x" * 500) for number in range(60)]
    user.phone.close()
    database = user.phone.folder / "holdfast.db"
    data = database.read_bytes()
    assert len(data) > 40_000
    for path in user.phone.folder.glob("holdfast.db-*"):
        path.unlink()
    point = int(spared * len(data)) if spared < 1 else int(spared)
    damaged = noise(data, point)
    database.write_bytes(damaged)
    app = user.phone.start(online=False)
    # Then the file is set aside unchanged (at once if its beginning is damaged),
    assert app.opened["recovered"] or spared == 3 / 4
    app.settle()
    aside = [path for path in user.phone.folder.iterdir() if ".damaged-" in path.name]
    assert any(path.read_bytes() == damaged for path in aside), sorted(p.name for p in aside)
    # the user can sign in, readable items are there, and an event reports the salvage
    app.go_online()
    if app.screen["screen"] != "home":
        app.sign_in(user.person)
    app.settle()
    for _ in range(3):
        app.wait(60)
    assert app.screen["screen"] == "home"
    assert set(stored(directory, user.person)) <= set(ids)
    [event] = app.of_type("storage_recovered")
    assert event["carried"] == len(stored(directory, user.person))
    app = user.restart()
    assert app.opened["recovered"] is False
    assert app.screen["screen"] == "home"


# More kinds of damage -----------------------------------------------------------------------------


PAGE = 4096


def truncated(data: bytes) -> bytes:
    return data[: len(data) * 2 // 3 // PAGE * PAGE + 100]


def without_header(data: bytes) -> bytes:
    return bytes(PAGE) + data[PAGE:]


@pytest.mark.both_flavours
@pytest.mark.parametrize("damage", [truncated, without_header])
def test_QUE_16_undamaged_items_are_salvaged_and_sent(
    user: SignedIn, directory: DirectoryFixtures, damage: Callable[[bytes], bytes]
) -> None:
    user.app.go_offline()
    ids = {user.app.register(minutes=1 + number, note="x" * 500) for number in range(60)}
    user.phone.close()
    database = user.phone.folder / "holdfast.db"
    database.write_bytes(damage(database.read_bytes()))
    app = user.phone.start(online=False)
    app.settle()
    app.go_online()
    if app.screen["screen"] != "home":
        app.sign_in(user.person)
    for _ in range(3):
        app.settle()
        user.phone.pass_time(60)
    [event] = app.of_type("storage_recovered")
    found = stored(directory, user.person)
    assert set(found) <= ids
    assert event["carried"] == len(found)
    assert len(found) == len(ids) if damage is without_header else len(found) > 0


def test_ATK_3_a_main_file_that_has_become_empty_is_no_first_start(user: SignedIn) -> None:
    user.offline().register(minutes=10)
    user.phone.close()
    (user.phone.folder / "holdfast.db").write_bytes(b"")
    app = user.phone.start(online=False)
    assert app.opened["recovered"] is True
    app.go_online()
    app.sign_in(user.person)
    app.settle()
    [event] = app.of_type("storage_recovered")
    assert event["carried"] == 0
    assert user.restart().opened["recovered"] is False


@pytest.mark.both_flavours
@pytest.mark.parametrize("name", ["holdfast.db", "cache.db"])
def test_ATK_3_a_header_that_forbids_writing_is_damaged(
    user: SignedIn, directory: DirectoryFixtures, name: str
) -> None:
    item = user.offline().register(minutes=10)
    user.phone.close()
    path = user.phone.folder / name
    data = bytearray(path.read_bytes())
    data[18] ^= 8
    path.write_bytes(data)
    app = user.phone.start(online=False)
    if app.screen["screen"] != "home":
        app.sign_in(user.person)
    more = app.register(minutes=20)
    app.reconnect()
    assert stored(directory, user.person) == sorted([item, more])
    assert app.contact_search({"query": ""})["contacts"] is not None
    assert app.summary_get()["summary"] is not None


# A recovery that was cut short -------------------------------------------------------------------

#: The name that a file has while it is set aside.
MOVED = "holdfast.db.damaged"

#: What becomes of a new main file.
NEW: dict[str, Callable[[bytes], bytes]] = {
    "whole": lambda data: data,
    "noise": lambda data: random.Random(3).randbytes(len(data)),
    "without_header": without_header,
    "half_a_page": lambda data: data[: PAGE // 2],
    "one_page": lambda data: data[:PAGE],
    "empty": lambda _data: b"",
    "no_session_page": lambda data: data[: 3 * PAGE] + bytes(PAGE) + data[4 * PAGE :],
    "newer": lambda data: noise(data[:60] + b"\0\0\0\x63" + data[64:], PAGE),
}


@pytest.mark.both_flavours
@pytest.mark.parametrize("log", ["no_log", "log"])
def test_FIX_3_a_folder_opens_whatever_a_recovery_that_was_cut_short_has_left(
    user: SignedIn, phones: MakePhone, log: str
) -> None:
    ids = add_offline(user, 3)
    user.phone.close()
    fresh = phones()
    fresh.open()
    fresh.close()
    new = (fresh.folder / "holdfast.db").read_bytes()
    folder, whole = user.phone.folder, user.phone.folder.with_suffix(".whole")
    folder.rename(whole)
    failed = []
    for name, damage in NEW.items():
        shutil.copytree(whole, folder)
        destroy_header(folder)
        (folder / "holdfast.db").rename(folder / MOVED)
        (folder / "holdfast.db").write_bytes(damage(new))
        if log == "log":
            (folder / "holdfast.db-wal").write_bytes(noise(b"\x37\x7f\x06\x82", 4) + bytes(8000))
        try:
            app = user.phone.start(online=False)
            assert app.opened["recovered"]
            assert listed(app) == ids
            assert len(recovered(app)) == 1
            assert not user.phone.start(online=False).opened["recovered"]
            user.phone.close()
            kept = {path.read_bytes() for path in folder.glob("holdfast.db.*") if path.is_file()}
            assert name in ("whole", "empty") or damage(new) in kept
            assert not (folder / MOVED).exists()
        except (AssertionError, HoldfastError) as error:
            failed.append(f"{name}: {str(error)[:80]}")
        user.phone.close()
        shutil.rmtree(folder)
    assert not failed, "\n".join(failed)


def test_ATK_3_an_index_without_a_log_is_no_damage_if_the_file_has_it_all(
    user: SignedIn,
) -> None:
    # Given a file into which its log was copied, as by the last connection that is closed
    item = add(user.offline())
    main, index = user.phone.folder / "holdfast.db", user.phone.folder / "holdfast.db-shm"
    with contextlib.closing(sqlite3.connect(main)) as other:
        _busy, frames, copied = other.execute("PRAGMA wal_checkpoint").fetchone()
    assert copied == frames > 0
    left = index.read_bytes()
    user.phone.close()
    assert not Path(f"{main}-wal").exists()
    index.write_bytes(left)
    app = user.phone.start(online=False)
    assert not app.opened["recovered"]
    assert [one["id"] for one in app.queue_list()["items"]] == [item]


@pytest.mark.parametrize("steps", range(1, 5))
def test_FIX_3_a_recovery_goes_on_wherever_it_was_cut_short(user: SignedIn, steps: int) -> None:
    ids = add_offline(user, 3)
    folder, files = user.phone.folder, user.phone.folder.with_suffix(".files")
    shutil.copytree(folder, files)
    user.phone.close()
    shutil.rmtree(folder)
    files.rename(folder)
    destroy_header(folder)
    main = folder / "holdfast.db"
    log = Path(f"{main}-wal").read_bytes()
    names = ["", "-wal", "-shm"][:steps]
    for name in names:
        Path(f"{main}{name}").rename(folder / f"{MOVED}{name}")
    if steps == 4:
        main.write_bytes(b"")
    app = user.phone.start(online=False)
    assert app.opened["recovered"]
    assert listed(app) == ids
    [event] = recovered(app)
    assert (event["carried"], event["unreadable"]) == (3, False)
    assert (folder / f"{event['file']}-wal").read_bytes() == log
    assert not (folder / MOVED).exists()
    assert not user.phone.start(online=False).opened["recovered"]
