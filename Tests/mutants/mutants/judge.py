"""Runs the tests that reach a mutant until one of them notices it."""

from __future__ import annotations

import threading
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from .coverage import Coverage, Reach
from .faults import Fault
from .host import Host
from .switch import Switch
from .tree import Tree
from .units import SPARE_S, Units, test_of

#: The unit tests of a first run; most mutants are noticed by one of them.
FIRST_UNITS = 60

KILLED, LIVING, NOT_REACHED = "killed", "living", "not reached"


@dataclass(frozen=True)
class Verdict:
    """Whether a test noticed the mutant, and which."""

    status: str
    by: str
    seconds: float


class Killers:
    """The tests that noticed mutants of a file: the first to try with the next one of it."""

    def __init__(self) -> None:
        """Start without any."""
        self._tests: dict[str, list[str]] = defaultdict(list)
        self._lock = threading.Lock()

    def add(self, fault: Fault, test: str) -> None:
        """Note that the test noticed the fault."""
        with self._lock:
            known = self._tests[fault.file]
            if test in known:
                known.remove(test)
            known.insert(0, test)

    def order(self, fault: Fault, tests: Reach) -> list[str]:
        """The last ones that killed first; then a case of each function, the fastest first; then
        the next case of each."""
        with self._lock:
            recent = [test for test in self._tests[fault.file][:8] if test in tests]
        cases: Counter[str] = Counter()
        rounds = {}
        for test in sorted(tests, key=lambda test: tests[test][0]):
            function = test.split("[")[0]
            cases[function] += 1
            rounds[test] = cases[function]
        rest = sorted(tests, key=lambda test: (rounds[test], tests[test][0]))
        return recent + [test for test in rest if test not in recent]


class Judge:
    """A worker: its own switch, and its own process with the C API's tests."""

    def __init__(
        self, name: str, tree: Tree, coverage: Coverage, killers: Killers, budget_s: float
    ) -> None:
        """Start nothing yet. `budget_s`: of tests of the C API, by their known times."""
        self._budget_s = budget_s
        self._tree = tree
        self._coverage = coverage
        self._killers = killers
        self._switch = Switch(tree.folder / f"switch-{name}")
        self._units = Units(tree.tests, self._switch)
        self._host: Host | None = None

    def judge(self, number: int, fault: Fault) -> Verdict:
        """Try the unit tests that reach the mutant, then the tests of the C API."""
        units, host = self._coverage.units(number), self._coverage.host(number)
        if not units and not host:
            return Verdict(NOT_REACHED, "", 0)
        spent = 0.0
        order = self._killers.order(fault, units)
        for names in (order[:FIRST_UNITS], order[FIRST_UNITS:]):
            by, seconds = self._try_units(number, names, units)
            spent += seconds
            if by:
                return Verdict(KILLED, by, spent)
        by, seconds = self._try_host(number, self._affordable(fault, host), host)
        spent += seconds
        if by:
            self._killers.add(fault, test_of(by))
        return Verdict(KILLED if by else LIVING, by, spent)

    def close(self) -> None:
        """End what runs."""
        if self._host is not None:
            self._host.close()
            self._host = None

    def _try_units(self, number: int, names: Sequence[str], known: Reach) -> tuple[str, float]:
        if not names:
            return "", 0
        limit = SPARE_S + 5 * sum(known[name][0] for name in names)
        self._switch.turn_on(number)
        outcome = self._units.run(names, limit)
        self._switch.turn_on(0)
        return outcome.failed, outcome.seconds

    def _affordable(self, fault: Fault, tests: Reach) -> list[str]:
        chosen, left = [], self._budget_s
        for name in self._killers.order(fault, tests):
            if tests[name][0] <= left:
                left -= tests[name][0]
                chosen.append(name)
        return chosen

    def _try_host(self, number: int, names: list[str], known: Reach) -> tuple[str, float]:
        """A failure counts if it is repeated, and the test passes with the mutant off."""
        spent = 0.0
        while names:
            host = self._running()
            limits = [SPARE_S + 6 * known[name][0] for name in names]
            outcome = host.run(number, names, limits)
            spent += outcome.seconds
            if not outcome.failed:
                break
            test = test_of(outcome.failed)
            limit = [SPARE_S + 6 * known[test][0]]
            if host.run(0, [test], limit).failed:
                # Something is wrong with the backend, or with the test: start anew without it.
                self.close()
            elif outcome.failed != test or host.run(number, [test], limit).failed:
                return outcome.failed, spent
            names = [name for name in names if name != test]
        return "", spent

    def _running(self) -> Host:
        if self._host is None:
            self._host = Host(self._tree.folder, self._switch, "serve")
        return self._host
