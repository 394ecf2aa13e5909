"""What a run reports: verdicts, marks, scores. A mutant that no test touches lives."""

from __future__ import annotations

from pathlib import Path
from typing import cast

from mutants.coverage import Coverage, Reach, reaching
from mutants.faults import Fault
from mutants.judge import KILLED, LIVING, NOT_REACHED, Judge, Killers, Verdict
from mutants.report import Mark, Results, living, read_marks, scores, stale_marks, table
from mutants.tree import Tree


def fault(number: int, module: str = "Engine") -> Fault:
    """A fault of a file of its module."""
    return Fault(
        f"{module}/A.swift", "f", "compare", "choice", 0, 9, 3, "a | b < c", "a | b <= c", number
    )


class Untouched:
    """A map in which no test reaches anything."""

    def units(self, number: int) -> Reach:
        """No unit test."""
        return {}

    def host(self, number: int) -> Reach:
        """No test of the C API."""
        return {}


def test_a_mutant_that_no_test_touches_lives(tmp_path: Path) -> None:
    judge = Judge("a", Tree(tmp_path), cast(Coverage, Untouched()), Killers(), 1)
    verdict = judge.judge(1, fault(1))
    assert verdict.status == NOT_REACHED
    results = Results(tmp_path / "results.jsonl")
    results.add(fault(1), verdict)
    assert scores([fault(1)], results, {})["all"].living == 1
    (line,) = living({1: fault(1)}, results, {})
    assert "Sources/Engine/A.swift:3: compare (not reached, number 1)" in line
    assert "a | b < c → a | b <= c" in line


def test_scores_leave_out_what_is_marked(tmp_path: Path) -> None:
    results = Results(tmp_path / "results.jsonl")
    for number, status in enumerate((KILLED, KILLED, KILLED, LIVING, LIVING), start=1):
        results.add(fault(number), Verdict(status, "", 1))
    results.add(fault(6, "Store"), Verdict(KILLED, "", 1))
    marks = {fault(5).key: Mark(fault(5).key, fault(5).change, "a and b never are the same")}
    faults = [*(fault(number) for number in range(1, 6)), fault(6, "Store")]
    figures = scores(faults, results, marks)
    assert (figures["Engine"].killed, figures["Engine"].equivalent) == (3, 1)
    assert figures["Engine"].share == 75
    assert (figures["Store"].share, figures["all"].share) == (100, 80)
    assert "80.0%" in table(figures).splitlines()[-1]
    # The verdicts are kept for the next run.
    again = Results(tmp_path / "results.jsonl").get(fault(4))
    assert again is not None
    assert again.status == LIVING


def test_a_mark_is_of_one_change(tmp_path: Path) -> None:
    path = tmp_path / "equivalent.txt"
    one = fault(1)
    path.write_text(f"# comment\n\n{one.key} | {one.change} | no a equals a b\n")
    marks = read_marks(path)
    assert stale_marks([one], marks) == []
    other = Fault(**{**vars(one), "after": "a > b"})
    assert stale_marks([other], marks) == [one.key]


def test_the_last_killers_of_a_file_are_asked_first() -> None:
    killers = Killers()
    tests: Reach = {"slow": (3, [1]), "fast": (1, [1]), "middle": (2, [1])}
    assert killers.order(fault(1), tests) == ["fast", "middle", "slow"]
    killers.add(fault(1), "slow")
    assert killers.order(fault(2), tests) == ["slow", "fast", "middle"]
    assert killers.order(fault(3, "Store"), tests) == ["fast", "middle", "slow"]


def test_the_map_gives_the_tests_of_a_mutant() -> None:
    tests = {"one": [0.1, [1, 2]], "two": [0.2, [2]]}
    assert reaching(2, tests) == {"one": (0.1, [1, 2]), "two": (0.2, [2])}
    assert list(reaching(1, tests)) == ["one"]
    assert reaching(3, tests) == {}
