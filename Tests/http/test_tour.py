"""The app of examples/c in seven steps, and its question about a conflict. `make run-demo` is the tour."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

import pytest
from local_supabase.launcher import LocalSupabase
from patience import eventually, patience

from driver_stand import ROOT

VISITS = ROOT / "build" / "bin" / "visits"


@pytest.fixture(scope="module")
def backend() -> Iterator[LocalSupabase]:
    with LocalSupabase(demo=True) as started:
        yield started


@pytest.mark.skipif(not VISITS.exists(), reason="build/bin/visits is not built")
def test_the_app_in_seven_steps(backend: LocalSupabase, tmp_path: Path) -> None:
    before = visits(backend)
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
    # A home that is drawn again, with other banners, is no step
    steps = [screen for screen, _ in groupby(screen for screen in shown if screen != "wait")]
    assert steps == ["sign_in", "select_org", "home", "sign_in"], done.stdout
    assert shown.count("home") >= 2
    assert done.stdout.count("contact:") == 3
    listed = [line for line in done.stdout.splitlines() if line.startswith("visit: ")]
    assert sorted(listed[:2]) == ["visit: changing 60 min", "visit: deleting 20 min"]
    assert listed[2] == "visit: stored 60 min"
    added = visits(backend)[len(before) :]
    assert sorted(added) == [(20, True), (60, False)]
    wrong = subprocess.run(
        [*command[:1], tmp_path / "other", *command[2:], "mentor@example.org", "wrong"],
        capture_output=True,
        text=True,
        timeout=patience(60),
        check=False,
    )
    assert wrong.returncode == 1


@pytest.mark.skipif(not VISITS.exists(), reason="build/bin/visits is not built")
def test_the_app_asks_about_a_conflict(backend: LocalSupabase, tmp_path: Path) -> None:
    """COR-6: another device changes the visit while its change cannot be sent."""
    before = visits(backend)
    fault = backend.control.drop_before("/rest/v1/activities", method="PATCH", times=-1)
    command = [VISITS, tmp_path / "data", backend.url, backend.anon_key]
    with subprocess.Popen(
        [*command, "mentor@example.org", "holdfast-demo"], stdout=subprocess.PIPE, text=True
    ) as app:
        eventually(lambda: backend.control.faults()[0]["hits"] > 0, what="the change is tried")
        backend.control.sql(
            "update activities set minutes = 50 where minutes = 45 and type = 'visit'"
        )
        backend.control.clear_faults(fault)
        printed, _ = app.communicate(timeout=patience(120))
    assert app.returncode == 0, printed
    assert "conflict: others have changed minutes, too" in printed
    added = visits(backend)[len(before) :]
    assert sorted(added) == [(20, True), (60, False)]


def visits(backend: LocalSupabase) -> list[tuple[int, bool]]:
    """The minutes of each activity in the order of registration, and whether it is taken back."""
    asked = "select minutes, deleted_at is not null as gone from activities order by created_at"
    return [(row["minutes"], row["gone"]) for row in backend.control.sql(asked)]
