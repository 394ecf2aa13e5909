"""Registers activities offline, prints their ids, and dies right after the last call returns.

register_and_die.py SPEC COUNT
"""

from __future__ import annotations

import os
import signal
import sys

from support.phone import Phone


def main() -> None:
    phone = Phone.from_spec(sys.argv[1])
    app = phone.start(online=False)
    assert app.screen["screen"] == "home", app.screen
    for number in range(int(sys.argv[2])):
        print(app.register(minutes=10 + number), flush=True)
    os.kill(os.getpid(), signal.SIGKILL)


main()
