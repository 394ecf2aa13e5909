"""Hosts that wait: the wake descriptor, threads in `next`, and other handles that wake them."""

from __future__ import annotations

import select
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from holdfast.library import ALL
from patience import patience, until_asleep

from .phone import App, Phone

#: No test waits for this long unless it fails.
HANG_S = patience(120)


def readable(descriptor: int, within_s: float = 0) -> bool:
    """Whether the descriptor becomes readable within the timeout."""
    return bool(select.select([descriptor], [], [], within_s)[0])


@contextmanager
def another(phone: Phone) -> Iterator[App]:
    """A second handle on the phone's folder, in this process, idle."""
    app = App(phone, phone.config)
    try:
        if phone.manual:
            app.clock_set({"now_ms": phone.now_ms, "monotonic_ms": phone.monotonic_ms})
        app.session_resume()
        app.settle()
        yield app
    finally:
        app.close()


def quiet(*apps: App) -> None:
    """Follow the descriptors of the apps until none is readable: handles must not wake each other
    for ever."""
    for _ in range(20):
        woken = [app for app in apps if readable(app.wake_fd())]
        if not woken:
            return
        for app in woken:
            app.settle()
    raise AssertionError("the handles keep waking each other")


class Waiting:
    """A thread in `next` without a limit."""

    def __init__(self, app: App, what: int = ALL) -> None:
        self.app = app
        #: What it got; None: the handle was closed.
        self.answers: list[Any] = []
        self.thread = threading.Thread(target=lambda: self.answers.append(app.next(-1, what=what)))
        self.thread.start()
        until_asleep(self.thread)

    def wake_ups(self) -> int:
        """How often the thread has gone to sleep."""
        lines = Path(f"/proc/self/task/{self.thread.native_id}/status").read_text().splitlines()
        return int(next(line for line in lines if line.startswith("voluntary")).split()[1])

    def ends(self) -> bool:
        """Whether `next` returns; closes the handle if not."""
        self.thread.join(HANG_S)
        ended = not self.thread.is_alive()
        if not ended:
            self.app.close()
            self.thread.join()
        return ended
