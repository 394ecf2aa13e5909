"""One user and one phone through many kills: every acknowledged call must persist."""

from __future__ import annotations

import contextlib
import random
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ledger import Item, Ledger
from process_killer import KillPoint, ProcessKiller
from support.directory_fixtures import DirectoryFixtures, Organisation, Person
from support.phone import App, Phone

#: The approximate duration in seconds of each workload, and its number of file changes.
SPANS: dict[str, tuple[float, int]] = {
    "add": (0.08, 80),
    "edit": (0.08, 80),
    "drain": (0.40, 200),
    "refresh": (0.25, 80),
    "logout": (0.02, 24),
    "org_switch": (0.30, 80),
    "first_start": (0.03, 60),
    "salvage": (0.04, 90),
}
#: A little more than the library's longest lease, that of an upload.
LEASE_S = 80
#: A process that ends before its kill point runs again with an earlier one, this often.
TRIES = 8


class Scenario:
    """One phone, from the sign-in to the empty queue."""

    def __init__(
        self,
        process_killer: ProcessKiller,
        directory: DirectoryFixtures,
        new_phone: Callable[[], Phone],
        seed: int,
        secrets: Path,
    ) -> None:
        self.chance = random.Random(seed)
        self.process_killer = process_killer
        self.directory = directory
        self.secrets = secrets
        self.new_phone = new_phone
        self.orgs: list[Organisation] = [directory.organisation(contacts=2) for _ in range(2)]
        self.person: Person = directory.person(*self.orgs)
        self.phone = new_phone()
        self.ledger = Ledger()
        self.kills: list[tuple[str, str]] = []
        self.sign_in(self.phone.start())
        self.phone.close()

    def sign_in(self, app: App) -> None:
        """Sign the user in and choose the first organisation."""
        app.sign_in(self.person, self.orgs[0])
        assert app.screen["screen"] == "home", app.screen
        self.ledger.orgs = {self.orgs[0].id}
        self.ledger.leaving = self.ledger.left = False

    # Kills ------------------------------------------------------------------------------------

    def kill(self, workload: str) -> None:
        """Run a workload, kill it, and check the state after it."""
        if workload == "first_start":
            self.kill_a_first_start()
            return
        if workload == "salvage":
            # The kill leaves rows in the database's log, which a salvage must read, too.
            self.run(self.phone, "add")
            destroy_header(self.phone.folder)
        self.run(self.phone, workload)
        self.check(was_damaged=workload == "salvage")

    def run(self, phone: Phone, workload: str) -> None:
        """Run a workload until a process of it was killed."""
        seconds, changes = SPANS[workload]
        for _ in range(TRIES):
            if self.chance.random() < 0.5:
                kill_point = KillPoint(after_s=self.chance.random() * seconds)
            else:
                kill_point = KillPoint(changes=self.chance.randint(1, changes))
            outcome = self.process_killer.run(
                phone, workload, self.chance.getrandbits(32), kill_point, self.secrets
            )
            self.ledger.enter(outcome)
            for what, value in outcome.reports:
                if what == "time":
                    phone.now_ms, phone.monotonic_ms = value
            if outcome.killed:
                self.kills.append((workload, str(kill_point)))
                return
            seconds, changes = seconds / 2, max(2, changes // 2)
            if workload in {"logout", "first_start"}:
                return  # these run only once
        raise AssertionError(f"{workload} always ends before it can be killed")

    def kill_a_first_start(self) -> None:
        """Kill a first start on a new phone; then sign in, register and send."""
        phone = self.new_phone()
        self.run(phone, "first_start")
        check_integrity(phone.folder)
        person = self.directory.person(self.orgs[0])
        app = phone.start()
        assert app.screen["screen"] == "sign_in", app.screen
        app.sign_in(person)
        item = app.register(note="etter den første starten")
        drain(app)
        assert [row["id"] for row in self.directory.activities(person)] == [item]
        phone.close()

    # Checks -----------------------------------------------------------------------------------

    def check(self, *, was_damaged: bool = False) -> None:
        """Check that the files are intact and every acknowledged item exists."""
        if not was_damaged:
            check_integrity(self.phone.folder)
        app = self.phone.start(online=False)
        self.check_session(app)
        if was_damaged:
            app.settle()
            # A salvage may bring back an item that was cancelled shortly before.
            for item in self.ledger.items.values():
                item.cancelled = False
        self.check_items(app)
        if app.screen["screen"] == "home":
            self.check_refresh(app)
        self.phone.close()
        check_integrity(self.phone.folder)

    def check_session(self, app: App) -> None:
        """Check: signed in with the chosen organisation, or signed out after a begun logout."""
        state = app.session_status()["state"]
        if state == "signed_out":
            assert self.ledger.leaving, "signed out without a logout"
            app.go_online()
            app.settle()
            if self.directory.control.sessions(self.person.id):
                self.phone.pass_time(LEASE_S)
                app.settle()
            assert self.directory.control.sessions(self.person.id) == [], "not revoked"
            self.sign_in(app)
            app.go_offline()
            return
        assert not self.ledger.left, "an acknowledged logout is lost"
        self.ledger.leaving = False
        # An unlock, a sign-in or a logout that was cut short leaves the session locked.
        if app.screen["message"] and app.screen["message"]["code"] in {
            "token_expired",
            "user_locked",
        }:
            app.touch()
        assert app.screen["screen"] == "home", app.screen
        assert app.session_status()["state"] == "active"
        org = app.screen["org"]
        assert org is not None
        assert org["id"] in self.ledger.orgs, "the chosen organisation is a wrong one"
        self.ledger.orgs = {org["id"]}

    def check_items(self, app: App) -> None:
        """Check that every item is in the queue or on the server, and fix its allowed values."""
        queued = {item["payload"]["note"]: item for item in listed(app)}
        stored = {str(row["note"]): row for row in self.directory.activities(self.person)}
        assert queued.keys() <= self.ledger.items.keys(), "the queue has an unknown item"
        for note, item in self.ledger.items.items():
            found = queued.get(note)
            if found is None:
                if note not in stored:
                    assert not item.owed, f"{note} is lost: {item}"
                continue
            assert not item.cancelled, f"{note} was cancelled"
            assert item.id in {None, found["id"]}
            assert found["payload"]["minutes"] in item.minutes, f"{note}: a change is lost"
            assert found["org_id"] in item.orgs, f"{note} is in another organisation"
            item.id, item.owed = found["id"], True
            item.minutes, item.orgs = {found["payload"]["minutes"]}, {found["org_id"]}

    def check_refresh(self, app: App) -> None:
        """Check that the session refreshes: GoTrue accepts the old token, and no lease is left."""
        app.go_online()
        app.settle()
        if "refresh" in app.session_status()["owed"]:
            self.phone.pass_time(LEASE_S)
            app.settle()
        status = app.session_status()
        assert status["state"] == "active", status
        assert "refresh" not in status["owed"], status
        assert "validation" not in status["owed"], status

    def end(self) -> None:
        """Send the queue and check that the server has every item once, as last acknowledged."""
        app = self.phone.start()
        self.check_session(app)
        drain(app)
        left = {item["payload"]["note"]: item for item in listed(app)}
        rows = self.directory.activities(self.person)
        stored = {str(row["note"]): row for row in rows}
        assert len(stored) == len(rows), "twice on the server"
        assert stored.keys() <= self.ledger.items.keys()
        for note, item in self.ledger.items.items():
            check_end(note, item, stored.get(note), left.get(note))
        assert len(self.directory.control.sessions(self.person.id)) == 1
        self.phone.close()
        check_integrity(self.phone.folder)


def check_end(
    note: str, item: Item, row: dict[str, Any] | None, left: dict[str, Any] | None
) -> None:
    """Check the final state of one item."""
    if left is not None:
        # It was edited after an attempt of unknown outcome that had succeeded.
        assert left["reason"]["code"] == "unknown_outcome", left
        assert left["payload"]["minutes"] in item.minutes
        assert row is not None
        return
    if row is None:
        assert not item.owed, f"{note} is lost"
        return
    assert not item.cancelled, f"{note} was cancelled"
    assert item.id in {None, str(row["id"])}
    assert row["minutes"] in item.minutes, f"{note}: a change is lost"
    assert str(row["org_id"]) in item.orgs, f"{note} is in another organisation"


def drain(app: App) -> None:
    """Send everything; a killed process delays items no longer than its lease."""
    left_ms = LEASE_S * 1000
    while True:
        app.settle()
        counts = app.queue_list({"limit": 1})["counts"]
        if counts["pending"] + counts["sending"] + counts["waiting"] == 0:
            return
        wake_ms = app.step().wake_in_ms
        assert wake_ms is not None, f"wake_in_ms is null with items left: {counts}"
        left_ms -= max(1, wake_ms)
        assert left_ms > 0, f"still not sent: {counts}, {app.queue_explain()}"
        app.phone.pass_time(max(1, wake_ms) / 1000)


def listed(app: App) -> list[dict[str, Any]]:
    """The whole queue."""
    items: list[dict[str, Any]] = []
    after = 0
    while True:
        page = app.queue_list({"after": after, "limit": 500})
        items += [dict(item) for item in page["items"]]
        if page["next"] is None:
            return items
        after = page["next"]


def check_integrity(folder: Path) -> None:
    """Run SQLite's integrity check on copies, so that the files stay unchanged."""
    for name in ("holdfast.db", "cache.db"):
        if not (folder / name).exists():
            continue
        copy = folder.with_name("copy")
        shutil.rmtree(copy, ignore_errors=True)
        copy.mkdir()
        for file in folder.glob(f"{name}*"):
            if file.suffix in {".db", ".db-wal"}:
                shutil.copy(file, copy)
        with contextlib.closing(sqlite3.connect(copy / name)) as database:
            assert database.execute("PRAGMA integrity_check").fetchall() == [("ok",)], name


def destroy_header(folder: Path) -> None:
    """Zero the first page of the main file, as after a torn write."""
    with (folder / "holdfast.db").open("r+b") as file:
        file.write(bytes(4096))
