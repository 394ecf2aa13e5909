"""A pytest plugin: runs the tests of the C API for the runner, one process per mutant.

The process of pytest collects the tests, starts the backend and loads the library once. Then, as
HOLDFAST_MUTANTS_MODE says:

cover    runs each test and writes a line for it: {"test", "seconds", "reached"}
serve    writes a line {"tests"}; then reads lines {"number", "tests", "limits"} and forks for each:
         the child runs these tests with that mutant on, up to the first failure; writes a line
         {"failed", "seconds"}

Lines are read from and written to the descriptors that HOLDFAST_MUTANTS_PIPE names.
"""

from __future__ import annotations

import json
import os
import select
import shutil
import time
from pathlib import Path
from typing import IO, Any

import pytest
from _pytest.runner import runtestprotocol

from .switch import VARIABLE, Switch
from .units import end_group, limit_memory

#: Session fixtures of Tests/abi that are ready before the first fork.
READY = ("server", "library", "killer", "host_program")
#: No test takes as long.
COVER_LIMIT_S = 120.0


def pytest_runtestloop(session: pytest.Session) -> bool:
    """Take the place of pytest's own loop."""
    reading, writing = (int(number) for number in os.environ["HOLDFAST_MUTANTS_PIPE"].split())
    switch = Switch(Path(os.environ[VARIABLE]))
    with os.fdopen(reading) as jobs, os.fdopen(writing, "w") as answers:
        warm_up(session)
        if os.environ["HOLDFAST_MUTANTS_MODE"] == "cover":
            cover(session, switch, answers)
        else:
            serve(session, switch, jobs, answers)
    return True


def warm_up(session: pytest.Session) -> None:
    """Set up the fixtures of the session, as a test that does nothing."""

    def ready(server: object, library: object, killer: object, host_program: object) -> None:
        """Use every fixture of READY."""

    module = session.items[0].getparent(pytest.Module)
    item = pytest.Function.from_parent(module, name="ready", callobj=ready, **_variant(session))
    reports = runtestprotocol(item, log=False, nextitem=session.items[0])
    for report in reports:
        if not report.passed:
            raise pytest.UsageError(f"the fixtures are not ready: {report.longreprtext}")


def _variant(session: pytest.Session) -> dict[str, Any]:
    """The parameters of a test that only uses the library."""
    for item in session.items:
        call = getattr(item, "callspec", None)
        if call is not None and set(call.params) == {"flavour"}:
            return {"callspec": call}
    raise pytest.UsageError("no test uses the library alone")


def run_one(item: pytest.Item, items: list[pytest.Item]) -> list[pytest.TestReport]:
    """Run a test, and tear down what is its own.

    Without a next test, pytest would end the fixtures of the session, too. What is left of the one
    before may be of another module.
    """
    item.session._setupstate.teardown_exact(item)
    other = next(one for one in items if one is not item)
    return runtestprotocol(item, log=False, nextitem=other)


def cover(session: pytest.Session, switch: Switch, answers: IO[str]) -> None:
    """Run every test once, each in a process where no constant has its value yet."""
    for item in session.items:
        switch.forget()
        start = time.monotonic()
        failed = run_in_child([item], [COVER_LIMIT_S])
        seconds = time.monotonic() - start
        result = {"test": item.nodeid, "seconds": seconds, "reached": switch.reached()}
        _write(answers, result | ({"failed": failed} if failed else {}))


def serve(session: pytest.Session, switch: Switch, jobs: IO[str], answers: IO[str]) -> None:
    """Run the tests of each job, in a child of its own."""
    items = {item.nodeid: item for item in session.items}
    base = Path(str(session.config._tmp_path_factory.getbasetemp()))  # type: ignore[attr-defined]
    kept = set(base.iterdir())
    _write(answers, {"tests": list(items)})
    for line in jobs:
        job = json.loads(line)
        start = time.monotonic()
        switch.turn_on(job["number"])
        failed = run_in_child([items[name] for name in job["tests"]], job["limits"])
        switch.turn_on(0)
        for path in set(base.iterdir()) - kept:
            shutil.rmtree(path, ignore_errors=True)
        _write(answers, {"failed": failed, "seconds": time.monotonic() - start})


def run_in_child(items: list[pytest.Item], limits: list[float]) -> str:
    """Run the tests in a child; returns the test that failed, or nothing."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        os.setsid()
        limit_memory()
        _run(items, writing)
    os.close(writing)
    try:
        return _watch(reading, items, limits)
    finally:
        os.close(reading)
        end_group(child)
        os.waitpid(child, 0)


def _run(items: list[pytest.Item], writing: int) -> None:
    """Report a byte after each test: whether it passed. Never returns."""
    try:
        for item in items:
            reports = run_one(item, item.session.items)
            passed = all(report.passed or report.skipped for report in reports)
            os.write(writing, b"." if passed else b"F")
            if not passed:
                break
    finally:
        os._exit(0)


def _watch(reading: int, items: list[pytest.Item], limits: list[float]) -> str:
    for item, limit in zip(items, limits, strict=True):
        ready, _, _ = select.select([reading], [], [], limit)
        if not ready:
            return f"{item.nodeid} (time)"
        answer = os.read(reading, 1)
        if answer != b".":
            return item.nodeid if answer else f"{item.nodeid} (crash)"
    return ""


def _write(answers: IO[str], value: dict[str, Any]) -> None:
    answers.write(json.dumps(value) + "\n")
    answers.flush()
