"""Another process that ends the session: end_session.py SPEC OPERATION KEYCHAIN.

Lets the user in, calls the operation and prints "ended". It lives until its input ends, because
its end would be noticed, too.
"""

from __future__ import annotations

import sys
from pathlib import Path

from support.keychain import KeyChain
from support.phone import Phone


def main() -> None:
    phone, operation = Phone.from_spec(sys.argv[1]), sys.argv[2]
    phone.keychain = KeyChain(Path(sys.argv[3]))
    app = phone.start()
    assert app.screen["screen"] in {"home", "wait", "unlock"}, app.screen
    getattr(app, operation)()
    print("ended", flush=True)
    sys.stdin.read()


main()
