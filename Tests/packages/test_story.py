"""The story that every binding tells, in Python: sign in, choose, lose the network, queue, be
killed, unlock, drain, search, log out. The app runs in processes of its own, with only the wheel.
"""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from local_supabase import LocalSupabase
from patience import patience

from consumers import ROOT

APP = ROOT / "Tests" / "packages" / "story" / "app.py"
USER = "mentor@example.org"


class Process:
    """The app, which answers each command with a line."""

    def __init__(self, python: Path, backend: LocalSupabase, folder: Path) -> None:
        self.running = subprocess.Popen(
            [python, APP, folder, backend.url, backend.anon_key],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def __call__(self, command: str) -> str:
        assert self.running.stdin is not None
        assert self.running.stdout is not None
        self.running.stdin.write(command + "\n")
        self.running.stdin.flush()
        line = self.running.stdout.readline()
        assert line.startswith("> "), f"{command}: the app has ended"
        return line.removeprefix("> ").strip()

    def kill(self) -> None:
        self.running.kill()
        assert self.running.wait() == -signal.SIGKILL

    def end(self) -> None:
        assert self.running.stdin is not None
        self.running.stdin.close()
        assert self.running.wait(patience(120)) == 0


@pytest.fixture
def healed(backend: LocalSupabase) -> Iterator[LocalSupabase]:
    yield backend
    backend.control.clear_faults()


def visits(backend: LocalSupabase) -> int:
    """How many activities the user has on the server."""
    query = (
        "select count(*) as n from activities a join auth.users u on u.id = a.user_id"
        f" where u.email = '{USER}'"
    )
    return int(backend.control.sql(query)[0]["n"])


def test_NXT_1_the_story_nothing_is_lost_and_nothing_is_stored_twice(
    app_python: Path, healed: LocalSupabase, tmp_path: Path
) -> None:
    before = visits(healed)
    # Given a user who signs in and chooses one of two organisations
    app = Process(app_python, healed, tmp_path)
    assert app("start") == "sign_in session_missing"
    assert app(f"sign_in {USER} holdfast-demo") == "select_org first_choice"
    orgs = app("orgs").split()
    assert len(orgs) == 2
    assert app(f"choose {orgs[0]}").startswith("home ")
    # When the network goes, three visits are made, and the app is left and killed
    healed.control.drop_before("/rest/v1", times=100_000)
    assert [app(f"visit {minutes}") for minutes in (15, 30, 45)] == ["pending"] * 3
    assert app("leave").startswith("home ")
    app.kill()
    assert visits(healed) == before
    # Then the next start asks for the user, and a dismissed prompt lets nobody in
    (tmp_path / "prompts").write_text("cancelled\nok\n", "utf-8")
    app = Process(app_python, healed, tmp_path)
    assert app("start").startswith("unlock ")
    assert app("unlock").startswith("sign_in biometric_cancelled")
    assert app("unlock").startswith("home ")
    assert app("unsent") == "3 0"
    # and with the network everything arrives, once
    healed.control.clear_faults()
    assert app("drain") == "3"
    assert app("unsent") == "0 0"
    assert visits(healed) == before + 3
    assert int(app("search")) > 0
    # and the logout leaves no key of the session
    assert app("log_out") == "0 sign_in signed_out"
    app.end()
    assert [path.name for path in (tmp_path / "keys").iterdir()] == ["device.key"]
    for path in tmp_path.rglob("*"):
        assert not path.is_file() or b"Nordlys" not in path.read_bytes(), path
