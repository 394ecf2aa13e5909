"""Replays the recorded exchanges with real PostgREST against this server."""

from __future__ import annotations

import pathlib
import re
import subprocess
import sys
from collections.abc import Iterator

import pytest
from local_supabase import LocalSupabase
from patience import patience

HERE = pathlib.Path(__file__).resolve().parent
FOLDER = HERE / "conformance" / "postgrest"
EXCHANGES = 319
MOST_SKIPS = 40


def skips() -> dict[str, str]:
    """Return the titles to leave out, and the reason for each."""
    found: dict[str, str] = {}
    title = ""
    for line in (HERE / "conformance_skips.txt").read_text("utf-8").splitlines():
        if line.startswith("#") or not line.strip():
            continue
        if line[0].isspace():
            found[title] = f"{found[title]} {line.strip()}".strip()
        else:
            title = line
            found[title] = ""
    return found


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


def test_every_skip_has_a_reason_and_there_are_few() -> None:
    named = skips()
    assert len(named) <= MOST_SKIPS
    assert all(named.values()), "each skipped exchange needs a reason"


def test_replay_agrees(recorded: LocalSupabase, tmp_path: pathlib.Path) -> None:
    plain = tmp_path / "titles"
    plain.write_text("\n".join(skips()), "utf-8")
    done = replay(recorded.rest_url, "--skip", str(plain))
    counts = re.search(r"(\d+) passed, (\d+) failed, (\d+) skipped", done.stdout)
    assert done.returncode == 0, done.stdout + done.stderr
    assert counts is not None
    assert [int(n) for n in counts.groups()] == [EXCHANGES - len(skips()), 0, len(skips())]


def test_replay_can_fail(recorded: LocalSupabase) -> None:
    """Given tokens signed with an unknown secret, then the replay reports failures."""
    done = replay(
        recorded.rest_url, "--section", "6.", "--secret", "another secret, long enough to be one"
    )
    assert done.returncode == 1
