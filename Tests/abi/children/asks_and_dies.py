"""A process that is killed after so many notices: asks_and_dies.py SPEC COUNT.

Prints the item of each notice as it comes.
"""

import os
import signal
import sys

from support.phone import Phone


def main() -> None:
    phone, left = Phone.from_spec(sys.argv[1]), int(sys.argv[2])
    app = phone.start(online=False)
    while left:
        thing = app.next(0)
        assert "wake_in_ms" not in thing
        if "notice" in thing:
            print(thing["notice"]["id"], flush=True)
            left -= 1
    os.kill(os.getpid(), signal.SIGKILL)


main()
