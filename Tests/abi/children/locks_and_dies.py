"""A process that is killed while it locks: locks_and_dies.py SPEC HOW.

Prints "erasing" before the key store erases the session's key, waits for a line, and prints
"erased" right after that; then the test kills it. HOW "with a child": a forked child keeps its
files open.
"""

from __future__ import annotations

import os
import select
import signal
import sys

from support.phone import Phone


def main() -> None:
    phone, how = Phone.from_spec(sys.argv[1]), sys.argv[2]
    app = phone.start()
    assert app.screen["screen"] in {"home", "wait"}, app.screen
    if how == "with a child" and os.fork() == 0:
        ends = select.poll()
        ends.register(sys.stdin, 0)
        ends.poll()
        os._exit(0)
    erase = phone.keychain.erase

    def stop_after(name: str) -> None:
        if name != "session":
            return erase(name)
        print("erasing", flush=True)
        sys.stdin.readline()
        erase(name)
        print("erased", flush=True)
        while True:
            signal.pause()

    phone.keychain.erase = stop_after  # type: ignore[method-assign]
    app.session_lock()


main()
