"""The targets of the desktop app install what they need before they build it."""

from __future__ import annotations

import subprocess

import pytest

from consumers import ROOT


def told(*arguments: str) -> list[str]:
    """The commands that make would run."""
    command = ["make", "-n", "--no-print-directory", *arguments]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


@pytest.mark.parametrize("target", ["desktop", "pictures"])
def test_a_target_of_the_desktop_app_installs_before_it_builds(target: str) -> None:
    # Given a machine without GTK's headers
    # When somebody runs the target
    lines = told(target)
    # Then what the app needs is installed before the compiler runs
    [installs] = [at for at, line in enumerate(lines) if "setup-tools PARTS=desktop" in line]
    builds = [at for at, line in enumerate(lines) if "holdfast-desktop" in line]
    assert installs < min(builds), lines
    assert any("libadwaita-1-dev" in line for line in told("setup-tools", "PARTS=desktop"))
