"""The host's loop for threads: polls, sends requests and completes them.

Step by step for tests and scripts (`Runner.step`), or on a separate thread (`Runner.start`).
"""

from __future__ import annotations

import logging
import threading
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Self

from .errors import ClosedError, HoldfastError, InvalidError
from .transport import REFUSED, Answer, HttpTransport, Transport, answered

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

    from .handle import Holdfast
    from .types import Event, HttpRequest, PollRequest

log = logging.getLogger("holdfast")

#: The longest sleep of the thread in milliseconds, and so the delay of `stop`.
NAP_MS = 250
#: How long the thread waits, in seconds, before an event that was not handled comes again.
HANDLER_NAP_S = 1.0


def complete(holdfast: Holdfast, request: HttpRequest, answer: Answer) -> bool:
    """Complete a request; one whose answer cannot be passed on has failed."""
    try:
        return holdfast.complete(answered(request, answer))["accepted"]
    except (InvalidError, TypeError, ValueError) as error:
        log.warning("an answer cannot be passed on: %s", error)
        return holdfast.complete(answered(request, REFUSED))["accepted"]


@dataclass
class Step:
    """The requests, answers and events of one round, and when to poll again."""

    # Requests and answers hold tokens, which must not get into a log or a traceback.
    requests: list[HttpRequest] = field(default_factory=list, repr=False)
    answers: list[Answer] = field(default_factory=list, repr=False)
    accepted: list[bool] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    wake_in_ms: int | None = None

    @property
    def idle(self) -> bool:
        """Whether the round had no request and no event."""
        return not self.requests and not self.events


class Runner:
    """The host's loop: poll, send, complete, and pass events to `on_event`.

    After `on_event` has returned, the next poll acknowledges the event. A decision that a reply has
    superseded is left out. A host that draws on another thread asks `Holdfast.superseded` there.
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
        # Our own transport's connections end with the thread; another one is the host's.
        self._http = HttpTransport()
        self.transport: Transport = transport or self._http
        self._ack: int | None = None
        self._unshown = False
        #: Requests of earlier steps whose answers the library could not take.
        self._unanswered: list[tuple[HttpRequest, Answer]] = []
        #: What a poll returned before an event handler raised: the next round carries it out.
        self._left: list[HttpRequest] = []
        self._sending: set[threading.Thread] = set()
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None

    def step(self) -> Step:
        """Poll once, then send and complete each request in turn.

        A transport that raises counts as `offline`. If an answer cannot be passed on, the other
        requests get theirs, and then the first `HoldfastError` is raised; if it is `retryable`, the
        next step passes the answer again.
        What `on_event` raises is raised before anything is sent; the next step sends it.
        """
        failures: list[HoldfastError] = []
        again, self._unanswered = self._unanswered, []
        for request, answer in again:
            self._pass_on(request, answer, failures)
        step = self._poll()
        for request in step.requests:
            answer = self._answer(request)
            step.answers.append(answer)
            step.accepted.append(self._pass_on(request, answer, failures))
        if failures:
            raise failures[0]
        return step

    def _answer(self, request: HttpRequest) -> Answer:
        """Send a request; a transport that raises has failed."""
        try:
            return self.transport(request)
        except Exception:
            log.exception("the transport failed")
            return {"error": "offline"}

    def _pass_on(self, request: HttpRequest, answer: Answer, failures: list[HoldfastError]) -> bool:
        """Complete a request; keeps a failure, and an answer that the next step passes again."""
        try:
            return complete(self.holdfast, request, answer)
        except HoldfastError as error:
            failures.append(error)
            if error.retryable:
                self._unanswered.append((request, answer))
            return False

    def _poll(self, raised: list[Exception] | None = None) -> Step:
        """Poll, and pass on the events; `raised` takes what `on_event` raises, if it is given."""
        given: PollRequest = {}
        if self._ack is not None:
            given["ack"] = self._ack
        if self._unshown:
            given["from_oldest"] = True
        polled = self.holdfast.poll(given or None)
        step = Step(events=polled["events"], wake_in_ms=polled["wake_in_ms"])
        self._left += polled["requests"]
        # An event whose handler fails comes again, and those behind it.
        self._unshown = True
        for event in step.events:
            try:
                if self.on_event is not None and not self.holdfast.superseded(event):
                    self.on_event(event)
            except Exception as error:
                if raised is None:
                    raise
                raised.append(error)
                break
            self._ack = max(self._ack or 0, event["seq"])
        else:
            self._unshown = False
        step.requests, self._left = self._left, []
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
        """Start a thread that polls until `stop`, or until the handle is closed.

        Every request is sent on a thread of its own, so that none waits for a slow one. What
        `on_event` raises is logged. The event and those behind it come again after a second;
        requests are sent meanwhile.
        """
        if self._thread is not None:
            raise RuntimeError("the runner is already running: call stop() first")
        self._stopping.clear()
        self._thread = threading.Thread(target=self._work, name="holdfast-runner", daemon=True)
        self._thread.start()
        return self

    def stop(self) -> None:
        """End the thread, after the requests in flight have finished."""
        self._stopping.set()
        current = threading.current_thread()
        if self._thread is not None and self._thread is not current:
            self._thread.join()
            self._thread = None
        for sending in list(self._sending):
            if sending is not current:
                sending.join()
        self._http.close()

    def _work(self) -> None:
        while not self._stopping.is_set():
            try:
                raised: list[Exception] = []
                step = self._poll(raised)
                for request in step.requests:
                    thread = threading.Thread(
                        target=self._send, args=(request,), name="holdfast-http", daemon=True
                    )
                    self._sending.add(thread)
                    thread.start()
                if raised:
                    log.error("on_event failed: the event comes again", exc_info=raised[0])
                    self._stopping.wait(HANDLER_NAP_S)
                elif not self._sleep(step):
                    return
            except ClosedError:
                return
            except HoldfastError as error:
                if not error.retryable:
                    log.error("the runner stops: %s", error)
                    return
                self._stopping.wait(NAP_MS / 1000)

    def _send(self, request: HttpRequest) -> None:
        """Send and complete a request, again while the library asks for that."""
        answer = self._answer(request)
        try:
            while True:
                try:
                    complete(self.holdfast, request, answer)
                    return
                except HoldfastError as error:
                    if not error.retryable or self._stopping.is_set():
                        raise
                self._stopping.wait(NAP_MS / 1000)
        except ClosedError:
            pass  # the next open sends the request again
        except HoldfastError as error:
            log.error("complete failed: %s", error)
        finally:
            self._sending.discard(threading.current_thread())

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
