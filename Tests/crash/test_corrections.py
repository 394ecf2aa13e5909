"""Killed between any two steps of a correction: what was acknowledged is kept, and done once."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from holdfast import Library
from local_supabase import LocalSupabase

from conftest import SEED
from process_killer import KillPoint, Outcome, ProcessKiller
from scenario import check_integrity, drain, listed
from support.directory_fixtures import DirectoryFixtures, Person
from support.phone import App, Phone
from support.secrecy import Secrets

COLUMNS = ["type", "minutes", "occurred_at", "contact_id", "follows", "note", "user_id"]
#: A kind whose stored rows are kept, changed and taken back.
KIND = {"table": "activities", "columns": COLUMNS, "own": {}, "change": {}, "delete": "deleted_at"}
MONTH_S = 30 * 86400
#: So many rounds, with other corrections in each.
ROUNDS = 2
#: In each of them a process is killed before its first change of a file, one before its second, …
ENOUGH = 40
#: Whether an activity is taken back.
NO, BEGUN, YES = "no", "begun", "yes"


@dataclass
class Wanted:
    """What the user wants of an activity, as far as it is known."""

    #: The allowed minutes: one number, more after changes that were not acknowledged.
    minutes: set[int]
    #: Whether it is taken back.
    deleted: str = NO
    #: Whether a deletion was ever begun: an older request may have reached the server.
    may_be_gone: bool = False


class Wishes:
    """What the killed processes have reported."""

    def __init__(self) -> None:
        self.items: dict[str, Wanted] = {}
        self._minutes: dict[str, int] = {}

    def enter(self, outcome: Outcome) -> None:
        """Enter the reports of a process."""
        for what, value in outcome.reports:
            getattr(self, f"_{what}", lambda _value: None)(value)

    def _add(self, value: list[Any]) -> None:
        self._minutes[value[0]] = value[1]

    def _added(self, value: list[Any]) -> None:
        self.items[value[1]] = Wanted({self._minutes[value[0]]})

    def _change(self, value: list[Any]) -> None:
        item, minutes = value
        self.items[item].minutes.add(minutes)
        if self.items[item].deleted == YES:
            self.items[item].deleted = BEGUN

    def _changed(self, value: list[Any]) -> None:
        self.items[value[0]].minutes = {value[1]}
        self.items[value[0]].deleted = NO

    def _unchanged(self, value: list[Any]) -> None:
        self.items[value[0]].minutes.discard(value[1])
        if self.items[value[0]].deleted == BEGUN:
            self.items[value[0]].deleted = YES

    def _take_back(self, item: str) -> None:
        self.items[item].may_be_gone = True
        if self.items[item].deleted == NO:
            self.items[item].deleted = BEGUN

    def _taken_back(self, item: str) -> None:
        self.items[item].deleted = YES


def check(app: App, wishes: Wishes, directory: DirectoryFixtures, person: Person) -> None:
    """Check that every acknowledged correction waits, is parked, or is done; fix what was open."""
    rows = {str(row["id"]): row for row in directory.activities(person)}
    queue = listed(app)
    queued = {item["id"]: item for item in queue}
    assert len(queued) == len(queue), "an item is queued twice"
    for item, wanted in wishes.items.items():
        found, row = queued.get(item), rows.get(item)
        is_deletion = found is not None and found["operation"] == "delete"
        if found is None and row is None:
            # It was taken back before the server had it.
            assert wanted.may_be_gone, f"{item} is lost: {wanted}"
            wanted.deleted = YES
            continue
        if found is None:
            assert row is not None
            is_deletion = row["deleted_at"] is not None
        assert is_deletion or wanted.deleted != YES or _is_asked(found), (
            f"{item}: {wanted}, {found}"
        )
        assert not is_deletion or wanted.may_be_gone, f"{item} was not taken back: {found}, {row}"
        if is_deletion or _is_asked(found):
            wanted.deleted = YES
            continue
        wanted.deleted = NO
        minutes = (row or {})["minutes"] if found is None else found["payload"].get("minutes")
        if minutes is not None:
            assert minutes in wanted.minutes, f"{item}: {minutes}, {wanted}, {found}, {row}"
            wanted.minutes = {minutes}


def _is_asked(found: dict[str, Any] | None) -> bool:
    """Whether an item was taken back that the server may have: it is asked first."""
    return found is not None and (found["reason"] or {}).get("code") == "unknown_outcome"


def check_end(app: App, wishes: Wishes, directory: DirectoryFixtures, person: Person) -> None:
    """Check that everything is done, once, or was parked since its row is deleted."""
    app.go_online()
    drain(app)
    left = {item["id"]: item["reason"]["code"] for item in listed(app)}
    rows = directory.activities(person)
    stored = {str(row["id"]): row for row in rows}
    assert len({row["note"] for row in rows}) == len(rows), "twice on the server"
    for item, wanted in wishes.items.items():
        row = stored.get(item)
        if item in left:
            # A deletion had been sent before its user took it back.
            assert left[item] == "deleted_elsewhere", (item, left[item], wanted)
            assert row is not None
            assert row["deleted_at"] is not None
            assert wanted.may_be_gone
        elif wanted.deleted == YES:
            assert row is None or row["deleted_at"] is not None, f"{item} is still there"
        else:
            assert row is not None, f"{item} is lost"
            assert row["deleted_at"] is None, f"{item} is deleted: {wanted}"
            assert row["minutes"] in wanted.minutes, f"{item}: {row['minutes']}, {wanted}"


@pytest.mark.parametrize("number", range(ROUNDS))
def test_COR_4_a_kill_between_any_two_steps_loses_no_correction(
    number: int,
    flavour: str,
    library: Library,
    backend: LocalSupabase,
    directory: DirectoryFixtures,
    tmp_path: Path,
    process_killer: ProcessKiller,
    no_secret_is_readable: Secrets,
    record_property: Callable[[str, object], None],
) -> None:
    # Given a user whose stored activities are kept, changed and taken back
    policy = {"session_window_s": MONTH_S, "offline_limit_s": MONTH_S}
    tables = {"queue": {"activity": KIND}}
    phone = Phone(tmp_path / "phone", library, backend, policy=policy, tables=tables)
    person = directory.person(directory.organisation())
    phone.start().sign_in(person)
    phone.close()
    seed = zlib.crc32(f"corrections {SEED} {flavour} {number}".encode())
    wishes = Wishes()
    kills: list[tuple[str, str]] = []
    try:
        # When the app is killed before each change of its files in turn
        for changes in range(1, ENOUGH + 1):
            secrets = no_secret_is_readable.children
            point = KillPoint(changes=changes)
            outcome = process_killer.run(phone, "correct", seed + changes, point, secrets)
            wishes.enter(outcome)
            if outcome.killed:
                kills.append(("correct", str(point)))
            # Then what was acknowledged waits, is parked, or is done
            check_integrity(phone.folder)
            app = phone.start(online=False)
            assert app.screen["screen"] == "home", app.screen
            check(app, wishes, directory, person)
            phone.close()
        # and in the end all of it is done, once
        check_end(phone.start(), wishes, directory, person)
        phone.close()
        check_integrity(phone.folder)
    except BaseException:
        print(f"kills so far: {kills}")
        raise
    finally:
        phone.close()
        record_property("kills", kills)
    assert len(kills) > ENOUGH // 2
    assert library.live() == 0
