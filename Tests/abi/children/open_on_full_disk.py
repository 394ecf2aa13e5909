"""Starts and starts again on a full disk, and logs out: SPEC KEYCHAIN STOCK FILLER."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

from support.filler import fill
from support.keychain import KeyChain
from support.phone import Phone


def main() -> None:
    phone = Phone.from_spec(sys.argv[1])
    shutil.copytree(sys.argv[3], phone.folder)
    phone.keychain = KeyChain(Path(sys.argv[2]))
    with Path(sys.argv[4]).open("wb", buffering=0) as filler:
        fill(filler)
        app = phone.start()
        app.settle()
        # The next start has the room that this one has used, although others take what is left
        for _ in range(3):
            app.session_lock()
            app.touch()
            app.settle()
            phone.close()
            fill(filler)
            app = phone.start()
            assert app.screen["screen"] == "home", app.screen
            app.settle()
        left = app.queue_list()["items"]
        shown = app.session_logout()["screen"]["screen"]
    phone.close()
    print(json.dumps([app.opened["recovered"], left, shown]))


main()
