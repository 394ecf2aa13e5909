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

SHELL = Path(os.environ.get("HOLDFAST_TOUR", ROOT / "build" / "bin" / "holdfast-tour"))

pytestmark = pytest.mark.skipif(not SHELL.exists(), reason="build/bin/holdfast-tour is not built")


@pytest.fixture(scope="module")
def backend() -> Iterator[LocalSupabase]:
    with LocalSupabase(demo=True) as started:
        yield started


class Shell:
    """A phone: a folder, and a new process for each start of the app."""

    def __init__(self, folder: Path, backend: LocalSupabase) -> None:
        self.command = [
            SHELL,
            "--shell",
            "--data",
            folder / "data",
            "--backend",
            backend.url,
            "--key",
            backend.anon_key,
        ]

    def run(self, *lines: str, returncode: int = 0) -> list[tuple[str, Any]]:
        """Run these commands; return each printed line as its first word and its rest (JSON or text)."""
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
        assert done.returncode == returncode, done.stderr
        printed = []
        for line in done.stdout.splitlines():
            word, _, rest = line.partition(" ")
            printed.append((word, json.loads(rest) if rest.startswith("{") else rest))
        return printed


@pytest.fixture
def shell(tmp_path: Path, backend: LocalSupabase) -> Shell:
    return Shell(tmp_path, backend)


def replies(printed: list[tuple[str, Any]]) -> list[tuple[str, Any]]:
    return [(word, rest) for word, rest in printed if word != "event"]


SYNCED = f"wait sync_completed {patience(120):.0f}"
DECIDED = f"wait decision {patience(120):.0f}"
SIGN_IN = [
    'sign_in_begin {"method":"bankid"}',
    "browse solo@example.org",
    DECIDED,
    "sync_now",
]


def test_sign_in_register_and_upload(shell: Shell, backend: LocalSupabase) -> None:
    """ORG-6, OFF-4: the library selects a single membership; a registered item arrives."""
    note = "Skallet: én time på kjøkkenet"
    payload = json.dumps(
        {
            "kind": "activity",
            "payload": {"type": "samtale", "minutes": 60, "note": note},
            "occurred_at_ms": 1760000000000,
        }
    )
    printed = shell.run(
        "session_resume",
        *SIGN_IN,
        f"queue_add {payload}",
        SYNCED,
        "session_status",
    )
    assert printed[0][1]["screen"] == "sign_in"
    assert ("came", "sync_completed") in printed
    assert printed[-1][1]["state"] == "active"
    [completed] = [e for w, e in printed if w == "event" and e["type"] == "sync_completed"]
    assert (completed["sent"], completed["parked"]) == (1, 0)
    rows = backend.control.sql("select count(*) from activities where note = %s", note)
    assert rows == [{"count": 1}]


def test_unacknowledged_events_are_delivered_again(shell: Shell) -> None:
    shell.run(
        "session_resume",
        *SIGN_IN,
        'queue_add {"kind":"activity","payload":{"type":"a","minutes":1},"occurred_at_ms":1760000000000}',
        SYNCED,
    )
    again = shell.run("session_resume", SYNCED)
    [completed] = [e for w, e in again if w == "event" and e["type"] == "sync_completed"]
    shell.run("session_resume", SYNCED, f"ack {completed['seq']}")
    quiet = shell.run("session_resume", "wait sync_completed 1")
    assert quiet[-1] == ("late", "sync_completed")


def test_many_items_arrive_once_though_answers_are_lost(
    shell: Shell, backend: LocalSupabase
) -> None:
    """QUE-2 over a real network stack: two answers are lost after the server committed."""
    item = (
        '{"kind":"activity","payload":{"type":"mange","minutes":%d},"occurred_at_ms":1760000000000}'
    )
    backend.control.drop_after("/rest/v1/activities", method="POST", times=2)
    printed = shell.run(
        "session_resume",
        *SIGN_IN,
        *(f"queue_add {item % (n + 1)}" for n in range(200)),
        SYNCED,
    )
    backend.control.clear_faults()
    assert printed[-1] == ("came", "sync_completed")
    rows = backend.control.sql(
        "select count(*), count(distinct minutes) as n from activities where type = 'mange'"
    )
    assert rows == [{"count": 200, "n": 200}]


def test_each_unlock_needs_a_finger(shell: Shell) -> None:
    """SES-10: a host that only claims success stays locked."""
    shell.run("session_resume", *SIGN_IN, "session_lock")
    claim = 'session_unlock {"outcome":"success"}'
    printed = replies(
        shell.run(
            "session_resume",
            claim,
            "session_status",
            "finger",
            claim,
            "session_status",
            "session_lock",
            claim,
            "session_status",
        )
    )
    states = [rest["state"] for _, rest in printed if "state" in rest]
    assert states == ["locked", "active", "locked"]


def test_shell_rejects_invalid_commands(shell: Shell) -> None:
    printed = replies(
        shell.run(
            "nonsense",
            "queue_add nonsense",
            'queue_add {"knid":"x"}',
            "wait decision 1",
            "",
            "# a remark",
            "browse somebody@example.org",
        )
    )
    assert [word for word, _ in printed] == ["error", "INVALID", "INVALID", "late", "error"]


def test_killed_shell_leaves_no_reader_behind(shell: Shell) -> None:
    shell.run("session_resume", "kill", returncode=-9)
    assert replies(shell.run("session_resume"))[0][1]["screen"] == "sign_in"
