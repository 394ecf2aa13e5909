"""The host's loop for threads: polls, sends requests and completes them.

Step by step for tests and scripts (`Runner.step`), or on a separate thread (`Runner.start`).
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Self, cast

from .errors import ClosedError, HoldfastError
from .transport import Answer, HttpTransport, Transport

if TYPE_CHECKING:
    from types import TracebackType

    from .handle import Holdfast
    from .types import CompleteRequest, Event, HttpRequest

log = logging.getLogger("holdfast")

#: The longest sleep of the thread in milliseconds, and so the delay of `stop`.
NAP_MS = 250


@dataclass
class Step:
    """The requests, answers and events of one round, and when to poll again."""

    requests: list[HttpRequest] = field(default_factory=list)
    answers: list[Answer] = field(default_factory=list)
    accepted: list[bool] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    wake_in_ms: int | None = None

    @property
    def idle(self) -> bool:
        """Whether the round had no request and no event."""
        return not self.requests and not self.events


class Runner:
    """The host's loop: poll, send, complete, and pass events to `on_event`.

    After `on_event` has returned, the next poll acknowledges the event.
    """

    def __init__(
        self,
        holdfast: Holdfast,
        on_event: Callable[[Event], None] | None = None,
        transport: Transport | None = None,
    ) -> None:
        """`on_event` is called on the thread that steps; `queue.Queue().put` is enough."""
        self.holdfast = holdfast
        self.on_event = on_event
        self.transport: Transport = transport or HttpTransport()
        self._ack: int | None = None
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None

    def step(self) -> Step:
        """Poll once, then send and complete each request in turn; raises `HoldfastError`."""
        polled = self.holdfast.poll(None if self._ack is None else {"ack": self._ack})
        step = Step(polled["requests"], events=polled["events"], wake_in_ms=polled["wake_in_ms"])
        for event in step.events:
            if self.on_event is not None:
                self.on_event(event)
            self._ack = max(self._ack or 0, event["seq"])
        for request in step.requests:
            answer = self.transport(request)
            done = self.holdfast.complete(
                cast("CompleteRequest", {"id": request["id"], **answer}),
            )
            step.answers.append(answer)
            step.accepted.append(done["accepted"])
        return step

    def run_until_idle(self, limit: int = 100) -> list[Step]:
        """Step until a round is idle; RuntimeError after `limit` rounds."""
        steps: list[Step] = []
        for _ in range(limit):
            step = self.step()
            if step.idle:
                return steps
            steps.append(step)
        raise RuntimeError(f"still busy after {limit} rounds")

    def start(self) -> Self:
        """Start a thread that steps until `stop`, or until the handle is closed."""
        if self._thread is not None:
            raise RuntimeError("the runner is already running: call stop() first")
        self._stopping.clear()
        self._thread = threading.Thread(target=self._work, name="holdfast-runner", daemon=True)
        self._thread.start()
        return self

    def stop(self) -> None:
        """End the thread, after a request in flight has finished."""
        self._stopping.set()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join()
            self._thread = None

    def _work(self) -> None:
        while not self._stopping.is_set():
            try:
                if not self._sleep(self.step()):
                    return
            except ClosedError:
                return
            except HoldfastError as error:
                if not error.retryable:
                    log.error("the runner stops: %s", error)
                    return
                self._stopping.wait(NAP_MS / 1000)

    def _sleep(self, step: Step) -> bool:
        """Sleep until there is something to poll; False if the handle was closed."""
        if not step.idle:
            return True
        due = None if step.wake_in_ms is None else time.monotonic() + step.wake_in_ms / 1000
        while not self._stopping.is_set():
            left = NAP_MS if due is None else max(0, int((due - time.monotonic()) * 1000) + 1)
            before = time.monotonic()
            nap = min(left, NAP_MS)
            if not self.holdfast.wait(nap):
                return False
            woken = (time.monotonic() - before) * 1000 < nap - 1
            if woken or (due is not None and time.monotonic() >= due):
                return True
        return True

    def __enter__(self) -> Self:
        """Start."""
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Stop."""
        self.stop()
