"""Fixtures of the crash tests, and the count of kills."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from process_killer import ProcessKiller
from support.shared_fixtures import (
    backend,
    directory,
    flavour,
    killer,
    library,
    no_secret_is_readable,
    server,
)
from support.sizes import sized

# Fixtures shared with Tests/abi; `no_secret_is_readable` runs after every test.
__all__ = [
    "backend",
    "directory",
    "flavour",
    "killer",
    "library",
    "no_secret_is_readable",
    "server",
]

#: Another seed draws other scenarios.
SEED = int(os.environ.get("HOLDFAST_CRASH_SEED", "1"))
#: How many run with each flavour: thirteen kills each.
SCENARIOS = int(os.environ.get("HOLDFAST_CRASH_SCENARIOS", sized(4, 16)))


def pytest_report_header() -> str:
    return f"HOLDFAST_CRASH_SEED={SEED}"


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    kills: Counter[str] = Counter()
    survived = 0
    for outcome in ("passed", "failed"):
        for report in terminalreporter.stats.get(outcome, []):
            found = dict(report.user_properties).get("kills", [])
            kills.update(workload for workload, _ in found)
            survived += len(found) if outcome == "passed" else max(0, len(found) - 1)
    told = ", ".join(f"{workload} {count}" for workload, count in sorted(kills.items()))
    terminalreporter.write_line(f"HOLDFAST_CRASH_SEED={SEED}: {told}")
    terminalreporter.write_line(
        f"reliability: processes killed: {kills.total()} tried, {survived} survived"
    )


@pytest.fixture(scope="session")
def process_killer(killer: Path) -> Iterator[ProcessKiller]:
    """Runs and kills app processes."""
    made = ProcessKiller(killer)
    yield made
    made.close()
