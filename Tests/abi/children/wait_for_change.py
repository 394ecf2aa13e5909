"""Waits until another process changes the folder: wait_for_change.py SPEC HOW.

Prints "waits", and after the change the purpose and the first item's id of the request that it has
to send. HOW: "wait" and "descriptor" wait in the library and for its descriptor. "fork" waits in
two processes; each prints "waits" and "woken". "count on screen" and "count in background" print
how often a waiting thread wakes in some seconds without a change, and how many seconds these are.
"""

from __future__ import annotations

import json
import os
import select
import socket
import sys
import threading
import time
from pathlib import Path

from patience import until_asleep

from support.phone import App, Phone


def sleep(app: App, wake_in_ms: int | None) -> None:
    """As an event loop does: on the descriptor, for as long as the library said."""
    select.select([app.wake_fd()], [], [], None if wake_in_ms is None else wake_in_ms / 1000)


def wait(app: App, how: str) -> None:
    taken = app.take()
    print("waits", flush=True)
    while True:
        if how == "descriptor":
            sleep(app, taken.wake_in_ms)
            taken = app.take()
            requests = taken.requests
        else:
            thing = app.next(-1)
            requests = [thing["request"]] if "request" in thing else []
        for request in requests:
            rows = json.loads(request["body"] or "[]") if request["purpose"] == "upload" else []
            if rows:
                print(request["purpose"], rows[0]["id"], flush=True)
                return


def wake_ups(app: App) -> str:
    """How often a thread that waits wakes, and in how many seconds."""

    def work() -> None:
        while True:
            app.next(-1)
            app.settle()

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    status = Path(f"/proc/self/task/{thread.native_id}/status")

    def count() -> int:
        lines = status.read_text().splitlines()
        return int(next(line for line in lines if line.startswith("voluntary")).split()[1])

    until_asleep(thread)
    before, began = count(), time.monotonic()
    time.sleep(4)
    return f"{count() - before} {time.monotonic() - began:.1f}"


def in_two_processes(phone: Phone, app: App) -> None:
    """Waits here and in a child that opens its own handle; does not return."""
    app.wake_fd()
    ours, theirs = socket.socketpair()
    is_parent = os.fork() != 0
    if not is_parent:
        phone.app = None
        app = phone.start()
        app.settle()
    # Both have opened their handles.
    end = ours if is_parent else theirs
    end.send(b".")
    end.recv(1)
    app.settle()
    before = app.queue_list()["counts"]
    os.write(1, b"waits\n")
    while app.queue_list()["counts"] == before:
        sleep(app, app.take().wake_in_ms)
    os.write(1, b"woken\n")
    if is_parent:
        os.wait()
    os._exit(0)


def main() -> None:
    phone, how = Phone.from_spec(sys.argv[1]), sys.argv[2]
    app = phone.start()
    app.settle()
    if how.startswith("count"):
        if how == "count in background":
            app.session_background()
            app.settle()
        print(wake_ups(app), flush=True)
        os._exit(0)
    if how == "fork":
        in_two_processes(phone, app)
    wait(app, how)
    phone.close()


main()
