"""A process in which the user is in: stays_in.py SPEC HOW [KEYCHAIN]. Prints "in" and waits for a
line. KEYCHAIN: the file of the keychain, if it is not beside the folder.

HOW: the first call that it makes then, before it prints "closed" if nobody gets in; "background":
it goes there first, and comes back; "come back": the same, and it prints the screen; "twice": it
looks, prints "looked" and waits again before it looks whether it is closed; "leaves": it goes to
the background, and prints "looked" when that asks the key store.
"""

from __future__ import annotations

import sys
from pathlib import Path

from support import history
from support.elsewhere import FIRST
from support.keychain import KeyChain
from support.phone import Phone


def main() -> None:
    phone, how = Phone.from_spec(sys.argv[1]), sys.argv[2]
    if len(sys.argv) > 3:
        phone.keychain = KeyChain(Path(sys.argv[3]))
    app = phone.start()
    assert app.screen["screen"] in {"home", "wait"}, app.screen
    if how in {"background", "come back"}:
        app.session_background()
    assert app.session_status()["state"] == "active"
    print("in", flush=True)
    sys.stdin.readline()
    if how == "twice":
        assert app.session_status()["state"] == "active"
        print("looked", flush=True)
        sys.stdin.readline()
    elif how == "leaves":
        told = [False]

        def tell(call: str, name: str) -> None:
            if (call, name) == ("load", "session") and not told[0]:
                told[0] = True
                print("looked", flush=True)

        phone.keychain.watch = tell
        app.session_background()
        sys.stdin.readline()
        assert app.session_foreground()["screen"] in {"unlock", "sign_in"}
    elif how in {"background", "come back"}:
        screen = app.session_foreground()["screen"]
        if how == "come back":
            print(screen, flush=True)
            return
    else:
        FIRST[how](app)
    history.assert_closed(app, phone)
    print("closed", flush=True)
    sys.stdin.read()


main()
