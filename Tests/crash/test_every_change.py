"""Killed before every single change of a file, one after the other, where order is everything."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from holdfast import Library
from local_supabase import LocalSupabase
from support.phone import Phone
from support.secrecy import Secrets
from support.town import Town

from ledger import Ledger
from reaper import Instant, Lived, Reaper
from story import check_integrity, destroy_header, listed

#: More changes than any of these make.
ENOUGH = 500


def test_QUE_16_killed_before_every_change_of_a_salvage(
    flavour: str,
    library: Library,
    backend: LocalSupabase,
    town: Town,
    tmp_path: Path,
    reaper: Reaper,
    no_secret_is_readable: Secrets,
    record_property: Callable[[str, object], None],
) -> None:
    # Given a queue whose last writer was killed, so that a part of it stands in the log alone
    def live(phone: Phone, theme: str, changes: int) -> Lived:
        secrets = no_secret_is_readable.children
        return reaper.live(phone, theme, changes, Instant(changes=changes), secrets)

    first = Phone(tmp_path / "first", library, backend)
    org = town.organisation()
    first.start().sign_in(town.person(org))
    first.close()
    ledger = Ledger(orgs={org.id})
    kills: list[tuple[str, str]] = []
    try:
        for number in (20, 30):
            ledger.enter(live(first, "add", number))
            kills.append(("add", f"change {number}"))
        owed = {note for note, item in ledger.items.items() if item.owed}
        assert len(owed) >= 4
        # and the first page of whose file is gone
        destroy_header(first.folder)
        # The two builds of one source share the work.
        for changes in range(1 + (flavour == "runtime"), ENOUGH, 2):
            # When the app is killed before any one change of what it does about it
            phone = first.twin(tmp_path / f"twin-{changes}")
            lived = live(phone, "salvage", changes)
            if lived.killed:
                kills.append(("salvage", f"change {changes}"))
            # Then the next start has the session and all of the queue
            app = phone.start(online=False)
            assert app.screen["screen"] == "home", (changes, app.screen)
            found = {item["payload"]["note"] for item in listed(app)}
            assert owed <= found, f"lost when killed before change {changes}"
            app.settle()
            [event] = app.of_type("storage_recovered")
            assert (event["session"], event["lost"]) == (True, 0), changes
            phone.close()
            check_integrity(phone.folder)
            assert not (phone.folder / "recovery.name").exists()
            if ("carried", None) in lived.said:
                break
        else:
            raise AssertionError("there is no end to it")
    finally:
        record_property("kills", kills)
    assert changes > 20
