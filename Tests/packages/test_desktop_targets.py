"""The targets of the desktop app install what they need before they build it."""

from __future__ import annotations

import subprocess

import pytest

from consumers import ROOT


@pytest.mark.parametrize("target", ["desktop", "pictures"])
def test_a_target_of_the_desktop_app_installs_before_it_builds(target: str) -> None:
    # Given what the target would run after a change of a source
    changed = ["-W", "examples/desktop/src/main.c"]
    command = ["make", "-n", "--no-print-directory", *changed, target]
    told = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    lines = told.splitlines()
    [installs] = [at for at, line in enumerate(lines) if "libadwaita-1-dev" in line]
    [setup] = [at for at, line in enumerate(lines) if ".venv/tools" in line]
    builds = [at for at, line in enumerate(lines) if "holdfast-desktop" in line]
    # Then GTK's headers and the Python packages are there before the compiler runs
    assert installs < setup < min(builds), told
