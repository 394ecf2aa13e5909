"""Runs the tests of the C API on the library with the mutants, in a pytest of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, Any

from .paths import HERE, ROOT
from .switch import VARIABLE, Switch
from .units import Outcome, end_group

#: What a mutant cannot change (exports, the optimised flavours), or what takes long.
LEFT_OUT = ("test_exports.py", "test_flavours.py", "test_fuzz.py", "test_flips.py")


def suites() -> list[str]:
    """The files of tests, below the root."""
    return [
        str(path.relative_to(ROOT))
        for path in sorted((ROOT / "Tests/abi").glob("test_*.py"))
        if path.name not in LEFT_OUT
    ]


class Host:
    """A pytest that has collected Tests/abi, and waits for jobs."""

    def __init__(self, folder: Path, switch: Switch, mode: str, only: Sequence[str] = ()) -> None:
        """Start it on the library below `build/<folder>`; `only`: files or tests."""
        self._answers, writing = os.pipe()
        reading, self._jobs = os.pipe()
        tests = only or suites()
        environment = {
            **os.environ,
            VARIABLE: str(switch.path),
            "HOLDFAST_FLAVOUR": "runtime",
            "HOLDFAST_SANITIZER": folder.name,
            "HOLDFAST_MUTANTS_MODE": mode,
            "HOLDFAST_MUTANTS_PIPE": f"{reading} {writing}",
            "PYTHONPATH": os.pathsep.join([str(HERE), os.environ.get("PYTHONPATH", "")]),
        }
        folder.mkdir(parents=True, exist_ok=True)
        self._log = (folder / f"{switch.path.stem}.log").open("w")
        self._process = subprocess.Popen(
            [
                *(sys.executable, "-m", "pytest", "-q", "-p", "mutants.host_plugin"),
                *("-p", "no:cacheprovider", "--no-header", "-o", "tmp_path_retention_policy=none"),
                *("--basetemp", str(folder / f"{switch.path.stem}.tmp"), *tests),
            ],
            cwd=ROOT,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=self._log,
            stderr=subprocess.STDOUT,
            pass_fds=(reading, writing),
            start_new_session=True,
        )
        os.close(reading)
        os.close(writing)
        self._in: IO[str] = os.fdopen(self._answers)
        self._out: IO[str] = os.fdopen(self._jobs, "w")
        self._names: list[str] | None = None

    @property
    def names(self) -> list[str]:
        """The tests that were collected; pytest's first line in the mode "serve"."""
        if self._names is None:
            self._names = self._answer()["tests"]
        return self._names

    def results(self) -> Iterator[dict[str, Any]]:
        """The lines of a run with coverage."""
        for line in self._in:
            yield json.loads(line)

    def run(self, number: int, tests: Sequence[str], limits: Sequence[float]) -> Outcome:
        """Run the tests with this mutant on, up to the first failure."""
        _ = self.names
        job = {"number": number, "tests": list(tests), "limits": list(limits)}
        self._out.write(json.dumps(job) + "\n")
        self._out.flush()
        answer = self._answer()
        return Outcome(answer["failed"], answer["seconds"])

    def _answer(self) -> dict[str, Any]:
        line = self._in.readline()
        if not line:
            raise RuntimeError(f"pytest has ended: see {self._log.name}")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def close(self) -> None:
        """End pytest and its backend."""
        self._out.close()
        self._in.close()
        try:
            self._process.wait(60)
        except subprocess.TimeoutExpired:
            end_group(self._process.pid)
            self._process.wait()
        self._log.close()
