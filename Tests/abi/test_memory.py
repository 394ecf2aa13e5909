"""Secrets in the memory of a process: gone after a lock or a logout."""

from __future__ import annotations

from pathlib import Path

from local_supabase import LocalSupabase

from support import scan
from support.directory_fixtures import DirectoryFixtures
from support.hosted import HostedLibrary
from support.phone import FilePhone


def test_SES_12_no_token_stays_in_memory_after_lock_and_logout(
    hosted: HostedLibrary, tmp_path: Path, backend: LocalSupabase, directory: DirectoryFixtures
) -> None:
    # Given a process with a signed-in user, whose tokens are in its memory
    org = directory.organisation("Fortrolig forening", contacts=3)
    person = directory.person(org)
    phone = FilePhone(tmp_path / "phone", hosted, backend)
    app = phone.start()
    session = directory.session(person)
    tokens = [session["access_token"], session["refresh_token"]]
    app.session_start({"session": session})
    app.settle()
    assert app.screen["screen"] == "home"
    app.contact_search({"query": "Åse"})
    app.register(note="et fortrolig notat")
    app.settle_until("sync_completed")
    found = scan.scan_memory(hosted.pid, *tokens)
    assert any("secret 0" in find for find in found), "the scan does not find a planted secret"
    assert any("secret 1" in find for find in found), "the scan does not find a planted secret"
    # When the app is locked, or the user logs out
    app.session_lock()
    # Then the process memory holds no token, name or note
    private = [*tokens, "Fortrolig forening", "et fortrolig notat", "Åse Prøvesen", person.id]
    assert scan.scan_memory(hosted.pid, *private) == []
    app.touch()
    app.settle()
    assert app.screen["screen"] == "home"
    app.session_logout()
    app.settle()
    assert scan.scan_memory(hosted.pid, *private) == []
    phone.close()
