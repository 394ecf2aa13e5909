"""Results, the marks of equivalent mutants, and what a run prints."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from .faults import Fault
from .judge import KILLED, Verdict
from .paths import EQUIVALENT


@dataclass(frozen=True)
class Mark:
    """A mutant that behaves as the original, and why."""

    key: str
    change: str
    reason: str


def read_marks(path: Path = EQUIVALENT) -> dict[str, Mark]:
    """The marks, by key. A line is `key | before → after | reason`; `#` starts a comment."""
    marks = {}
    for line in path.read_text("utf-8").splitlines():
        if not line or line.startswith("#"):
            continue
        key, rest = line.split(" | ", 1)
        change, reason = rest.rsplit(" | ", 1)
        marks[key] = Mark(key, change, reason)
    return marks


def is_equivalent(fault: Fault, marks: Mapping[str, Mark]) -> bool:
    """Whether the fault is marked; a mark of another change of the same key does not count."""
    mark = marks.get(fault.key)
    return mark is not None and mark.change == fault.change


def stale_marks(faults: Iterable[Fault], marks: Mapping[str, Mark]) -> list[str]:
    """Marks of which there is no such fault."""
    found = {fault.key: fault.change for fault in faults}
    return [key for key, mark in marks.items() if found.get(key) != mark.change]


class Results:
    """The verdicts, a line each, written as they come."""

    def __init__(self, path: Path) -> None:
        """Read what is known."""
        self._path = path
        self._lock = threading.Lock()
        self._known: dict[tuple[str, str], Verdict] = {}
        if path.exists():
            for line in path.read_text("utf-8").splitlines():
                entry = json.loads(line)
                verdict = Verdict(entry["status"], entry["by"], entry["seconds"])
                self._known[entry["key"], entry["change"]] = verdict

    def get(self, fault: Fault) -> Verdict | None:
        """The verdict on the fault."""
        return self._known.get((fault.key, fault.change))

    def add(self, fault: Fault, verdict: Verdict) -> None:
        """Keep the verdict."""
        entry = {
            "key": fault.key,
            "change": fault.change,
            "status": verdict.status,
            "by": verdict.by,
            "seconds": round(verdict.seconds, 2),
        }
        with self._lock:
            self._known[fault.key, fault.change] = verdict
            with self._path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(entry, ensure_ascii=False) + "\n")


@dataclass
class Score:
    """The figures of a module."""

    mutants: int = 0
    killed: int = 0
    equivalent: int = 0
    living: int = 0

    @property
    def share(self) -> float:
        """Killed of those that are not equivalent, in per cent."""
        return 100 * self.killed / max(self.killed + self.living, 1)


def scores(
    faults: Iterable[Fault], results: Results, marks: Mapping[str, Mark]
) -> dict[str, Score]:
    """By module, and "all" at the end; mutants without a verdict are left out."""
    by_module: dict[str, Score] = {}
    total = Score()
    for fault in faults:
        verdict = results.get(fault)
        if verdict is None:
            continue
        for score in (by_module.setdefault(fault.module, Score()), total):
            score.mutants += 1
            if verdict.status == KILLED:
                score.killed += 1
            elif is_equivalent(fault, marks):
                score.equivalent += 1
            else:
                score.living += 1
    return {**dict(sorted(by_module.items())), "all": total}


def table(figures: Mapping[str, Score]) -> str:
    """The figures as text."""
    lines = [f"{'module':10}{'mutants':>9}{'killed':>9}{'equivalent':>12}{'living':>8}{'score':>9}"]
    for name, score in figures.items():
        lines.append(
            f"{name:10}{score.mutants:>9}{score.killed:>9}{score.equivalent:>12}"
            f"{score.living:>8}{score.share:>8.1f}%"
        )
    return "\n".join(lines)


def living(faults: Mapping[int, Fault], results: Results, marks: Mapping[str, Mark]) -> list[str]:
    """A line for each mutant that no test noticed, and that is not marked."""
    lines = []
    for number, fault in faults.items():
        verdict = results.get(fault)
        if verdict is None or verdict.status == KILLED or is_equivalent(fault, marks):
            continue
        lines.append(
            f"Sources/{fault.file}:{fault.line}: {fault.kind} ({verdict.status}, number {number})\n"
            f"    {fault.change}\n    {fault.key}"
        )
    return lines
