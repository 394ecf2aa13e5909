"""Which tests reach which mutants, and how long each test takes."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from .faults import Fault
from .host import Host, suites
from .paths import ROOT, SOURCES
from .switch import Switch
from .tree import Tree
from .units import Units

#: A test's seconds and what it reaches, by its name.
Reach = dict[str, tuple[float, list[int]]]


class Coverage:
    """The map, kept in a file. A suite is run again only after a change of it or of the sources."""

    def __init__(self, tree: Tree, faults: Mapping[int, Fault]) -> None:
        """Use the map in the tree's folder if it is of these faults."""
        self._tree = tree
        self._path = tree.folder / "coverage.json"
        keys = "\n".join(f"{number} {fault.key}" for number, fault in faults.items())
        self._digest = digest(sorted(SOURCES.rglob("*.swift")), keys)
        known = json.loads(self._path.read_text()) if self._path.exists() else {}
        if known.get("digest") != self._digest:
            known = {"digest": self._digest, "units": {}, "host": {}}
        self._known: dict[str, Any] = known
        self.failing: list[str] = []

    def measure(self, workers: int) -> None:
        """Run what has changed since the map was made."""
        self._measure_units(workers)
        changed = [suite for suite in suites() if not self._is_known(suite)]
        shares = [changed[worker::workers] for worker in range(workers)]
        with ThreadPoolExecutor(workers) as pool:
            list(pool.map(self._measure_host, range(workers), shares))
        current = set(suites())
        self._known["host"] = {s: v for s, v in self._known["host"].items() if s in current}
        self._save()

    def reached(self) -> set[int]:
        """The mutants that any test reaches."""
        suites = [self._known["units"], *self._known["host"].values()]
        return {
            number for suite in suites for test in suite["tests"].values() for number in test[1]
        }

    def units(self, number: int) -> Reach:
        """The unit tests that reach the mutant."""
        return reaching(number, self._known["units"]["tests"])

    def host(self, number: int) -> Reach:
        """The tests of the C API that reach the mutant."""
        found: Reach = {}
        for suite in self._known["host"].values():
            found |= reaching(number, suite["tests"])
        return found

    def _measure_units(self, workers: int) -> None:
        current = digest([self._tree.tests], "")
        if self._known["units"].get("digest") == current:
            return
        names = Units(self._tree.tests, Switch(self._tree.folder / "switch-cover")).names()
        tests: dict[str, Any] = {}

        def cover(worker: int) -> None:
            switch = Switch(self._tree.folder / f"switch-cover-{worker}")
            for name, outcome, reached in Units(self._tree.tests, switch).cover(
                names[worker::workers]
            ):
                if outcome.failed:
                    self.failing.append(f"{name}: {outcome.failed}")
                else:
                    tests[name] = (outcome.seconds, reached)

        with ThreadPoolExecutor(workers) as pool:
            list(pool.map(cover, range(workers)))
        self._known["units"] = {"digest": current, "tests": tests}
        self._save()

    def _measure_host(self, worker: int, files: Sequence[str]) -> None:
        if not files:
            return
        switch = Switch(self._tree.folder / f"switch-cover-{worker}")
        host = Host(self._tree.folder, switch, "cover", files)
        found: dict[str, dict[str, Any]] = {file: {} for file in files}
        try:
            for line in host.results():
                if "failed" in line:
                    self.failing.append(line["failed"])
                else:
                    file = line["test"].split("::")[0]
                    found[file][line["test"]] = (line["seconds"], line["reached"])
        finally:
            host.close()
        for file, tests in found.items():
            self._known["host"][file] = {"digest": digest([ROOT / file], ""), "tests": tests}

    def _is_known(self, suite: str) -> bool:
        known = self._known["host"].get(suite)
        return known is not None and known["digest"] == digest([ROOT / suite], "")

    def _save(self) -> None:
        self._path.write_text(json.dumps(self._known))


def reaching(number: int, tests: Mapping[str, Sequence[Any]]) -> Reach:
    """Those of the tests that reach the mutant."""
    return {name: (test[0], test[1]) for name, test in tests.items() if number in test[1]}


def digest(files: Iterable[Path], text: str) -> str:
    """A digest of the contents."""
    result = hashlib.sha256(text.encode())
    for path in files:
        result.update(path.read_bytes())
    return result.hexdigest()
