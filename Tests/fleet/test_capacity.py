"""The simulation's server has the capacity that `make bench-server` recorded."""

from __future__ import annotations

import copy
import csv
import json
from pathlib import Path

import pytest

import capacity
from capacity import CONNECTIONS, CORES, FEWER, Recording, costs, simulate
from conftest import FOLDER, Figures

FLEET = Path(__file__).resolve().parents[2] / ".build-runtime" / "release" / "fleet"


@pytest.fixture
def recorded() -> Recording:
    read: Recording = json.loads(capacity.RECORDED.read_text())
    return read


def changed(recorded: Recording, request: str, factor: float) -> Recording:
    """The recording with another rate of a request."""
    other = copy.deepcopy(recorded)
    other["clients"][request][CONNECTIONS]["per_second"] *= factor
    return other


def test_the_parts_agree_with_the_measured_mixture(recorded: Recording) -> None:
    _, _, upload, item, contacts, summary = costs(recorded)
    mean = (upload + 5 * item + 2 * contacts + summary) / 4
    assert mean == pytest.approx(capacity.core_us(recorded, "the fleet's ordinary load"), rel=0.25)


def test_a_changed_recording_changes_the_simulation(recorded: Recording, tmp_path: Path) -> None:
    rows: dict[str, dict[str, dict[str, str]]] = {}
    for name, factor in (("measured", 1.0), ("slower", 0.5)):
        simulate(FLEET, tmp_path / name, changed(recorded, "summary", factor), 1_000)
        with (tmp_path / name / "summary.csv").open() as file:
            rows[name] = {row["scenario"]: row for row in csv.DictReader(file)}
    measured, slower = rows["measured"], rows["slower"]
    assert int(slower["ordinary"]["after_peak"]) > int(measured["ordinary"]["after_peak"])
    assert int(slower["silent"]["free"]) < int(measured["silent"]["free"])
    assert int(slower["silent"]["after_peak"]) > int(measured["silent"]["after_peak"])


def test_the_figures_are_of_the_current_recording(figures: Figures) -> None:
    ordinary = figures["ordinary"]
    assert ordinary["free"] == CORES * 1_000_000
    assert figures["silent"]["free"] == ordinary["free"] - ordinary["after_peak"]
    assert figures["fewer"]["free"] == FEWER * 1_000_000 - ordinary["after_peak"]
    assert json.loads((FOLDER / "costs.json").read_text()) == costs(
        json.loads(capacity.RECORDED.read_text())
    )
