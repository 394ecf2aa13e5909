"""Sends the requests of a handle: on a thread (`Runner.start`), or step by step (`Runner.step`)."""

from __future__ import annotations

import logging
import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Self

from .errors import HoldfastError, InvalidError
from .library import ALL, REQUESTS
from .transport import REFUSED, HttpTransport, Transport, answered

if TYPE_CHECKING:
    from collections.abc import Callable

    from .handle import Holdfast, News
    from .types import HttpRequest, NextReply

log = logging.getLogger("holdfast")

#: The longest wait of the thread in milliseconds, and so the delay of `stop`.
NAP_MS = 250


@dataclass
class Step:
    """The requests and news of one round, and when to go on."""

    # Requests hold tokens, which must not get into a log or a traceback.
    requests: list[HttpRequest] = field(default_factory=list, repr=False)
    news: list[News] = field(default_factory=list)
    wake_in_ms: int | None = None

    @property
    def idle(self) -> bool:
        """Whether the round had nothing."""
        return not self.requests and not self.news


class Runner:
    """Sends the requests of a handle; `with` starts and stops its thread.

    Without `on_news` the host reads the rest itself, with `for thing in app:`. With it, the host
    draws `Holdfast.screen` first: only later screens come to the function.
    """

    def __init__(
        self,
        holdfast: Holdfast,
        on_news: Callable[[News], None] | None = None,
        transport: Transport | None = None,
    ) -> None:
        """`on_news` is called on the thread that steps; `queue.Queue().put` is enough."""
        self.holdfast = holdfast
        self.on_news = on_news
        self._what = REQUESTS if on_news is None else ALL
        # Our own transport's connections end with the thread; another one is the host's.
        self._http = HttpTransport()
        self.transport: Transport = transport or self._http
        self._sending: set[threading.Thread] = set()
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None

    def step(self) -> Step:
        """Take all that there is now, then send and complete each request in turn.

        What was taken is sent also if `next` or `on_news` raises: it is given once.
        """
        step = Step()
        try:
            while (given := self.holdfast.next(0, what=self._what)) is not None:
                if "wake_in_ms" in given:
                    step.wake_in_ms = given["wake_in_ms"]
                    break
                if "request" in given:
                    step.requests.append(given["request"])
                    continue
                step.news.append(given)
                if self.on_news is not None:
                    self.on_news(given)
        finally:
            for request in step.requests:
                self._complete(request)
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
        """Start a thread that works until `stop`, or until the handle is closed.

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

    def wait_closed(self) -> None:
        """Wait for the thread to end, as it does when the handle is closed."""
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join()

    def _work(self) -> None:
        while not self._stopping.is_set():
            try:
                given = self.holdfast.next(NAP_MS, what=self._what)
            except HoldfastError as error:
                log.error("the runner waits: %s", error)
                self._stopping.wait(NAP_MS / 1000)
                continue
            if given is None:
                return
            self._take(given)

    def _take(self, given: NextReply) -> None:
        if "request" in given:
            work = threading.Thread(
                target=self._send, args=(given["request"],), name="holdfast-http", daemon=True
            )
            self._sending.add(work)
            try:
                work.start()
            except RuntimeError:  # too many threads: this one sends
                self._sending.discard(work)
                self._send(given["request"])
        elif "wake_in_ms" not in given and self.on_news is not None:
            try:
                self.on_news(given)
            except Exception:
                log.exception("on_news failed")

    def _send(self, request: HttpRequest) -> None:
        try:
            self._complete(request)
        except HoldfastError as error:
            log.info("complete failed: %s", error)
        finally:
            self._sending.discard(threading.current_thread())

    def _complete(self, request: HttpRequest) -> None:
        """Send a request and pass its answer on; a transport that raises has failed."""
        try:
            answer = self.transport(request)
        except Exception:
            log.exception("the transport failed")
            answer = {"error": "offline"}
        try:
            self.holdfast.complete(answered(request, answer))
        except (InvalidError, TypeError, ValueError) as error:
            log.warning("an answer cannot be passed on: %s", error)
            self.holdfast.complete(answered(request, REFUSED))

    def __enter__(self) -> Self:
        """Start."""
        return self.start()

    def __exit__(self, *_: object) -> None:
        """Stop."""
        self.stop()
