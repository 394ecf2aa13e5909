"""Adds items and sends them, alternately, until it is killed or done.

queue_worker.py SPEC COUNT MINUTES   Prints each id after its call has returned; "done" at the end.
COUNT 0: sends only.
"""

from __future__ import annotations

import sys
import time

from holdfast import HoldfastError

from support.phone import Phone


def main() -> None:
    phone = Phone.from_spec(sys.argv[1])
    count, minutes = int(sys.argv[2]), int(sys.argv[3])
    app = phone.start()
    assert app.screen["screen"] == "home", app.screen
    print("ready", flush=True)
    for number in range(count):
        print(app.register(minutes=minutes), flush=True)
        if number % 5 == 4:
            app.step()
    for _ in range(2000):
        try:
            step = app.step()
        except HoldfastError as error:
            if not error.retryable:
                raise
            continue
        counts = app.queue_list({"limit": 1})["counts"]
        if counts["pending"] + counts["sending"] == 0 and not step.requests:
            break
        if step.idle:
            # Other processes hold the leases: poll again.
            time.sleep(0.01)
    print("done", flush=True)
    phone.close()


main()
