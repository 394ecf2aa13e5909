"""The hosts of examples/c: the tour (two kills, a lost answer; every item arrives once, no secret is readable), and
the app in six steps."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from local_supabase.launcher import LocalSupabase
from patience import patience

from driver_stand import ROOT

SHELL = ROOT / "build" / "bin" / "holdfast-shell"
VISITS = ROOT / "build" / "bin" / "visits"


@pytest.fixture(scope="module")
def backend() -> Iterator[LocalSupabase]:
    with LocalSupabase(demo=True) as started:
        yield started


@pytest.mark.slow  # `make test` runs the tour itself
@pytest.mark.skipif(not SHELL.exists(), reason="build/bin/holdfast-shell is not built")
def test_tour() -> None:
    """RES-2, RES-3, KEEP-1, ORG-5, OFF-1, OFF-2, OFF-7, OFF-8, SES-10, QUE-1, QUE-2, in one story."""
    done = subprocess.run(
        [ROOT / "examples" / "c" / "demo.sh", SHELL],
        capture_output=True,
        text=True,
        timeout=patience(280),
        check=False,
    )
    crosses = [line for line in done.stdout.splitlines() if "✗" in line]
    assert (done.returncode, crosses) == (0, []), done.stdout + done.stderr
    assert done.stdout.count("✓") > 70


@pytest.mark.skipif(not VISITS.exists(), reason="build/bin/visits is not built")
def test_the_app_in_six_steps(backend: LocalSupabase, tmp_path: Path) -> None:
    before = backend.control.sql("select count(*) as n from activities")[0]["n"]
    command = [VISITS, tmp_path / "data", backend.url, backend.anon_key]
    done = subprocess.run(
        [*command, "mentor@example.org", "holdfast-demo"],
        capture_output=True,
        text=True,
        timeout=patience(60),
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    shown = [line.split()[1] for line in done.stdout.splitlines() if line.startswith("screen:")]
    assert [screen for screen in shown if screen != "wait"] == [
        "sign_in", "select_org", "home", "home", "sign_in"
    ], done.stdout  # fmt: skip
    assert done.stdout.count("contact:") == 3
    assert backend.control.sql("select count(*) as n from activities")[0]["n"] == before + 1
    wrong = subprocess.run(
        [*command[:1], tmp_path / "other", *command[2:], "mentor@example.org", "wrong"],
        capture_output=True,
        text=True,
        timeout=patience(60),
        check=False,
    )
    assert wrong.returncode == 1
