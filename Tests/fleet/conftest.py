"""Fixtures: the simulated fleet's figures from `build/fleet/`, which `make test-fleet` writes."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parents[2] / "build" / "fleet"
Figures = dict[str, dict[str, int]]


def read_figures() -> Figures:
    """Return the row of every scenario."""
    with (FOLDER / "summary.csv").open() as file:
        rows = list(csv.DictReader(file))
    return {
        row["scenario"]: {name: int(cell) for name, cell in row.items() if name != "scenario"}
        for row in rows
    }


@pytest.fixture(scope="session")
def figures() -> Figures:
    """The figures of all scenarios."""
    return read_figures()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the line for docs/reliability.md."""
    rows = read_figures()
    names = ("silent", "unavailable", "announced", "address")
    tried = sum(rows[name]["devices"] for name in names)
    lost = sum(rows[name]["signed_out"] + rows[name]["never_renewed"] for name in names)
    peak = max(rows[name]["after_peak"] / rows[name]["free"] for name in names[:3])
    terminalreporter.write_line(
        f"reliability: devices through an outage: {tried:,} tried, {tried - lost:,} survived"
    )
    terminalreporter.write_line(
        f"fleet: peak {peak:.2f} x the free capacity;"
        f" fixed 5 s: {rows['fixed']['after_peak'] / rows['silent']['free']:.1f} x;"
        f" fewer cores: {rows['fewer']['after_peak'] / rows['fewer']['free']:.1f} x"
    )
