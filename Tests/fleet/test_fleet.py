"""100,000 devices during an outage of an hour, and 300 devices behind one address."""

from __future__ import annotations

import pytest

from conftest import FOLDER, Figures
from plot import FIGURE, draw

OUTAGES = ["silent", "unavailable", "announced"]


@pytest.mark.parametrize("outage", OUTAGES)
def test_the_peak_stays_under_twice_the_free_capacity(figures: Figures, outage: str) -> None:
    row = figures[outage]
    assert row["devices"] == 100_000
    assert row["after_peak"] < 2 * row["free"]
    assert row["before_peak"] < row["free"], "devices also back off while the server is down"


@pytest.mark.parametrize("outage", [*OUTAGES, "address"])
def test_nobody_is_signed_out_and_everything_drains(figures: Figures, outage: str) -> None:
    row = figures[outage]
    assert row["signed_out"] == 0
    assert row["never_renewed"] == 0
    assert row["left"] == 0
    assert 0 < row["done_s"] <= 900


def test_a_retry_every_five_seconds_overloads_the_backend(figures: Figures) -> None:
    fixed, ours = figures["fixed"], figures["unavailable"]
    assert fixed["after_peak"] > 5 * ours["free"]
    assert fixed["before_peak"] > 5 * ours["free"]
    assert fixed["after_requests"] > 2 * ours["after_requests"]


def test_fewer_cores_are_overloaded_and_still_everybody_is_served(figures: Figures) -> None:
    """Why docs/scale.md asks for more than four cores."""
    row = figures["fewer"]
    assert row["after_peak"] > 2 * row["free"]
    assert row["signed_out"] == row["never_renewed"] == row["left"] == 0
    assert figures["unavailable"]["done_s"] < row["done_s"] <= 1_800


def test_the_ordinary_load_leaves_most_of_the_capacity(figures: Figures) -> None:
    row = figures["ordinary"]
    assert 200 < row["after_peak"] < row["free"] / 4


def test_behind_one_address_few_are_refused(figures: Figures) -> None:
    ours, fixed = figures["address"], figures["address_fixed"]
    # GoTrue admits 30 at once and then one every two seconds: 300 devices need at least 540 s.
    assert 540 <= ours["done_s"] <= 2 * 540
    assert ours["after_refused"] * 3 < fixed["after_refused"]


def test_the_figure_in_the_documentation_is_current() -> None:
    assert FIGURE.read_text() == draw(FOLDER), (
        "write it anew: python3 Tests/fleet/plot.py build/fleet"
    )
