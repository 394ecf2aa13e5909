"""Mutation testing of Sources: `make mutants`. See Tests/mutants/README.md."""

from __future__ import annotations

import argparse
import hashlib
import queue
import signal
import sys
import threading
import time

from .coverage import Coverage
from .faults import Fault, all_faults, drawn
from .judge import Judge, Killers, Verdict
from .paths import WORK
from .report import Results, is_equivalent, living, read_marks, scores, stale_marks, table
from .tree import Tree

#: What has to be killed, in per cent of the mutants that are not equivalent.
WANTED = 95.0


def options() -> argparse.Namespace:
    """The arguments."""
    parser = argparse.ArgumentParser(prog="mutants", description=__doc__)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--resume", action="store_true", help="keep the verdicts of the last run")
    parser.add_argument(
        "--again-living", action="store_true", help="only those that lived; keeps other verdicts"
    )
    parser.add_argument(
        "--only", action="append", default=[], help="a number, a file, or file:line; repeatable"
    )
    parser.add_argument(
        "--budget", type=float, default=75, help="seconds of tests of the C API for a mutant"
    )
    parser.add_argument("--limit", type=int, help="stop after so many mutants")
    parser.add_argument("--list", action="store_true", help="list the faults and run nothing")
    return parser.parse_args()


def matches(number: int, fault: Fault, wanted: list[str]) -> bool:
    """Whether the fault is one of `--only`."""
    names = {str(number), fault.file, f"{fault.file}:{fault.line}"}
    return any(want.removeprefix("Sources/") in names for want in wanted)


def chosen(
    faults: dict[int, Fault], results: Results, coverage: Coverage, given: argparse.Namespace
) -> list[int]:
    """The mutants to run: those that no test reaches, then those of all modules mixed."""
    numbers = []
    for number, fault in faults.items():
        verdict = results.get(fault)
        if given.only:
            wanted = matches(number, fault, given.only)
        elif given.again_living:
            wanted = verdict is None or verdict.status != "killed"
        else:
            wanted = verdict is None
        if wanted:
            numbers.append(number)
    reached = coverage.reached()
    order = sorted(
        numbers, key=lambda n: (n in reached, hashlib.sha256(faults[n].key.encode()).digest())
    )
    return order[: given.limit]


class Run:
    """A run over several mutants."""

    def __init__(self, tree: Tree, faults: dict[int, Fault], results: Results) -> None:
        """Prepare; nothing runs yet."""
        self.tree = tree
        self.faults = faults
        self.results = results
        self.marks = read_marks()
        self.errors: list[BaseException] = []
        self._left: queue.SimpleQueue[int] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._done = 0

    def run(self, numbers: list[int], coverage: Coverage, given: argparse.Namespace) -> None:
        """Judge these mutants."""
        for number in numbers:
            self._left.put(number)
        killers = Killers()
        judges = [
            Judge(str(worker), self.tree, coverage, killers, given.budget)
            for worker in range(given.workers)
        ]
        threads = [
            threading.Thread(target=self._work, args=(judge, len(numbers))) for judge in judges
        ]
        for thread in threads:
            thread.start()
        try:
            for thread in threads:
                thread.join()
        except BaseException as error:
            # An interruption: each worker ends its mutant, and what it has started.
            self.errors.insert(0, error)
            for thread in threads:
                thread.join()
        if self.errors:
            raise self.errors[0]

    def _work(self, judge: Judge, total: int) -> None:
        try:
            while not self.errors:
                try:
                    number = self._left.get_nowait()
                except queue.Empty:
                    return
                self._note(number, judge.judge(number, self.faults[number]), total)
        except BaseException as error:
            self.errors.append(error)
        finally:
            judge.close()

    def _note(self, number: int, verdict: Verdict, total: int) -> None:
        fault = self.faults[number]
        self.results.add(fault, verdict)
        with self._lock:
            self._done += 1
            print(
                f"{self._done}/{total} {verdict.status:11} {verdict.seconds:5.1f} s"
                f"  {fault.file}:{fault.line} {fault.kind} ({number})  {verdict.by}",
                flush=True,
            )
            self.write_living()

    def write_living(self) -> None:
        """Keep the list of the living in a file."""
        lines = living(self.faults, self.results, self.marks)
        (self.tree.folder / "living.txt").write_text("\n".join([*lines, ""]), "utf-8")


def main() -> int:
    """Build, run and report; returns the status."""
    given = options()
    numbered = dict(enumerate(drawn(all_faults()), start=1))
    if given.list:
        for number, fault in numbered.items():
            print(f"{number:5} {fault.file}:{fault.line} {fault.kind}: {fault.change}")
        return 0
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    tree = Tree()
    began = time.monotonic()
    faults = tree.make(numbered)
    print(f"{len(faults)} mutants built in {time.monotonic() - began:.0f} s", flush=True)
    path = tree.folder / "results.jsonl"
    if not (given.resume or given.again_living or given.only):
        path.unlink(missing_ok=True)
    results = Results(path)
    began = time.monotonic()
    coverage = Coverage(tree, faults)
    coverage.measure(given.workers)
    print(f"coverage measured in {time.monotonic() - began:.0f} s", flush=True)
    for test in coverage.failing:
        print(f"fails without a mutant, not used: {test}")
    run = Run(tree, faults, results)
    run.run(chosen(faults, results, coverage, given), coverage, given)
    return conclude(run)


def conclude(run: Run) -> int:
    """Print the figures; 0 if enough mutants are killed and every mark is one of a fault."""
    run.write_living()
    lines = living(run.faults, run.results, run.marks)
    print("\n".join(lines))
    figures = scores(run.faults.values(), run.results, run.marks)
    print(table(figures))
    stale = stale_marks(run.faults.values(), run.marks)
    for key in stale:
        print(f"equivalent.txt: no such fault: {key}")
    for fault in run.faults.values():
        verdict = run.results.get(fault)
        if verdict and verdict.status == "killed" and is_equivalent(fault, run.marks):
            print(f"equivalent.txt: {verdict.by} notices it: {fault.key}")
    total = figures["all"]
    print(
        f"reliability: mutants: {total.mutants - total.equivalent} tried, {total.killed} killed"
        f" ({total.share:.1f} %)"
    )
    return 0 if total.share >= WANTED and not stale else 1


if __name__ == "__main__":
    WORK.mkdir(parents=True, exist_ok=True)
    sys.exit(main())
