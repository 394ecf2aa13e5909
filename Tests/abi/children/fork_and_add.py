"""Forks with an open handle: both processes add items, and the parent closes first.

fork_and_add.py SPEC FOLDER   Prints the acknowledged ids. FOLDER is for notes between the two.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

from support.phone import Phone


def wait_for(note: Path) -> None:
    while not note.exists():
        time.sleep(0.005)


def main() -> None:
    phone, folder = Phone.from_spec(sys.argv[1]), Path(sys.argv[2])
    app = phone.start()
    assert app.screen["screen"] == "home", app.screen
    print(app.register(), flush=True)
    child = os.fork()
    if child == 0:
        phone.app = None
        own = phone.start()
        for _ in range(3):
            print(own.register(), flush=True)
        (folder / "added").touch()
        wait_for(folder / "closed")
        for _ in range(3):
            print(own.register(), flush=True)
        # It ends without closing, as a process does that is killed.
        os._exit(0)
    wait_for(folder / "added")
    app.close()
    # Another handle comes and goes, which is the last one as far as it knows.
    phone.app = None
    phone.start().close()
    (folder / "closed").touch()
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0


main()
