"""The host's loop for threads: gets what the library has, and sends its requests.

Step by step for tests and scripts (`Runner.step`), or on a separate thread (`Runner.start`).
"""

from __future__ import annotations

import logging
import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

from .errors import HoldfastError, InvalidError
from .transport import REFUSED, Answer, HttpTransport, Transport, answered

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

    from .handle import Holdfast
    from .types import HttpRequest

log = logging.getLogger("holdfast")

#: The longest wait of the thread in milliseconds, and so the delay of `stop`.
NAP_MS = 250


def complete(holdfast: Holdfast, request: HttpRequest, answer: Answer) -> None:
    """Complete a request; one whose answer cannot be passed on has failed."""
    try:
        holdfast.complete(answered(request, answer))
    except (InvalidError, TypeError, ValueError) as error:
        log.warning("an answer cannot be passed on: %s", error)
        holdfast.complete(answered(request, REFUSED))


@dataclass
class Step:
    """The requests, answers and news of one round, and when to go on."""

    # Requests and answers hold tokens, which must not get into a log or a traceback.
    requests: list[HttpRequest] = field(default_factory=list, repr=False)
    answers: list[Answer] = field(default_factory=list, repr=False)
    news: list[dict[str, Any]] = field(default_factory=list)
    wake_in_ms: int | None = None

    @property
    def idle(self) -> bool:
        """Whether the round had nothing."""
        return not self.requests and not self.news


class Runner:
    """The host's loop: sends requests, and passes everything else to `on_news`.

    `on_news` gets what `Holdfast.next` gives: {"screen"}, {"answer"}, {"notice"} or {"sync"}.
    """

    def __init__(
        self,
        holdfast: Holdfast,
        on_news: Callable[[dict[str, Any]], None] | None = None,
        transport: Transport | None = None,
    ) -> None:
        """`on_news` is called on the thread that steps; `queue.Queue().put` is enough."""
        self.holdfast = holdfast
        self.on_news = on_news
        # Our own transport's connections end with the thread; another one is the host's.
        self._http = HttpTransport()
        self.transport: Transport = transport or self._http
        self._sending: set[threading.Thread] = set()
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None

    def step(self) -> Step:
        """Take all that there is now, then send and complete each request in turn."""
        step = Step()
        while (given := self.holdfast.next(0)) is not None:
            thing: dict[str, Any] = dict(given)
            if "wake_in_ms" in thing:
                step.wake_in_ms = thing["wake_in_ms"]
                break
            self._take(thing, step)
        for request in step.requests:
            answer = self._answer(request)
            step.answers.append(answer)
            complete(self.holdfast, request, answer)
        return step

    def _take(self, thing: dict[str, Any], step: Step) -> None:
        if "request" in thing:
            step.requests.append(thing["request"])
            return
        step.news.append(thing)
        if self.on_news is not None:
            self.on_news(thing)

    def _answer(self, request: HttpRequest) -> Answer:
        """Send a request; a transport that raises has failed."""
        try:
            return self.transport(request)
        except Exception:
            log.exception("the transport failed")
            return {"error": "offline"}

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
        """Start a thread that runs the loop until `stop`, or until the handle is closed.

        Every request is sent on a thread of its own, so that none waits for a slow one. What
        `on_news` raises is logged.
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
                thing = self.holdfast.next(NAP_MS)
            except HoldfastError as error:
                log.error("the loop waits: %s", error)
                self._stopping.wait(NAP_MS / 1000)
                continue
            if thing is None:
                return
            if "request" in thing:
                thread = threading.Thread(
                    target=self._send, args=(thing["request"],), name="holdfast-http", daemon=True
                )
                self._sending.add(thread)
                thread.start()
            elif "wake_in_ms" not in thing and self.on_news is not None:
                try:
                    self.on_news(dict(thing))
                except Exception:
                    log.exception("on_news failed")

    def _send(self, request: HttpRequest) -> None:
        """Send and complete a request."""
        try:
            complete(self.holdfast, request, self._answer(request))
        except HoldfastError as error:
            log.info("complete failed: %s", error)
        finally:
            self._sending.discard(threading.current_thread())

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
