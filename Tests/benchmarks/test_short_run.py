"""Every benchmark, in a short run. `make bench-short`, a part of `make test-all`."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

FOLDER = Path(__file__).parent
#: In the order of their run: each prints how long it took.
PARTS = re.findall(
    r"^            self\.([a-z_]+),$", (FOLDER / "bench.py").read_text(), re.MULTILINE
)


def test_FIX_31_every_benchmark_runs_and_none_fails_on_a_time() -> None:
    """On a machine that is busy, too: no figure ends a run. See `page.py` for what a miss does."""
    done = subprocess.run(
        [sys.executable, "-B", FOLDER / "bench.py"],
        env={**os.environ, "QUICK": "1"}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    assert len(PARTS) >= 10
    assert re.findall(r"^  \(([a-z_]+): \d+ s\)$", done.stdout, re.MULTILINE) == PARTS
