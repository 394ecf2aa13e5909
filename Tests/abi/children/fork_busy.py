"""Forks while other threads are inside calls: fork_busy.py SPEC COUNT."""

from __future__ import annotations

import os
import sys
import threading
import time

from support.children import PATIENCE
from support.phone import Phone

FORKED = 10
HANG_S = 30


def main() -> None:
    phone, count = Phone.from_spec(sys.argv[1]), int(sys.argv[2])
    app = phone.start()
    library, handle = phone.library, app._handle
    library.set_log(3, None)
    stopping = threading.Event()

    def work(number: int) -> None:
        while not stopping.is_set():
            # A refusal writes to the log, so this also takes the log's lock.
            library.call("session_status", handle, b"{}" if number % 2 else b'{"x":1}')
            library.call("session_status", 8, b"{}")

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    try:
        for turn in range(count):
            child = os.fork()
            if child == 0:
                status, _ = library.call("session_status", handle, b"{}")
                garbage, _ = library.call("session_status", 8, b"{}")
                library.close(handle)
                os._exit(0 if (status, garbage) == (FORKED, 9) else 1)
            give_up = time.monotonic() + HANG_S * PATIENCE
            while (ended := os.waitpid(child, os.WNOHANG)) == (0, 0):
                if time.monotonic() > give_up:
                    os.kill(child, 9)
                    os.waitpid(child, 0)
                    raise AssertionError(f"the child of turn {turn} hangs")
                time.sleep(0.001)
            assert os.waitstatus_to_exitcode(ended[1]) == 0, turn
    finally:
        stopping.set()
        for thread in threads:
            thread.join()
    phone.close()
    assert library.live() == 0


main()
