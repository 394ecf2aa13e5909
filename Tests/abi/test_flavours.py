"""The two builds of the library are interchangeable."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from holdfast import Library
from local_supabase import LocalSupabase

from support.directory_fixtures import DirectoryFixtures
from support.paths import FLAVOURS
from support.phone import Phone

pytestmark = [
    pytest.mark.both_flavours,
    pytest.mark.skipif(
        os.environ.get("HOLDFAST_FLAVOUR", "runtime") != "runtime",
        reason="HOLDFAST_FLAVOUR limits this run to one build",
    ),
]


def test_ABI_6_both_flavours_live_in_one_process_and_share_a_folder(
    tmp_path: Path, backend: LocalSupabase, directory: DirectoryFixtures
) -> None:
    embedded, runtime = (Library(path) for path in FLAVOURS.values())
    assert embedded.version() == runtime.version()
    org = directory.organisation(contacts=3)
    person = directory.person(org)
    phone = Phone(tmp_path / "phone", embedded, backend)
    phone.start().sign_in(person)
    for library in (runtime, embedded, runtime):
        registered = phone.start(online=False).register()
        phone.close()
        phone.library = library
        app = phone.start(online=False)
        assert app.screen["screen"] == "home"
        assert app.contact_search({"query": ""})["total"] == 3
        assert app.queue_get({"id": registered})["item"]["payload"]["minutes"] == 30
    app.go_online()
    app.settle_until("sync_completed")
    phone.close()
    assert len(directory.activities(person)) == 3
    assert (embedded.live(), runtime.live()) == (0, 0)


def test_ABI_6_one_build_refuses_the_other_s_handles(
    tmp_path: Path, backend: LocalSupabase
) -> None:
    embedded, runtime = (Library(path) for path in FLAVOURS.values())
    phone = Phone(tmp_path / "phone", embedded, backend)
    app = phone.open()
    status, _ = runtime.call("session_status", app._handle ^ 0x5A5A0000, None)
    assert status == 9
    phone.close()
