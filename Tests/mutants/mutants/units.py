"""Runs the unit tests: the test program of the copied tree, without SwiftPM around it."""

from __future__ import annotations

import os
import re
import resource
import signal
import subprocess
import threading
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from .switch import VARIABLE, Switch

#: No test needs more; an endless loop of a mutant may.
MEMORY = 3 << 30
FAILURE = re.compile(r"^✘ Test (.+?) recorded an issue")
#: A process at its start, and what a mutant may add to the known time.
SPARE_S = 10.0
#: The status of swift-testing where no test has these names.
NO_TEST = 69


@dataclass(frozen=True)
class Outcome:
    """What became of a run."""

    #: Empty: every test passed. Else the test that failed, with "(crash)" or "(time)".
    failed: str
    seconds: float


class Units:
    """The unit tests of one built tree."""

    def __init__(self, program: Path, switch: Switch) -> None:
        """Use the program with this switch."""
        self.program = program
        self.switch = switch

    def names(self) -> list[str]:
        """Every test, such as "StoreTests.LeaseTableTests/aLeaseEnds()"."""
        done = subprocess.run(
            [*self._command(), "--list-tests"], check=True, capture_output=True, text=True
        )
        return [line for line in done.stdout.splitlines() if "/" in line or "(" in line]

    def cover(self, names: Iterable[str]) -> Iterator[tuple[str, Outcome, list[int]]]:
        """Run each test alone, without a mutant; what became of it, and what it reaches."""
        self.switch.turn_on(0)
        for name in names:
            self.switch.forget()
            outcome = self.run([name], limit_s=60)
            yield name, outcome, self.switch.reached()

    def run(self, names: Iterable[str], limit_s: float) -> Outcome:
        """Run these tests in one process, up to the first failure."""
        filters = [f"^{_pattern(name)}" for name in names]
        command = self._command()
        for one in filters:
            command += ["--filter", one]
        start = time.monotonic()
        process = subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
            errors="replace",
            env={**os.environ, VARIABLE: str(self.switch.path), "NO_COLOR": "1"},
            start_new_session=True,
            preexec_fn=limit_memory,
        )
        late = threading.Timer(limit_s, end_group, [process.pid])
        late.start()
        failed, last = "", ""
        assert process.stdout is not None
        for line in process.stdout:
            found = FAILURE.match(line)
            if found:
                failed = found[1]
                break
            if line.startswith("◇ Test ") and line.endswith(" started.\n"):
                last = line.removeprefix("◇ Test ").removesuffix(" started.\n")
        is_late = late.finished.is_set()
        late.cancel()
        if failed:
            end_group(process.pid)
        code = process.wait()
        process.stdout.close()
        if not failed and code not in (0, NO_TEST):
            failed = f"{last} ({'time' if is_late else 'crash'})"
        return Outcome(failed, time.monotonic() - start)

    def _command(self) -> list[str]:
        return [str(self.program), "--testing-library", "swift-testing", "--no-parallel"]


def test_of(failed: str) -> str:
    """The test of an outcome that names how it failed."""
    return failed.removesuffix(" (time)").removesuffix(" (crash)")


def limit_memory() -> None:
    """Run in the child: an allocation beyond the limit fails."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def end_group(process: int) -> None:
    """End a process that leads a group, and all that it has started."""
    try:
        os.killpg(process, signal.SIGKILL)
    except ProcessLookupError:
        return


def _pattern(name: str) -> str:
    return re.sub(r"([().\[\]*+?|^$\\])", r"\\\1", name)
