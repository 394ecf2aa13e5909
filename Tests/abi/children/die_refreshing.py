"""Refreshes, and dies at a step of it: die_refreshing.py SPEC STEP N.

STEP: poll (at the n-th file change while the intent is stored), asked (before the request is
sent), sent (after the server has answered), complete (at the n-th file change while the answer is
stored), stored (right after that). LD_PRELOAD names the killer.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from typing import Any

from support.phone import Phone


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def main() -> None:
    spec, step, number = sys.argv[1], sys.argv[2], int(sys.argv[3])
    phone = Phone.from_spec(spec)
    app = phone.start()
    assert app.screen["screen"] == "home", app.screen
    killer = ctypes.CDLL(None)
    if step == "poll":
        killer.killer_arm(ctypes.c_long(number))
    requests = app.poll()["requests"]
    if step == "poll":
        killer.killer_disarm()
    assert [request["purpose"] for request in requests] == ["refresh"], requests
    if step == "asked":
        die()
    answer: Any = {"id": requests[0]["id"], **phone.network(requests[0])}
    assert answer["status"] == 200, answer
    if step == "sent":
        die()
    if step == "complete":
        killer.killer_arm(ctypes.c_long(number))
    app.complete(answer)
    killer.killer_disarm()
    if step == "stored":
        die()
    os._exit(0)


main()
