"""`AsyncHoldfast`: the library for asyncio; it also sends the HTTP requests."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import threading
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Any, Self, TypeVar, cast

from .async_keystore import AsyncKeyStore, LoopKeyStore
from .async_operations import AsyncOperations
from .errors import ClosedError, HoldfastError, InvalidError
from .handle import Holdfast
from .keystore import checked
from .transport import REFUSED, Answer, AsyncTransport, HttpTransport, answered

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
    from types import TracebackType

    from .keystore import KeyStore
    from .library import Library
    from .types import Config, Event, HttpRequest, OpenReply, PollReply, PollRequest

log = logging.getLogger("holdfast")

Given = TypeVar("Given")
Reply = TypeVar("Reply")

#: The pause in seconds before a call is repeated because another process held the files.
AGAIN_S = 0.25

#: How long `close()` waits for requests that it has cancelled, in seconds.
FAREWELL_S = 5.0

#: The answer to a request that `close()` cancels.
CANCELLED: Answer = {"error": "cancelled"}

#: The most events that wait for the reader before the library is asked for no more. One poll can
#: still add a page to them.
WAITING_EVENTS = 400


class AsyncHoldfast(AsyncOperations):
    """An open data folder for one event loop, with every operation as a coroutine.

    `async with` opens and closes it, and sends the library's requests while it is open. Calls run
    one after another on a separate thread, since they write to disk and wait for the key store. A
    `KeyStore` runs on that thread, the coroutines of an `AsyncKeyStore` on the loop. Results from
    the server arrive in `events()`. Operations raise `HoldfastError`; before the folder is open,
    `RuntimeError`.

    With an `AsyncKeyStore`, `session_unlock({"outcome": "success"})` has the key store show its
    prompt first, and its outcome is that of the prompt. Other calls go on meanwhile. A lock, a
    logout, another unlock and `close()` take the prompt back.
    """

    def __init__(
        self,
        config: Config | Mapping[str, Any],
        keystore: KeyStore | AsyncKeyStore | None = None,
        *,
        transport: AsyncTransport | None = None,
        connections: int = 8,
        library: Library | None = None,
    ) -> None:
        """Does not open anything. At most `connections` requests are in flight at once."""
        #: The key store, if the loop runs it.
        self._keys: LoopKeyStore | None = None
        if checked(keystore, coroutines=True):
            self._keys = LoopKeyStore(cast("AsyncKeyStore", keystore))
        given = self._keys or cast("KeyStore | None", keystore)
        self._open = partial(Holdfast, config, given, library=library)
        # Our own transport ends with this object; another one is the host's.
        self._http = HttpTransport()
        self._transport: AsyncTransport = transport or ThreadTransport(self._http)
        self._connections = asyncio.Semaphore(connections)
        self._holdfast: Holdfast | None = None
        self._process = os.getpid()
        self._closed = False
        self._calls = ThreadPoolExecutor(max_workers=1, thread_name_prefix="holdfast")
        self._events: asyncio.Queue[Event | None] = asyncio.Queue()
        self._failed: HoldfastError | None = None
        self._seen: int | None = None
        self._woken = asyncio.Event()
        self._sending: set[asyncio.Task[None]] = set()
        # Requests that the library has no answer to, with the answer if the transport gave one.
        self._unanswered: dict[int, tuple[HttpRequest, Answer]] = {}
        self._closing: asyncio.Task[None] | None = None
        self._network: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        """Open the folder and start to poll and send; raises `HoldfastError`."""
        loop = asyncio.get_running_loop()
        if self._keys is not None:
            self._keys.loop = loop
        try:
            self._holdfast = await loop.run_in_executor(self._calls, self._open)
        except BaseException:
            self._calls.shutdown(wait=False)
            raise
        self._network = loop.create_task(self._work(), name="holdfast-network")
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close."""
        await self.close()

    @property
    def opened(self) -> OpenReply:
        """The reply of holdfast_open(): the version, and whether damaged files were set aside."""
        return self._handle().opened

    async def events(self) -> AsyncIterator[Event]:
        """Iterate over events, for one reader; ends when the handle is closed.

        A decision that a reply has superseded meanwhile is left out. Requesting the next event
        acknowledges the last one. A durable event without acknowledgement
        comes again after a restart. A slow reader slows nothing else: some hundred events wait for
        it here, and all others in the library. Raises the `HoldfastError` that stopped the polling,
        if any.
        """
        while (event := await self._events.get()) is not None:
            if not self._handle().superseded(event):
                yield event
            self._seen = max(self._seen or 0, event["seq"])
            self._woken.set()  # acknowledges, and takes the events that wait in the library
        self._events.put_nowait(None)  # ends a later iteration, too
        if self._failed is not None:
            raise self._failed

    async def close(self) -> None:
        """Cancel requests in flight and close; may be called twice.

        The next open sends cancelled requests again. A call that is running ends first. A transport
        that ignores its cancellation is left behind after a few seconds. Cancelling `close()` does
        not keep the folder open.
        """
        if os.getpid() != self._process:
            # In a forked child: the tasks and the thread are the parent's.
            self._drop()
            return
        if self._closing is None:
            finishing = self._finish()
            self._closing = asyncio.get_running_loop().create_task(finishing, name="holdfast-close")
        await asyncio.shield(self._closing)

    async def _finish(self) -> None:
        loop = asyncio.get_running_loop()
        tasks: list[asyncio.Task[Any] | None] = [*self._sending, self._network]
        if self._keys is not None:
            self._keys.withdraw()
            tasks.append(self._keys.prompt)
        # A task of another loop ended with it.
        left = [task for task in tasks if task and not task.done() and task.get_loop() is loop]
        try:
            for task in left:
                task.cancel()
            late = (await asyncio.wait(left, timeout=FAREWELL_S))[1] if left else ()
            if late:
                log.warning("%d tasks ignore that they were cancelled", len(late))
            # Not on the loop's thread: it would wait there for a call that is running.
            await loop.run_in_executor(self._calls, self._end)
        finally:
            self._drop()
            self._calls.shutdown(wait=False)
            self._http.close()
            self._events.put_nowait(None)

    def _end(self) -> None:
        """Pass on the answers that are left, and close."""
        if self._holdfast is not None and not self._closed:
            for request, answer in list(self._unanswered.values()):
                with contextlib.suppress(HoldfastError, TypeError, ValueError):
                    self._holdfast.complete(answered(request, answer))
        self._drop()

    def _drop(self) -> None:
        """Close, without waiting for anybody."""
        if self._holdfast is not None:
            self._holdfast.close()
        self._closed = True

    def _handle(self) -> Holdfast:
        if self._holdfast is None:
            raise RuntimeError("not open: use `async with AsyncHoldfast(...) as app:`")
        return self._holdfast

    async def _call(self, name: str, request: Mapping[str, Any] | None) -> object:
        call: Callable[..., object] = self._handle()._call
        if self._keys is not None:
            self._keys.admit()
            if name in ("session_unlock", "session_lock", "session_logout"):
                number = self._keys.withdraw()
                prompts = name == "session_unlock" and request == {"outcome": "success"}
                if prompts and self._closing is None:
                    text = self.opened["unlock_prompt"]
                    outcome, key = await self._keys.unlock(number, text)
                    call, request = partial(self._keys.call, key, call), {"outcome": outcome}
        if self._closed or os.getpid() != self._process:
            # Closed, or in a forked child without the thread: the library returns the error.
            return call(name, request)
        return await asyncio.get_running_loop().run_in_executor(self._calls, call, name, request)

    # ---- polling and sending ----

    async def _work(self) -> None:
        """Poll when woken or due; requests are sent by separate tasks."""
        loop = asyncio.get_running_loop()
        descriptor = self._handle().wake_fd()
        try:
            while True:
                self._woken.clear()
                polled = await patiently(self.poll, self._request())
                self._take(polled)
                # The descriptor stays readable until the next poll: react to it once.
                loop.add_reader(descriptor, self._wake, loop, descriptor)
                await self._sleep(polled["wake_in_ms"])
        except ClosedError:
            pass
        except HoldfastError as error:
            log.error("polling stops: %s", error)
            self._failed = error
        finally:
            loop.remove_reader(descriptor)
            self._events.put_nowait(None)

    def _request(self) -> PollRequest:
        """The next poll's request: events once each, and none while many wait for the reader."""
        request: PollRequest = {"only_new": True}
        if self._seen is not None:
            request["ack"] = self._seen
        if self._events.qsize() >= WAITING_EVENTS:
            request["max_events"] = 0
        return request

    def _wake(self, loop: asyncio.AbstractEventLoop, descriptor: int) -> None:
        loop.remove_reader(descriptor)
        self._woken.set()

    async def _sleep(self, wake_in_ms: int | None) -> None:
        """Sleep until woken or due.

        Not with `asyncio.wait_for`: in Python 3.11 it drops a cancellation that meets the result.
        """
        timer = None
        if wake_in_ms is not None:
            timer = asyncio.get_running_loop().call_later(wake_in_ms / 1000, self._woken.set)
        try:
            await self._woken.wait()
        finally:
            if timer is not None:
                timer.cancel()

    def _take(self, polled: PollReply) -> None:
        for event in polled["events"]:
            self._events.put_nowait(event)
        for request in polled["requests"]:
            self._unanswered[request["id"]] = (request, CANCELLED)
            task = asyncio.get_running_loop().create_task(self._send(request))
            self._sending.add(task)
            task.add_done_callback(self._sending.discard)

    async def _send(self, request: HttpRequest) -> None:
        try:
            async with self._connections:
                answer = await self._transport(request)
        except Exception:
            log.exception("the transport failed")
            answer = {"error": "offline"}
        self._unanswered[request["id"]] = (request, answer)
        try:
            await self._complete(request, answer)
        except ClosedError:
            pass  # the next open sends the request again
        except HoldfastError as error:
            self._unanswered.pop(request["id"], None)
            log.error("complete failed: %s", error)

    async def _complete(self, request: HttpRequest, answer: Answer) -> None:
        """Complete a request; one whose answer cannot be passed on has failed."""
        try:
            await patiently(self.complete, answered(request, answer))
        except (InvalidError, TypeError, ValueError) as error:
            log.warning("an answer cannot be passed on: %s", error)
            await patiently(self.complete, answered(request, REFUSED))
        self._unanswered.pop(request["id"], None)


async def patiently(operation: Callable[[Given], Awaitable[Reply]], given: Given) -> Reply:
    """Call the operation, and repeat it while another process holds the files."""
    while True:
        try:
            return await operation(given)
        except HoldfastError as error:
            if not error.retryable:
                raise
        await asyncio.sleep(AGAIN_S)


class ThreadTransport:
    """Wraps a blocking transport for asyncio, with a thread for each request.

    The threads are daemons, so that a server that does not answer cannot delay the process's exit.
    """

    def __init__(self, transport: Callable[[HttpRequest], Answer]) -> None:
        """`transport` is called from several threads at once."""
        self._transport = transport

    async def __call__(self, request: HttpRequest) -> Answer:
        """Send the request on a new thread."""
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[Answer] = loop.create_future()

        def give(value: Answer | None, error: Exception | None) -> None:
            if answer.done():
                return  # the request was cancelled
            if error is not None:
                answer.set_exception(error)
            elif value is not None:
                answer.set_result(value)

        def work() -> None:
            value: Answer | None = None
            failed: Exception | None = None
            try:
                value = self._transport(request)
            except Exception as error:
                failed = error
            # RuntimeError: the loop has closed before the answer arrived.
            with contextlib.suppress(RuntimeError):
                loop.call_soon_threadsafe(give, value, failed)

        threading.Thread(target=work, name="holdfast-http", daemon=True).start()
        return await answer
