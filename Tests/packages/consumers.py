"""Runs programs that a test has built or installed."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from pathlib import Path

from patience import patience

ROOT = Path(__file__).resolve().parents[2]


def install(destination: Path, prefix: str, *variables: str) -> None:
    """Run `make install` on the present build, without building."""
    command = ["make", "-s", "-o", "lib", "install", f"DESTDIR={destination}", f"PREFIX={prefix}"]
    subprocess.run([*command, *variables], cwd=ROOT, check=True)


def run(
    *command: str | Path,
    folder: Path | None = None,
    environment: Mapping[str, str] | None = None,
    given: str | None = None,
) -> str:
    """Run a command without the tests' environment; return its output. It must succeed."""
    done = subprocess.run(
        [str(word) for word in command],
        cwd=folder,
        env={"PATH": "/usr/bin:/bin", "HOME": str(folder or "/nowhere")} | dict(environment or {}),
        input=given,
        capture_output=True,
        text=True,
        timeout=patience(240),
        check=False,
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout
