"""The shell of the C example, with the driver and the real core, against the local backend."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from local_supabase.launcher import LocalSupabase
from patience import patience

from driver_stand import ROOT

SHELL = ROOT / "build" / "bin" / "holdfast-shell"

pytestmark = pytest.mark.skipif(not SHELL.exists(), reason="build/bin/holdfast-shell is not built")


@pytest.fixture(scope="module")
def backend() -> Iterator[LocalSupabase]:
    with LocalSupabase(demo=True) as started:
        yield started


class Shell:
    """A phone: a folder, and a new process for each start of the app."""

    def __init__(self, folder: Path, backend: LocalSupabase) -> None:
        self.command = [SHELL, folder / "data", backend.url, backend.anon_key]

    def run(self, *lines: str) -> list[tuple[str, Any]]:
        """Run these commands; return each printed line as its first word and its rest (JSON or text).

        The first is the reply of `open`.
        """
        environment = os.environ.copy()
        if library := os.environ.get("HOLDFAST_LIBRARY"):
            environment["LD_LIBRARY_PATH"] = str(Path(library).parent)
        done = subprocess.run(
            self.command,
            input="\n".join(lines) + "\n",
            capture_output=True,
            text=True,
            timeout=patience(240),
            env=environment,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        printed = []
        for line in done.stdout.splitlines():
            word, _, rest = line.partition(" ")
            printed.append((word, json.loads(rest) if rest.startswith("{") else rest))
        return printed


@pytest.fixture
def shell(tmp_path: Path, backend: LocalSupabase) -> Shell:
    return Shell(tmp_path, backend)


def replies(printed: list[tuple[str, Any]]) -> list[tuple[str, Any]]:
    """All but what the library gave by itself."""
    return [(word, rest) for word, rest in printed if word not in {"screen", "sync", "notice"}]


SYNCED = f"wait sync {patience(120):.0f}"
HOME = f"wait home {patience(120):.0f}"
SIGN_IN = ['sign_in_complete {"email":"solo@example.org","password":"holdfast-demo"}', HOME]


def item(minutes: int, **more: str) -> str:
    """The command that queues a visit."""
    payload = {"type": "samtale", "minutes": minutes, **more}
    request = {"kind": "activity", "payload": payload, "occurred_at_ms": 1760000000000}
    return f"queue_add {json.dumps(request)}"


def test_sign_in_register_and_upload(shell: Shell, backend: LocalSupabase) -> None:
    """ORG-6, OFF-4: the library selects a single membership; a registered item arrives."""
    note = "Skallet: én time på kjøkkenet"
    printed = shell.run(*SIGN_IN, item(60, note=note), SYNCED, "session_status")
    assert printed[0][1]["screen"]["screen"] == "sign_in"
    assert ("came", "sync") in printed
    assert printed[-1][1]["state"] == "active"
    [ended] = [rest for word, rest in printed if word == "sync" and rest["message"]]
    assert (ended["sent"], ended["parked"], ended["left"]) == (1, 0, 0)
    rows = backend.control.sql("select count(*) from activities where note = %s", note)
    assert rows == [{"count": 1}]
    # A restart needs no sign-in
    assert shell.run()[0][1]["screen"]["screen"] == "home"


def test_many_items_arrive_once_though_answers_are_lost(
    shell: Shell, backend: LocalSupabase
) -> None:
    """QUE-2 over a real network stack: two answers are lost after the server committed."""
    backend.control.drop_after("/rest/v1/activities", method="POST", times=2)
    items = (item(n + 1, note="mange") for n in range(200))
    printed = shell.run(*SIGN_IN, *items, SYNCED)
    backend.control.clear_faults()
    assert printed[-1] == ("came", "sync")
    rows = backend.control.sql(
        "select count(*), count(distinct minutes) as n from activities where note = 'mange'"
    )
    assert rows == [{"count": 200, "n": 200}]


def test_each_unlock_needs_a_finger(shell: Shell) -> None:
    """SES-10: the key is released once for each finger, and without one the session stays locked."""
    shell.run(*SIGN_IN, "session_lock")
    attempts = [
        ["session_unlock"],
        ["finger failed", "session_unlock"],
        ["finger", "session_unlock"],
    ]
    attempts += [["session_lock", "session_unlock"]]
    lines = [line for attempt in attempts for line in [*attempt, "session_status"]]
    printed = replies(shell.run(*lines))
    states = [rest["state"] for _, rest in printed if "state" in rest]
    assert states == ["locked", "locked", "active", "locked"]


def test_shell_rejects_invalid_commands(shell: Shell) -> None:
    printed = replies(
        shell.run(
            "nonsense",
            "queue_add nonsense",
            'queue_add {"knid":"x"}',
            "finger nonsense",
            "wait sync 1",
            "",
            "# a remark",
        )
    )
    words = [word for word, _ in printed]
    assert words == ["OK", "INVALID", "INVALID", "INVALID", "error", "late"]
