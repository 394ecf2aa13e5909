"""A salvage, killed before each of its file changes in turn."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from holdfast import Library
from local_supabase import LocalSupabase

from ledger import Ledger
from process_killer import KillPoint, Outcome, ProcessKiller
from scenario import check_integrity, destroy_header, listed
from support.directory_fixtures import DirectoryFixtures
from support.paths import chosen_flavours
from support.phone import Phone
from support.secrecy import Secrets

#: More changes than a salvage makes.
ENOUGH = 500


def forget(phone: Phone, secrets: Secrets) -> None:
    """Search the closed phone for secrets and remove it: every later search would read it again."""
    secrets.read_children(secrets.children)
    for written in secrets.children.iterdir():
        written.unlink()
    secrets.search_files()
    del secrets.folders[phone.folder]
    shutil.rmtree(phone.folder)


@pytest.mark.slow
def test_QUE_16_a_kill_before_any_change_of_a_salvage_loses_nothing(
    flavour: str,
    library: Library,
    backend: LocalSupabase,
    directory: DirectoryFixtures,
    tmp_path: Path,
    process_killer: ProcessKiller,
    no_secret_is_readable: Secrets,
    record_property: Callable[[str, object], None],
) -> None:
    # Given a queue whose last writer was killed, so that a part of it is only in the log
    def run(phone: Phone, workload: str, changes: int) -> Outcome:
        secrets = no_secret_is_readable.children
        return process_killer.run(phone, workload, changes, KillPoint(changes=changes), secrets)

    first = Phone(tmp_path / "first", library, backend)
    org = directory.organisation()
    first.start().sign_in(directory.person(org))
    first.close()
    ledger = Ledger(orgs={org.id})
    kills: list[tuple[str, str]] = []
    try:
        for number in (30, 40):
            ledger.enter(run(first, "add", number))
            kills.append(("add", f"change {number}"))
        owed = {note for note, item in ledger.items.items() if item.owed}
        assert len(owed) >= 4
        # and whose file has lost its first page
        destroy_header(first.folder)
        # The builds of this run share the changes.
        flavours = chosen_flavours()
        for changes in range(1 + flavours.index(flavour), ENOUGH, len(flavours)):
            # When the app is killed before one change of its salvage
            phone = first.twin(tmp_path / f"twin-{changes}")
            outcome = run(phone, "salvage", changes)
            if outcome.killed:
                kills.append(("salvage", f"change {changes}"))
            # Then the next start has the session and the whole queue
            app = phone.start(online=False)
            assert app.screen["screen"] == "home", (changes, app.screen)
            found = {item["payload"]["note"] for item in listed(app)}
            assert owed <= found, f"lost when killed before change {changes}"
            app.settle()
            [event] = app.of_type("storage_recovered")
            assert (event["session"], event["unreadable"]) == (True, False), changes
            phone.close()
            check_integrity(phone.folder)
            assert not (phone.folder / "holdfast.db.damaged").exists()
            forget(phone, no_secret_is_readable)
            if ("carried", None) in outcome.reports:
                break
        else:
            raise AssertionError("the salvage does not end")
    finally:
        record_property("kills", kills)
    assert changes > 20
