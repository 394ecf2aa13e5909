"""The tour of the C example as a test: two kills, a lost answer; every item arrives once, no secret is readable."""

from __future__ import annotations

import os
import subprocess

import pytest
from patience import patience

from driver_stand import ROOT

TOUR = os.environ.get("HOLDFAST_TOUR", str(ROOT / "build" / "bin" / "holdfast-tour"))


@pytest.mark.slow  # `make test` runs the tour itself
@pytest.mark.skipif(not os.path.exists(TOUR), reason="build/bin/holdfast-tour is not built")
def test_tour() -> None:
    """RES-2, RES-3, KEEP-1, ORG-5, OFF-1, OFF-2, OFF-7, OFF-8, SES-10, QUE-1, QUE-2, in one story."""
    done = subprocess.run(
        [ROOT / "examples" / "c" / "demo.sh", TOUR],
        capture_output=True,
        text=True,
        timeout=patience(280),
        check=False,
    )
    crosses = [line for line in done.stdout.splitlines() if "✗" in line]
    assert (done.returncode, crosses) == (0, []), done.stdout + done.stderr
    assert done.stdout.count("✓") > 70
