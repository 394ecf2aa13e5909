"""A fixed sample of the mutants, each with the test that noticed it: a part of `make nightly`.

    python -m mutants.sample          builds the sample and runs it
    python -m mutants.sample --draw   draws it anew from the last whole run

The whole run asks every test that reaches a mutant. The sample asks the one that noticed it then,
wherever it stands now, and after a change of its name the whole suite of it.
"""

from __future__ import annotations

import argparse
import dataclasses
import hashlib
import os
import re
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from .coverage import Coverage, Reach
from .faults import Fault, all_faults, drawn
from .host import Host, suites
from .judge import KILLED
from .paths import ROOT, SAMPLE, WORK
from .report import Results
from .switch import Switch
from .tree import Tree
from .units import Units

SIZE = 60
#: More are listed, for the places that an edit removes.
LISTED = 90
PATIENCE = float(os.environ.get("HOLDFAST_PATIENCE", "1"))
#: A test of the sample takes less than a second; an endless loop of a mutant does not.
LIMIT_S = 60 * PATIENCE
#: Without a mutant only a hang takes longer.
HEALTHY_S = 1800 * PATIENCE


@dataclass(frozen=True)
class Entry:
    """A mutant of the sample, and the test that notices it."""

    key: str
    change: str
    test: str

    @property
    def is_host(self) -> bool:
        """Whether the test is one of the C API."""
        return self.test.startswith("Tests/")

    @property
    def suite(self) -> str:
        """The suite of the test."""
        return self.test.split("::")[0] if self.is_host else self.test.rsplit("/", 1)[0] + "/"


def read() -> list[Entry]:
    """The listed mutants, from lines `key | before → after | test`."""
    entries = []
    for line in SAMPLE.read_text("utf-8").splitlines():
        if line and not line.startswith("#"):
            key, rest = line.split(" | ", 1)
            change, test = rest.rsplit(" | ", 1)
            entries.append(Entry(key, change, test))
    return entries


def present(entries: Sequence[Entry], faults: Sequence[Fault]) -> list[tuple[Entry, Fault]]:
    """The first entries whose places are still in the sources, and their tests or suites, too."""
    by_key = {(fault.key, fault.change): fault for fault in faults}
    texts = {suite: (ROOT / suite).read_text("utf-8") for suite in suites()}
    found = [
        (located, by_key[entry.key, entry.change])
        for entry in entries
        if (entry.key, entry.change) in by_key and (located := where(entry, texts)) is not None
    ]
    return found[:SIZE]


def where(entry: Entry, texts: Mapping[str, str]) -> Entry | None:
    """The entry with the suite in which its test of the C API stands now; `texts`: by suite.

    A test that has another name: its suite of then. None when that is gone, too.
    """
    if not entry.is_host:
        return entry
    test = entry.test.split("::", 1)[1]
    definition = f"def {test.split('[')[0]}("
    for suite in sorted(texts, key=lambda suite: (suite != entry.suite, suite)):
        if definition in texts[suite]:
            return dataclasses.replace(entry, test=f"{suite}::{test}")
    return entry if entry.suite in texts else None


# ---- the run ----


def run_units(tree: Tree, entries: dict[int, Entry]) -> list[str]:
    """Ask the unit tests; returns what is wrong."""
    if not entries:
        return []
    switch = Switch(tree.folder / "switch-units")
    units, problems = Units(tree.tests, switch), []
    names = {entry.test for entry in entries.values()}
    outcome = units.run(sorted(names), HEALTHY_S)
    if outcome.failed:
        return [f"{outcome.failed} fails without a mutant"]
    for number, entry in entries.items():
        switch.turn_on(number)
        asked = ((entry.test, LIMIT_S), (entry.suite, 3 * LIMIT_S))
        if not any(units.run([names], limit).failed for names, limit in asked):
            problems.append(f"{entry.key}: {entry.change}: not noticed by {entry.test}")
    return problems


def run_host(tree: Tree, entries: dict[int, Entry]) -> list[str]:
    """Ask the tests of the C API; returns what is wrong."""
    known = set(suites())
    files = sorted({entry.suite for entry in entries.values()} & known)
    if not files:
        return [f"{entry.test} is gone" for entry in entries.values()]
    switch = Switch(tree.folder / "switch-host")
    host, problems = Host(tree.folder, switch, "serve", files), []
    try:
        tests = sorted({entry.test for entry in entries.values()} & set(host.names))
        outcome = host.run(0, tests, [HEALTHY_S] * len(tests))
        if outcome.failed:
            return [f"{outcome.failed} fails without a mutant"]
        for number, entry in entries.items():
            same = [name for name in host.names if name.startswith(entry.suite + "::")]
            asked = [entry.test] if entry.test in host.names else []
            for names in (asked, same):
                if names and host.run(number, names, [LIMIT_S] * len(names)).failed:
                    break
            else:
                problems.append(f"{entry.key}: {entry.change}: not noticed by {entry.test}")
    finally:
        host.close()
    return problems


def run() -> int:
    """Build the sample and ask for each mutant; returns the status."""
    chosen = present(read(), all_faults())
    if len(chosen) < SIZE:
        print(f"only {len(chosen)} of the listed mutants are in the sources: `make mutants-sample`")
        print(f"{len(chosen)} passed, {SIZE - len(chosen)} failed")
        return 1
    tree = Tree(ROOT / "build/mutants-sample")
    kept = tree.make(dict(enumerate((fault for _, fault in chosen), start=1)))
    entries = {n: entry for n, (entry, _) in enumerate(chosen, start=1) if n in kept}
    parts = (
        (run_units, {n: entry for n, entry in entries.items() if not entry.is_host}),
        (run_host, {n: entry for n, entry in entries.items() if entry.is_host}),
    )
    with ThreadPoolExecutor(2) as pool:
        found = pool.map(lambda part: part[0](tree, part[1]), parts)
        problems = [problem for part in found for problem in part]
    for problem in problems:
        print(problem)
    failed = len(problems) + SIZE - len(entries)
    print(f"{SIZE - failed} passed, {failed} failed")
    return 1 if failed else 0


# ---- the draw ----


def draw() -> None:
    """Write the sample: killed mutants of the last whole run, each with a fast test."""
    tree = Tree()
    kept = tree.compiled(dict(enumerate(drawn(all_faults()), start=1)))
    coverage, results = Coverage(tree, kept), Results(WORK / "results.jsonl")
    shown = shown_names()
    lines: list[str] = []
    for number in sorted(kept, key=lambda n: sampling(kept[n])):
        verdict = results.get(kept[number])
        if verdict is None or verdict.status != KILLED or len(lines) == LISTED:
            continue
        by = shown.get(verdict.by, verdict.by)
        test = fast_test(by, {**coverage.units(number), **coverage.host(number)})
        if test:
            lines.append(f"{kept[number].key} | {kept[number].change} | {test}")
    head = SAMPLE.read_text("utf-8").splitlines()[0]
    SAMPLE.write_text("\n".join([head, *lines, ""]), "utf-8")


def sampling(fault: Fault) -> bytes:
    """Where the fault stands in the draw."""
    return hashlib.sha256(f"sample {fault.key}".encode()).digest()


def shown_names() -> dict[str, str]:
    """The functions of the unit tests that have a text of their own, by that text."""
    pattern = re.compile(r'@Test\(\s*("(?:[^"\\]|\\.)*").*?\bfunc (\w+)', re.DOTALL)
    found: dict[str, str] = {}
    for path in sorted((ROOT / "Tests").glob("*Tests/*.swift")):
        found |= dict(pattern.findall(path.read_text("utf-8")))
    return found


def fast_test(by: str, reached: Reach) -> str:
    """The full name of the test, of which a run tells the last part, with or without the arguments;
    empty: it takes long, or the name is not clear."""
    name = by.split("(")[0] if not by.startswith("Tests/") else by
    found = [test for test in reached if test == by or test.split("/")[-1].split("(")[0] == name]
    return found[0] if len(found) == 1 and reached[found[0]][0] < 1 else ""


def main() -> int:
    """Run or draw."""
    parser = argparse.ArgumentParser(prog="mutants.sample")
    parser.add_argument("--draw", action="store_true")
    if parser.parse_args().draw:
        draw()
        return 0
    return run()


if __name__ == "__main__":
    sys.exit(main())
