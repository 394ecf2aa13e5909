"""How long a test waits. HOLDFAST_PATIENCE multiplies every limit, for a machine under load.

A limit tells a hang, never a speed: choose it far above what a slow machine needs.
"""

from __future__ import annotations

import os
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
