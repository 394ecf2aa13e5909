"""Runs workloads in child processes and kills them at a chosen moment."""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from patience import patience

from support import children
from support.phone import Phone

HERE = Path(__file__).resolve().parent
#: A process that takes longer hangs.
HANG_S = 120


@dataclass(frozen=True)
class KillPoint:
    """When to kill: a time after "begin", or before the n-th change of a file."""

    after_s: float = 0
    changes: int = 0

    def __str__(self) -> str:
        return f"change {self.changes}" if self.changes else f"{self.after_s * 1000:.2f} ms"


@dataclass
class Outcome:
    """The reports of a process, and whether it was killed."""

    killed: bool
    reports: list[tuple[str, Any]] = field(default_factory=list)


class ProcessKiller:
    """Starts processes through fork_server.py and kills them."""

    def __init__(self, killer: Path) -> None:
        ours, theirs = socket.socketpair()
        environment = children.environment({"LD_PRELOAD": str(killer)})
        environment["PYTHONPATH"] += os.pathsep + str(HERE)
        command = [sys.executable, "-X", "faulthandler", str(HERE / "fork_server.py")]
        self._line = ours
        with theirs:
            self._process = subprocess.Popen(
                [*command, str(theirs.fileno())], pass_fds=[theirs.fileno()], env=environment
            )
        self._unread = b""

    def close(self) -> None:
        """End the fork server."""
        self._line.close()
        self._process.wait(patience(HANG_S))

    def run(
        self, phone: Phone, workload: str, seed: int, kill_point: KillPoint, secrets: Path
    ) -> Outcome:
        """Run one process; kill it at `kill_point` unless it ends earlier."""
        order = {
            "phone": phone.spec(),
            "workload": workload,
            "seed": seed,
            "changes": kill_point.changes,
            "secrets": str(secrets),
        }
        self._line.sendall(json.dumps(order).encode("ascii") + b"\n")
        outcome = Outcome(killed=False)
        give_up = time.monotonic() + patience(HANG_S)
        kill_at: float | None = None
        while True:
            now = time.monotonic()
            if kill_at is not None and now >= kill_at:
                self._line.sendall(b"kill\n")
                kill_at = None
            assert now < give_up, f"{workload} hangs: {outcome.reports[-3:]}"
            line = self._read_line((kill_at or give_up) - now)
            if line is None:
                continue
            what, value = json.loads(line)
            if what == "ended":
                failure = [text for said, text in outcome.reports if said == "failed"]
                assert not failure, f"{workload} failed\n{failure[0]}"
                assert value in {0, -signal.SIGKILL}, f"{workload} crashed with {value}"
                outcome.killed = value != 0
                return outcome
            if what == "begin" and not kill_point.changes:
                kill_at = time.monotonic() + kill_point.after_s
            outcome.reports.append((what, value))

    def _read_line(self, timeout_s: float) -> bytes | None:
        """The next line; None if none arrives in time."""
        while b"\n" not in self._unread:
            if not select.select([self._line], [], [], max(0, timeout_s))[0]:
                return None
            more = self._line.recv(1 << 16)
            assert more, "the fork server has ended"
            self._unread += more
            timeout_s = 0
        line, _, self._unread = self._unread.partition(b"\n")
        return line
