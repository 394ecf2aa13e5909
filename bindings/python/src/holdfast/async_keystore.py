"""Key stores for asyncio: the library's thread waits while the loop runs their coroutines."""

from __future__ import annotations

import asyncio
import logging
import threading
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, TypeVar

from .errors import BusyError
from .keystore import KEY_CANCELLED, KEY_FAILED, KEY_NOT_FOUND, KeyStoreAnswer

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

log = logging.getLogger("holdfast")

Answer = TypeVar("Answer")
#: What the user's prompt gave: the key, or why there is none.
Released: TypeAlias = bytes | KeyStoreAnswer

#: How long a call of the library waits for a coroutine, in seconds. It then counts as KEY_FAILED.
PATIENCE_S = 10.0


class AsyncKeyStore(Protocol):
    """The protocol of a key store for asyncio; as `KeyStore`, with coroutines.

    A call of the library waits for them, ten seconds at most, so they must not call the library.
    Only a `load` with a prompt takes its time, because no call waits for it.
    """

    async def load(self, name: str, prompt: str | None) -> bytes | None:
        """Return the key, or None if the store works and has no such key.

        `prompt` is the text for the prompt with which the user releases "biometric". None: show no
        prompt, and raise `KeyStoreAnswer(KEY_CANCELLED)` for a key that needs one. The coroutine is
        cancelled when nobody needs the key any more: take the prompt back in `finally`.
        """

    async def save(self, name: str, key: bytes, protection: int) -> None:
        """Store or replace the key durably; `protection` is one of the constants `PROTECT_...`."""

    async def erase(self, name: str) -> None:
        """Remove the key; a missing key is not a failure."""


class LoopKeyStore:
    """An `AsyncKeyStore` as a `KeyStore`, for threads that call the library beside the loop's."""

    #: The loop that runs the coroutines; set it before the first call.
    loop: asyncio.AbstractEventLoop

    def __init__(self, store: AsyncKeyStore) -> None:
        """`store` has the coroutines."""
        self._store = store
        #: The prompt on the screen.
        self._prompt: asyncio.Task[Released] | None = None
        #: The number of the last call that withdrew a prompt.
        self._withdrawn = 0
        #: `released` is what the prompt gave for the call that this thread makes.
        self._call = threading.local()
        #: The coroutine that a call waits for.
        self._serving: asyncio.Task[Any] | None = None

    # ---- on the threads that call the library ----

    def load(self, name: str) -> bytes | None:
        """What the prompt has just given, or what the store gives without a prompt."""
        released: Released | None = getattr(self._call, "released", None)
        if name != "biometric" or released is None:
            return self._wait(self._store.load, name, None)
        if isinstance(released, KeyStoreAnswer):
            raise released
        return released

    def save(self, name: str, key: bytes, protection: int) -> None:
        """Have the loop save it."""
        self._wait(self._store.save, name, key, protection)

    def erase(self, name: str) -> None:
        """Have the loop erase it."""
        self._wait(self._store.erase, name)

    def _wait(self, method: Callable[..., Awaitable[Answer]], *given: object) -> Answer:
        future = asyncio.run_coroutine_threadsafe(self._serve(method, *given), self.loop)
        try:
            return future.result(PATIENCE_S)
        finally:
            future.cancel()  # has no effect on one that is done

    def call(self, released: Released, call: Callable[..., object], *given: object) -> object:
        """Make a call in which the library gets this for "biometric"."""
        self._call.released = released
        try:
            return call(*given)
        finally:
            self._call.released = None

    # ---- on the loop ----

    async def _serve(self, method: Callable[..., Awaitable[Answer]], *given: object) -> Answer:
        self._serving = asyncio.current_task()
        try:
            return await method(*given)
        finally:
            self._serving = None

    def admit(self) -> None:
        """Raise BusyError in a coroutine that a call waits for: each would wait for the other."""
        if self._serving is not None and self._serving is asyncio.current_task():
            raise BusyError("handle.reentered", "a key store must not call the library")

    def withdraw(self) -> int:
        """Take the prompt back; the number of an `unlock` that may show the next one."""
        self._withdrawn += 1
        if self._prompt is not None:
            self._prompt.cancel()
        return self._withdrawn

    async def unlock(self, number: int, text: str) -> Released:
        """Show a prompt, when the one before is gone; KEY_CANCELLED after a later `withdraw`."""
        while self._prompt is not None and number == self._withdrawn:
            await asyncio.wait([self._prompt])
        if number == self._withdrawn:
            prompt = self._prompt = self.loop.create_task(self._ask(text))
            prompt.add_done_callback(self._forget)
            try:
                await asyncio.wait([prompt])
            finally:
                prompt.cancel()
            if number == self._withdrawn:
                return prompt.result()
        return KeyStoreAnswer(KEY_CANCELLED)

    def _forget(self, _: asyncio.Task[Released]) -> None:
        self._prompt = None

    async def _ask(self, text: str) -> Released:
        try:
            key = await self._store.load("biometric", text)
        except KeyStoreAnswer as refused:
            return refused
        except Exception:
            log.exception("the key store failed")
            return KeyStoreAnswer(KEY_FAILED)
        return KeyStoreAnswer(KEY_NOT_FOUND) if key is None else key
