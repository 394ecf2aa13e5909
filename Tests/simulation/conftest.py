"""Fixtures that run seeds in processes of their own, with machine.c preloaded."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from patience import patience

from simulation import machine

#: A process with its seeds that takes longer hangs.
HANG_S = 900


@pytest.fixture(scope="session")
def environment(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The environment of a simulating process."""
    return machine.environment(machine.build(tmp_path_factory.mktemp("machine")))


class Simulate:
    """Runs `python -m simulation`."""

    def __init__(self, environment: dict[str, str]) -> None:
        self.environment = environment

    def __call__(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run it to the end."""
        command = [sys.executable, "-m", "simulation", *arguments]
        return subprocess.run(
            command, env=self.environment, capture_output=True, text=True, timeout=patience(HANG_S)
        )

    def seeds(self, *arguments: str) -> list[dict[str, object]]:
        """Return the result of each seed; fail the test with the shrunk trace if one fails."""
        done = self(*arguments, "--json")
        assert done.returncode == 0, done.stderr[-20_000:]
        return lines(done)


def lines(done: subprocess.CompletedProcess[str]) -> list[dict[str, object]]:
    """The results that a process with `--json` has printed."""
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.fixture
def simulate(environment: dict[str, str]) -> Simulate:
    """Runs seeds in a process of its own."""
    return Simulate(environment)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the figure for docs/reliability.md."""
    reports = [
        (kind, int(dict(report.user_properties)["seeds"]))
        for kind in ("passed", "failed")
        for report in terminalreporter.stats.get(kind, [])
        if "seeds" in dict(report.user_properties)
    ]
    tried = sum(seeds for _, seeds in reports)
    survived = sum(seeds for kind, seeds in reports if kind == "passed")
    if tried:
        terminalreporter.write_line(
            f"reliability: simulated worlds: {tried} tried, {survived} survived"
        )
