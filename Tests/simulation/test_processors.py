"""A seed gives the same run on another processor: the library for arm64 in an emulated Python."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest
from patience import patience

from conftest import Simulate
from simulation import machine

ROOT = Path(__file__).resolve().parents[2]
#: Starts Python of arm64 under an emulator; the folder holds a compiler for it, named `cc`.
EMULATED = ROOT / ".build" / "arm64-root" / "usr" / "bin" / "python-emulated"
EMULATED_TOOLS = ROOT / ".build" / "arm64"

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not (EMULATED.exists() and (ROOT / "build" / "lib-arm64" / "libholdfast.so").exists()),
        reason="no library for arm64: `make test-arm64` builds it and runs this test",
    ),
]


def test_ABI_6_both_processors_take_every_decision_alike(
    simulate: Simulate, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seeds = ["--first", "3", "--seeds", "8"]
    here = simulate.seeds(*seeds)
    monkeypatch.setenv("PATH", f"{EMULATED_TOOLS}:{os.environ['PATH']}")
    done = subprocess.run(
        [EMULATED, "-m", "simulation", *seeds, "--flavour", "arm64", "--json"],
        env=machine.environment(machine.build(tmp_path)),
        capture_output=True,
        text=True,
        timeout=patience(900),
        check=False,
    )
    assert done.returncode == 0, done.stderr[-20_000:]
    assert [json.loads(line) for line in done.stdout.splitlines()] == here
