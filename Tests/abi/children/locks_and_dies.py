"""A process that is killed while it locks: locks_and_dies.py SPEC.

Prints "erasing" before the key store erases the session's key, waits for a line, and prints
"erased" right after that; the test kills it at one of both.
"""

from __future__ import annotations

import sys

from support.phone import Phone


def main() -> None:
    phone = Phone.from_spec(sys.argv[1])
    app = phone.start()
    assert app.screen["screen"] in {"home", "wait"}, app.screen
    erase = phone.keychain.erase

    def stop_after(name: str) -> None:
        if name == "session":
            print("erasing", flush=True)
            sys.stdin.readline()
        erase(name)
        if name == "session":
            print("erased", flush=True)
            sys.stdin.read()

    phone.keychain.erase = stop_after  # type: ignore[method-assign]
    app.session_lock()


main()
