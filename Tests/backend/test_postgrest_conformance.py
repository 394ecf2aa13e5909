"""Replays the recorded exchanges with real PostgREST against this server."""

from __future__ import annotations

import pathlib
import subprocess
import sys
from collections.abc import Iterator

import pytest
from local_supabase import LocalSupabase
from patience import patience

HERE = pathlib.Path(__file__).resolve().parent
FOLDER = HERE / "conformance" / "postgrest"
EXCHANGES = 319


@pytest.fixture(scope="module")
def recorded() -> Iterator[LocalSupabase]:
    """A server on the database of the recordings."""
    with LocalSupabase(
        schema=FOLDER / "schema.sql",
        with_auth=False,
        require_apikey=False,
        max_rows=0,
        jwt_secret="local-test-secret-local-test-secret-0123456789",
    ) as running:
        yield running


def replay(url: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the replay and return its output."""
    return subprocess.run(
        [sys.executable, str(FOLDER / "replay"), url, *arguments],
        capture_output=True,
        text=True,
        timeout=patience(240),
    )


def test_replay_agrees(recorded: LocalSupabase) -> None:
    done = replay(recorded.rest_url)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{EXCHANGES} passed, 0 failed, 0 skipped" in done.stdout


def test_replay_can_fail(recorded: LocalSupabase) -> None:
    """Given tokens signed with an unknown secret, then the replay reports failures."""
    done = replay(
        recorded.rest_url, "--section", "6.", "--secret", "another secret, long enough to be one"
    )
    assert done.returncode == 1
