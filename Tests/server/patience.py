"""How long a test waits. HOLDFAST_PATIENCE multiplies every limit, for a machine under load.

A limit tells a hang, never a speed: choose it far above what a slow machine needs.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable

FACTOR = float(os.environ.get("HOLDFAST_PATIENCE", "1"))


def patience(seconds: float) -> float:
    """The limit `seconds`, grown for this machine."""
    return seconds * FACTOR


def eventually(condition: Callable[[], object], within_s: float = 60, what: str = "") -> None:
    """Wait until `condition` holds; fail after `within_s` seconds of patience."""
    deadline = time.monotonic() + patience(within_s)
    while not condition():
        assert time.monotonic() < deadline, f"not within {patience(within_s):g} s: {what}"
        time.sleep(0.01)


def until_asleep(thread: threading.Thread, within_s: float = 60) -> None:
    """Wait until a thread of this process sleeps in the kernel: it waits in the call under test."""
    eventually(_sleeper("self", thread.native_id), within_s, f"{thread.name} is asleep")


def until_process_asleep(process: int, within_s: float = 60) -> None:
    """Wait until the first thread of another process sleeps in the kernel."""
    eventually(_sleeper(process, process), within_s, f"process {process} is asleep")


def _sleeper(process: int | str, thread: int | None) -> Callable[[], bool]:
    """Tells whether a thread sleeps: two looks find it asleep, and it was not awake between them."""
    path = f"/proc/{process}/task/{thread}/status"
    seen = [""]

    def sleeps() -> bool:
        with open(path, encoding="utf-8") as status:
            lines = status.read().splitlines()
        now = "".join(line for line in lines if line.startswith(("State", "voluntary")))
        before, seen[0] = seen[0], now
        return now == before and "sleeping" in now

    return sleeps
