"""A seed replays exactly: in another process, after other seeds, and on the other build."""

from __future__ import annotations

from conftest import Simulate

SEEDS = ["--first", "3", "--seeds", "12"]


def test_a_seed_gives_the_same_run_in_every_process(simulate: Simulate) -> None:
    together = simulate.seeds(*SEEDS)
    alone = simulate.seeds("--first", "9", "--seeds", "1")
    assert together[6] == alone[0]
    assert len({str(one["digest"]) for one in together}) == len(together)
    assert simulate.seeds(*SEEDS) == together


def test_ABI_6_both_builds_take_every_decision_alike(simulate: Simulate) -> None:
    runtime = simulate.seeds(*SEEDS, "--flavour", "runtime")
    assert simulate.seeds(*SEEDS, "--flavour", "embedded") == runtime


def test_a_single_seed_shows_its_trace(simulate: Simulate) -> None:
    whole = simulate("--seed", "9")
    assert whole.returncode == 0
    assert "session_resume" in whole.stdout
    digest = whole.stdout.splitlines()[-1]
    assert digest == f"digest {simulate.seeds('--first', '9', '--seeds', '1')[0]['digest']}"
    few = simulate("--seed", "9", "--keep", "0,1")
    assert few.stdout.count("\n-- ") + few.stdout.startswith("-- ") == 2
