"""What stays in the memory of a process: tokens only while they are needed."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from local_supabase import LocalSupabase

from support import scan
from support.hosted import HostedLibrary
from support.paths import FLAVOURS, HEADER
from support.phone import Phone
from support.town import Town


@pytest.fixture(scope="session")
def host_program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The host in C, compiled."""
    program = tmp_path_factory.mktemp("host") / "host"
    source = Path(__file__).parent / "support" / "host.c"
    flags = ["-O1", "-Wall", "-Wextra", "-Werror", "-I", str(HEADER.parent)]
    subprocess.run(["cc", *flags, "-o", str(program), str(source), "-ldl"], check=True)
    return program


@pytest.fixture
def hosted(host_program: Path, flavour: str) -> Iterator[HostedLibrary]:
    """The library in a process of its own."""
    library = HostedLibrary(host_program, FLAVOURS[flavour])
    yield library
    library.end()


class FilePhone(Phone):
    """A phone without a keychain: the library's own key file serves."""

    @property
    def key_store(self) -> None:  # type: ignore[override]
        return None


def test_SES_12_no_token_stays_in_memory_after_lock_and_logout(
    hosted: HostedLibrary, tmp_path: Path, backend: LocalSupabase, town: Town
) -> None:
    # Given a process in which a user is signed in: the tokens are in its memory
    org = town.organisation("Fortrolig forening", contacts=3)
    person = town.person(org)
    phone = FilePhone(tmp_path / "phone", hosted, backend)
    app = phone.start()
    session = town.session(person)
    tokens = [session["access_token"], session["refresh_token"]]
    app.session_start({"session": session})
    app.settle()
    assert app.screen["screen"] == "home"
    app.contact_search({"query": "Åse"})
    app.register(note="et fortrolig notat")
    app.settle_until("sync_completed")
    found = scan.scan_memory(hosted.pid, *tokens)
    assert any("secret 0" in find for find in found), "the scan sees nothing"
    assert any("secret 1" in find for find in found), "the scan sees nothing"
    # When the app is locked, or the user logs out
    app.session_lock()
    # Then no token, no name and no note is found in the process
    private = [*tokens, "Fortrolig forening", "et fortrolig notat", "Åse Prøvesen", person.id]
    assert scan.scan_memory(hosted.pid, *private) == []
    app.touch()
    app.settle()
    assert app.screen["screen"] == "home"
    app.session_logout()
    app.settle()
    assert scan.scan_memory(hosted.pid, *private) == []
    phone.close()
