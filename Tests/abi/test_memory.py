"""A process's memory: no secret is left after a lock or a logout; what answers take is bounded."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from local_supabase import LocalSupabase

from support import scan
from support.directory_fixtures import DirectoryFixtures
from support.hosted import HostedLibrary
from support.phone import FilePhone
from support.sizes import sampled

pytestmark = pytest.mark.both_flavours


def test_SES_12_no_token_stays_in_memory_after_lock_and_logout(
    hosted: HostedLibrary, tmp_path: Path, backend: LocalSupabase, directory: DirectoryFixtures
) -> None:
    org = directory.organisation("Fortrolig forening", contacts=3)
    person = directory.person(org)
    phone = FilePhone(tmp_path / "phone", hosted, backend)
    app = phone.start()
    session = directory.session(person)
    tokens = [session["access_token"], session["refresh_token"]]
    app.session_adopt({"session": session})
    app.settle()
    assert app.screen["screen"] == "home"
    app.contact_search({"query": "Åse"})
    app.register(note="et fortrolig notat")
    app.settle_until("sync_completed")
    found = scan.scan_memory(hosted.pid, *tokens)
    assert any("secret 0" in find for find in found), "the scan does not find a planted secret"
    assert any("secret 1" in find for find in found), "the scan does not find a planted secret"
    app.session_lock()
    private = [*tokens, "Fortrolig forening", "et fortrolig notat", "Åse Prøvesen", person.id]
    assert scan.scan_memory(hosted.pid, *private) == []
    app.touch()
    app.settle()
    assert app.screen["screen"] == "home"
    app.session_logout()
    app.settle()
    assert scan.scan_memory(hosted.pid, *private) == []
    phone.close()


def peak_of(pid: int) -> int:
    """The largest resident memory that the process has had, in bytes."""
    status = Path(f"/proc/{pid}/status").read_text()
    return int(re.findall(r"VmHWM:\s+(\d+) kB", status)[0]) * 1024


@pytest.mark.parametrize("unit", sampled(["{},", "[],", "0,", "[[0]],"], 4))
def test_an_answer_of_many_small_values_is_refused_before_it_is_built(
    hosted: HostedLibrary,
    tmp_path: Path,
    backend: LocalSupabase,
    directory: DirectoryFixtures,
    unit: str,
) -> None:
    person = directory.person(directory.organisation("Rød forening", contacts=3))
    phone = FilePhone(tmp_path / "phone", hosted, backend)
    app = phone.start()
    app.session_adopt({"session": directory.session(person)})
    [check] = app.poll()["requests"]
    before = peak_of(hosted.pid)
    body = "[" + unit * (14_000_000 // len(unit)) + "0]"
    answer = {"id": check["id"], "status": 200, "headers": {}, "body": body}
    assert app.complete(answer) == {}
    # The request holds the body once, and reading it makes a second copy.
    assert peak_of(hosted.pid) - before < 5 * len(body)
    app.wait(60)
    assert app.screen["screen"] == "home"
    phone.close()
