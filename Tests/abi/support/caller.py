"""Another process on the folder of a phone, which a test stops in the middle of a call."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from patience import patience, until_process_asleep

from . import children
from .phone import Phone


class Caller:
    """A process that makes one call after another (children/caller.py)."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        self._expect("ready")

    def _line(self) -> str:
        assert self._process.stdout
        return self._process.stdout.readline().strip()

    def _expect(self, wanted: str) -> None:
        found = self._line()
        assert found == wanted, found

    def begin(self, operation: str, request: dict[str, Any] | None = None) -> None:
        """Begin a call that has to wait for a lock, and stop the process there."""
        assert self._process.stdin
        self._process.stdin.write(json.dumps([operation, request or {}]) + "\n")
        self._process.stdin.flush()
        self._expect("calling")
        self._stop()

    def go_on_until_it_waits(self) -> None:
        """Let the call go on until it has loaded the device key and waits again."""
        os.kill(self._process.pid, signal.SIGCONT)
        self._expect("device")
        self._stop()

    def _stop(self) -> None:
        until_process_asleep(self._process.pid)
        os.kill(self._process.pid, signal.SIGSTOP)

    def end(self) -> str | None:
        """Let the call go on to its end; returns the code of its error."""
        os.kill(self._process.pid, signal.SIGCONT)
        while (line := self._line()) == "device":
            pass
        [_, code] = json.loads(line)
        return None if code is None else str(code)


@contextmanager
def caller(phone: Phone, patient: dict[str, str]) -> Iterator[Caller]:
    """Another process at home on the phone's folder, offline."""
    with subprocess.Popen(
        children.command("caller.py", phone.spec()),
        env=children.environment(patient),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            yield Caller(process)
            assert process.stdin
            process.stdin.close()
            assert process.wait(patience(60)) == 0
        finally:
            process.kill()
