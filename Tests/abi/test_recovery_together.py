"""Several handles and processes on a folder whose main file is damaged while they are open."""

from __future__ import annotations

import contextlib
import fcntl
import os
import sqlite3
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from holdfast import HoldfastError
from patience import eventually, patience, until_asleep

from support.caller import Caller, caller
from support.damage import empty_log, overwrite, root_of
from support.directory_fixtures import DirectoryFixtures
from support.phone import App
from support.queue import add, drain, stored
from support.users import MakeUser, SignedIn
from support.waking import another


def at_home(sign_in: MakeUser, items: int = 3) -> tuple[SignedIn, list[str]]:
    """A user offline at home, with queued items."""
    user = sign_in(policy={"biometric": "off"})
    user.app.go_offline()
    return user, [add(user.app, minutes=1 + number) for number in range(items)]


def listed(app: App) -> list[str]:
    while True:
        try:
            return [item["id"] for item in app.queue_list()["items"]]
        except HoldfastError as error:
            # On a slow machine the other one holds a lock for longer than a call waits
            assert error.code == "storage.busy", error


def recovered(app: App) -> list[dict[str, Any]]:
    """The notices `storage_recovered` that this app has been given."""
    app.take()
    return app.of_type("storage_recovered")


@contextlib.contextmanager
def held(folder: Path) -> Iterator[None]:
    """Nobody can begin a recovery of the folder."""
    lock = os.open(folder, os.O_RDONLY)
    fcntl.flock(lock, fcntl.LOCK_EX)
    yield
    os.close(lock)


def write_locked(folder: Path) -> sqlite3.Connection:
    """A connection that holds the write lock of the main file; any thread may use it."""
    found = sqlite3.connect(folder / "holdfast.db", isolation_level=None, check_same_thread=False)
    found.execute("BEGIN IMMEDIATE")
    return found


def proofs(folder: Path) -> list[tuple[str, object]]:
    """What says that the device key is the file's."""
    with contextlib.closing(sqlite3.connect(folder / "holdfast.db")) as database:
        find = "SELECT name, value FROM meta WHERE name IN ('key_check', 'has_host_keys')"
        return database.execute(find).fetchall()


def proved(folder: Path, rows: list[tuple[str, object]]) -> sqlite3.Connection:
    """The write lock of a new file, which some handle has taken its key for: the next write of all
    handles is that of the recovery."""
    found = write_locked(folder)
    found.executemany("INSERT INTO meta(name, value) VALUES (?, ?)", rows)
    found.execute("COMMIT")
    found.execute("BEGIN IMMEDIATE")
    return found


def release(connection: sqlite3.Connection) -> None:
    connection.execute("ROLLBACK")
    connection.close()


def during_recovery(user: SignedIn, act: Callable[[], None]) -> None:
    """Act once, when this process has made the new file and is about to fill it."""

    def hook(call: str, name: str) -> None:
        if (call, name) == ("load", "device"):
            user.phone.keychain.watch = lambda _call, _name: None
            act()

    user.phone.keychain.watch = hook


def recover_both(user: SignedIn, other: Caller) -> None:
    """Damage the main file under two processes.

    Afterwards this one has recovered it, and the other one has seen the new file before it was
    filled, and is about to write to it.
    """
    folder = user.phone.folder
    rows = proofs(folder)
    empty_log(folder)
    overwrite(folder, 1)
    with held(folder):
        other.begin("queue_list")

    def other_sees_the_new_file() -> None:
        lock = proved(folder, rows)
        other.go_on_until_it_waits()
        release(lock)

    during_recovery(user, other_sees_the_new_file)
    user.app.queue_list()


@pytest.mark.both_flavours
def test_FIX_1_what_a_user_cancels_after_a_recovery_stays_cancelled(
    sign_in: MakeUser, directory: DirectoryFixtures, patient: dict[str, str]
) -> None:
    user, ids = at_home(sign_in)
    with caller(user.phone, patient) as other:
        recover_both(user, other)
        assert listed(user.app) == ids
        user.app.queue_cancel({"id": ids[0], "force": True})
        assert other.end() is None
    assert listed(user.app) == ids[1:]
    assert [event["carried"] for event in recovered(user.app)] == [3]
    user.app.go_online()
    drain(user.app)
    assert stored(directory, user.person) == sorted(ids[1:])


def test_FIX_1_what_a_user_discards_after_a_recovery_stays_discarded(
    sign_in: MakeUser, directory: DirectoryFixtures, patient: dict[str, str]
) -> None:
    user, ids = at_home(sign_in)
    with caller(user.phone, patient) as other:
        recover_both(user, other)
        user.app.session_logout({"unsent": "discard", "confirm_unsent": len(ids)})
        other.end()
    assert user.app.session_status()["state"] == "signed_out"
    assert user.restart().screen["screen"] == "sign_in"
    user.app.sign_in(user.person)
    assert listed(user.app) == []
    user.app.settle()
    assert stored(directory, user.person) == []


def test_FIX_1_a_recovery_is_done_and_reported_once_however_many_handles_find_the_damage(
    sign_in: MakeUser,
) -> None:
    user, ids = at_home(sign_in)
    folder = user.phone.folder
    with another(user.phone) as second:
        for done in range(2):
            rows = proofs(folder)
            empty_log(folder)
            overwrite(folder, 1)
            loads: list[Any] = []
            one = threading.Lock()

            def hook(
                call: str,
                name: str,
                loads: list[Any] = loads,
                rows: list[Any] = rows,
                one: threading.Lock = one,
            ) -> None:
                with one:
                    if (call, name) == ("load", "device") and len(loads) < 2:
                        loads.append(loads[0] if loads else proved(folder, rows))

            threads = [threading.Thread(target=listed, args=(app,)) for app in (user.app, second)]
            with held(folder):
                user.phone.keychain.watch = hook
                for thread in threads:
                    thread.start()
                    until_asleep(thread)
            eventually(lambda loads=loads: len(loads) == 2, what="both load the key")
            for thread in threads:
                until_asleep(thread)
            release(loads[0])
            for thread in threads:
                thread.join(patience(60))
            assert len(recovered(user.app)) + len(recovered(second)) == done + 1
            assert listed(user.app) == listed(second) == ids


#: What another process writes: the call, and the items that are there afterwards.
WRITES: dict[str, Callable[[list[str]], tuple[str, dict[str, Any], list[str]]]] = {
    "add": lambda ids: (
        "queue_add",
        {
            "kind": "activity",
            "id": "0c000000-0000-7000-8000-00000000000c",
            "payload": {"type": "visit", "minutes": 9},
        },
        [*ids, "0c000000-0000-7000-8000-00000000000c"],
    ),
    "cancel": lambda ids: ("queue_cancel", {"id": ids[0], "force": True}, ids[1:]),
    "discard": lambda ids: (
        "session_logout",
        {"unsent": "discard", "confirm_unsent": len(ids)},
        [],
    ),
}


#: A table that the call does not touch: else it would find the damage itself, and run again.
UNTOUCHED = {"add": "sign_in", "cancel": "sign_in", "discard": "stored_item"}


@pytest.mark.both_flavours
@pytest.mark.parametrize("write", WRITES)
def test_FIX_2_what_is_acknowledged_during_a_recovery_is_in_the_new_file(
    sign_in: MakeUser, patient: dict[str, str], write: str
) -> None:
    user, ids = at_home(sign_in)
    user.phone.close()
    folder = user.phone.folder
    operation, request, left = WRITES[write](ids)
    with caller(user.phone, patient) as other:
        empty_log(folder)
        lock = write_locked(folder)
        other.begin(operation, request)
        release(lock)
        overwrite(folder, root_of(folder, UNTOUCHED[write]))
        app = user.phone.start(online=False)
        assert app.opened["recovered"]
        assert listed(app) == ids
        assert other.end() is None
    if write == "discard":
        assert app.session_status()["state"] == "signed_out"
        app.sign_in(user.person)
    assert listed(app) == left


def test_FIX_2_a_file_is_set_aside_after_a_commit_that_is_under_way(sign_in: MakeUser) -> None:
    user, ids = at_home(sign_in)
    user.phone.close()
    folder = user.phone.folder
    empty_log(folder)
    page = root_of(folder, "sign_in")
    lock = write_locked(folder)
    lock.execute("DELETE FROM queue WHERE seq = 1")
    overwrite(folder, page)
    starts = threading.Thread(target=lambda: user.phone.start(online=False))
    starts.start()
    with contextlib.suppress(FileNotFoundError):
        until_asleep(starts)
    lock.execute("COMMIT")
    lock.close()
    starts.join(patience(60))
    app = user.phone.app
    assert app is not None and app.opened["recovered"]
    assert listed(app) == ids[1:]
