"""`AsyncHoldfast`: the library for asyncio; it also sends the HTTP requests."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import os
import threading
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Any, Self, cast

from .async_keystore import AsyncKeyStore, LoopKeyStore
from .async_operations import AsyncOperations
from .errors import ClosedError
from .handle import Holdfast, News
from .keystore import checked
from .runner import Runner
from .transport import Answer, HttpTransport

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from .keystore import KeyStore
    from .library import Library
    from .transport import AsyncTransport, Transport
    from .types import Config, Decision, HttpRequest, OpenReply

#: The calls that take a prompt back.
WITHDRAWING = {"session_unlock", "session_lock", "session_logout"}


class AsyncHoldfast(AsyncOperations):
    """An open data folder for one event loop, with every operation as a coroutine.

    `async with` opens and closes it, and sends the library's requests while it is open. `async for`
    gives what there is to show and tell, as `Holdfast.news`: one reader, and asking for the next
    thing acknowledges a notice. Operations raise `HoldfastError`, and `RuntimeError` before the
    folder is open. Calls run one after another on a thread, since they write to disk and wait for
    the key store. A `KeyStore` runs on the threads, the coroutines of an `AsyncKeyStore` on the
    loop.

    With an `AsyncKeyStore`, `session_unlock` has it show its prompt first, while other calls go on.
    A lock, a logout, another unlock and `close()` take the prompt back.
    """

    def __init__(
        self,
        config: Config | Mapping[str, Any],
        keystore: KeyStore | AsyncKeyStore | None = None,
        *,
        transport: Transport | AsyncTransport | None = None,
        library: Library | None = None,
    ) -> None:
        """Does not open anything.

        `transport` is a coroutine function, or a function, which is called on threads of its own.
        """
        #: The key store, if the loop runs it.
        self._keys: LoopKeyStore | None = None
        if checked(keystore, coroutines=True):
            self._keys = LoopKeyStore(cast("AsyncKeyStore", keystore))
        given = self._keys or cast("KeyStore | None", keystore)
        self._open = partial(Holdfast, config, given, library=library)
        # Our own transport ends with this object; another one is the host's.
        self._http = HttpTransport()
        self._transport: Transport | AsyncTransport = transport or self._http
        self._holdfast: Holdfast | None = None
        self._runner: Runner | None = None
        self._process = os.getpid()
        self._closing: asyncio.Future[None] | None = None
        self._calls = ThreadPoolExecutor(max_workers=1, thread_name_prefix="holdfast")
        #: The next thing, which somebody has asked for.
        self._next: asyncio.Future[News | None] | None = None
        #: Requests that the loop sends.
        self._sending: set[Future[Answer]] = set()

    async def __aenter__(self) -> Self:
        """Open the folder and start to send; raises `HoldfastError`."""
        self._loop = asyncio.get_running_loop()
        if self._keys is not None:
            self._keys.loop = self._loop
        try:
            self._holdfast = await self._loop.run_in_executor(self._calls, self._open)
        except BaseException:
            self._calls.shutdown(wait=False)
            raise
        self._runner = Runner(self._holdfast, transport=self._send).start()
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close."""
        await self.close()

    @property
    def opened(self) -> OpenReply:
        """The reply of holdfast_open(): the version, the first screen, and more."""
        return self._handle().opened

    @property
    def screen(self) -> Decision | None:
        """The newest screen that was given."""
        return self._handle().screen

    def __aiter__(self) -> Self:
        """Iterate until the handle is closed."""
        return self

    async def __anext__(self) -> News:
        """Wait for the next thing; if this is cancelled, the thing is kept for the next one."""
        asked = self._next = self._next or on_thread(self._handle().news)
        await asyncio.wait([asked])  # does not cancel it
        if self._next is asked:
            self._next = None
        given = asked.result()
        if given is None:
            raise StopAsyncIteration
        return given

    async def settled(self) -> Decision:
        """Wait for the next screen but `wait`, as `Holdfast.settled`."""
        others: list[News] = []
        try:
            async for thing in self:
                if "screen" not in thing:
                    others.append(thing)
                elif thing["screen"]["screen"] != "wait":
                    return thing["screen"]
        finally:
            self._handle().held.extend(others)
        raise ClosedError("handle.closed", "the handle is closed")

    async def close(self) -> None:
        """Close, after the call that is running; may be called twice.

        Requests in flight are cancelled: the next open sends them again. Cancelling `close()` does
        not keep the folder open.
        """
        if os.getpid() != self._process:
            # In a forked child the threads are the parent's.
            if self._holdfast is not None:
                self._holdfast.close()
            return
        if self._closing is None:
            if self._keys is not None:
                self._keys.withdraw()
            self._closing = asyncio.get_running_loop().run_in_executor(self._calls, self._drop)
            self._calls.shutdown(wait=False)
        await asyncio.shield(self._closing)
        if self._next is not None:
            await asyncio.wait([self._next])  # the close has ended it

    def _drop(self) -> None:
        if self._holdfast is not None:
            self._holdfast.close()
        for sending in list(self._sending):
            sending.cancel()
        if self._runner is not None:
            self._runner.wait_closed()
        self._http.close()

    def _handle(self) -> Holdfast:
        if self._holdfast is None:
            raise RuntimeError("not open: use `async with AsyncHoldfast(...) as app:`")
        return self._holdfast

    async def _call(self, name: str, request: Mapping[str, Any] | None) -> object:
        call: Callable[..., object] = self._handle()._call
        if self._keys is not None and os.getpid() == self._process:
            self._keys.admit()
            if name in WITHDRAWING and self._closing is None:
                number = self._keys.withdraw()
                if name == "session_unlock":
                    released = await self._keys.unlock(number, self.opened["unlock_prompt"])
                    call = partial(self._keys.call, released, call)
        if self._closing is not None:
            await asyncio.shield(self._closing)
        if self._closing is not None or os.getpid() != self._process:
            # Closed, or in a forked child without the thread: the library returns the error.
            return call(name, request)
        return await self._loop.run_in_executor(self._calls, call, name, request)

    def _send(self, request: HttpRequest) -> Answer:
        """Send a request, on a thread of the runner; the loop runs a coroutine."""
        answer = self._transport(request)
        if not inspect.iscoroutine(answer):
            return cast("Answer", answer)
        sending: Future[Answer] = asyncio.run_coroutine_threadsafe(answer, self._loop)
        self._sending.add(sending)
        if self._closing is not None:
            sending.cancel()  # the close may have come before it was there
        try:
            return sending.result()
        except CancelledError:
            return {"error": "cancelled"}
        finally:
            self._sending.discard(sending)


def on_thread(work: Callable[[], News | None]) -> asyncio.Future[News | None]:
    """Do blocking work on a daemon thread, which delays neither the loop nor the exit."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[News | None] = loop.create_future()

    def run() -> None:
        try:
            give = partial(done.set_result, work())
        except Exception as error:
            give = partial(done.set_exception, error)
        # RuntimeError: the loop has closed.
        with contextlib.suppress(RuntimeError):
            loop.call_soon_threadsafe(give)

    threading.Thread(target=run, name="holdfast-news", daemon=True).start()
    return done
