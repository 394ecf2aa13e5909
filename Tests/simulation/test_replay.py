"""A seed replays exactly: in another process, after other seeds, and on the other build."""

from __future__ import annotations

import os

import pytest

from conftest import Simulate

SEEDS = ["--first", "3", "--seeds", "12"]


@pytest.fixture(scope="module")
def together(environment: dict[str, str]) -> list[dict[str, object]]:
    """The results of the seeds, one after the other in one process."""
    return Simulate(environment).seeds(*SEEDS)


def test_a_seed_gives_the_same_run_in_every_process(
    simulate: Simulate, together: list[dict[str, object]]
) -> None:
    alone = simulate.seeds("--first", "9", "--seeds", "1")
    assert together[6] == alone[0]
    assert len({str(one["digest"]) for one in together}) == len(together)
    assert simulate.seeds(*SEEDS) == together


@pytest.mark.skipif("HOLDFAST_FLAVOUR" in os.environ, reason="HOLDFAST_FLAVOUR chose one build")
def test_ABI_6_both_builds_take_every_decision_alike(
    simulate: Simulate, together: list[dict[str, object]]
) -> None:
    assert simulate.seeds(*SEEDS, "--flavour", "runtime") == together


def test_a_single_seed_shows_its_trace(simulate: Simulate) -> None:
    alone = simulate.seeds("--first", "9", "--seeds", "1")
    whole = simulate("--seed", "9")
    assert whole.returncode == 0
    assert "session_resume" in whole.stdout
    digest = whole.stdout.splitlines()[-1]
    assert digest == f"digest {alone[0]['digest']}"
    few = simulate("--seed", "9", "--keep", "0,1")
    assert few.stdout.count("\n-- ") + few.stdout.startswith("-- ") == 2
