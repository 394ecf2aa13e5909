"""A process in which the user is in: stays_in.py SPEC FIRST. Prints "in" and waits for a line.

FIRST: the first call that it makes then, before it prints "closed" if nobody gets in.
"""

from __future__ import annotations

import sys

from support import history
from support.elsewhere import FIRST
from support.phone import Phone


def main() -> None:
    phone, first = Phone.from_spec(sys.argv[1]), sys.argv[2]
    app = phone.start()
    assert app.screen["screen"] in {"home", "wait"}, app.screen
    assert app.session_status()["state"] == "active"
    print("in", flush=True)
    sys.stdin.readline()
    FIRST[first](app)
    history.assert_closed(app, phone)
    print("closed", flush=True)
    sys.stdin.read()


main()
