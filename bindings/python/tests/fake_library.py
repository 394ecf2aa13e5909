"""A scripted `Library`: what `next` gives is what a test has put in."""

from __future__ import annotations

import asyncio
import ctypes
import json
import threading
from collections import deque
from collections.abc import Callable, Coroutine
from functools import partial, wraps
from typing import Any, ParamSpec, cast

from holdfast import Holdfast, KeyStore, Library
from holdfast.errors import ClosedError
from holdfast.keystore import PROTECT_DEVICE
from holdfast.library import NEWS, REQUESTS
from patience import patience

CONFIG = {"data_dir": "/nowhere", "backend": {"url": "http://localhost", "api_key": "k"}}
STORAGE = 6

KEY = bytes(range(32))

#: How long a test waits for what must happen, in seconds.
PATIENCE_S = patience(60)

#: What `next` gives, or the status and reply of its failure.
Thing = dict[str, Any] | tuple[int, bytes]
Reply = tuple[int, bytes]

P = ParamSpec("P")

FIRST: Any = {"screen": {"screen": "sign_in"}}
HOME: Any = {"screen": {"screen": "home"}}
WAIT: Any = {"screen": {"screen": "wait"}}
NOTICE = {"notice": {"type": "item_parked"}}


def request(number: int = 1) -> dict[str, Any]:
    url = f"http://localhost/{number}"
    return {"request": {"id": number, "purpose": "pull", "url": url, "headers": {"a": "secret"}}}


def refusal(code: str, *, retryable: bool = False) -> bytes:
    more = {"message": "m", "field": None, "retryable": retryable, "detail": dict[str, Any]()}
    return json.dumps({"error": {"code": code, **more}}).encode()


class FakeLibrary:
    """Blocks in `next` as the real one does; a test adds operations as methods."""

    def __init__(self, screen: object = FIRST["screen"]) -> None:
        self.screen = screen
        self.news: deque[Thing] = deque()
        self.requests: deque[Thing] = deque()
        #: How often news were asked for.
        self.asked = 0
        self.completed: list[dict[str, Any]] = []
        self.threads: set[str] = set()
        self.closed = False
        self.changed = threading.Condition()
        self.running = threading.RLock()

    def give(self, *things: Thing) -> None:
        with self.changed:
            for thing in things:
                (self.requests if "request" in thing else self.news).append(thing)
            self.changed.notify_all()

    def next(self, _handle: int, what: int, timeout_ms: int) -> Reply:
        with self.changed:
            self.asked += bool(what & NEWS)
            queues = [self.news] * bool(what & NEWS) + [self.requests] * bool(what & REQUESTS)
            limit = None if timeout_ms < 0 else timeout_ms / 1000
            self.changed.wait_for(lambda: self.closed or any(queues), limit)
            if self.closed:
                return ClosedError.status, refusal("handle.closed")
            thing: Thing = {"wake_in_ms": None}
            for queue in queues:
                if queue:
                    thing = queue.popleft()
                    break
        return thing if isinstance(thing, tuple) else (0, json.dumps(thing).encode())

    def open(self, config: bytes, keystore: object) -> tuple[int, Reply]:
        self.config, self.keystore = json.loads(config), cast("Any", keystore)
        reply = {"version": "9.8.7", "unlock_prompt": "Open up", "screen": self.screen}
        return 1, (0, json.dumps(reply).encode())

    def call(self, name: str, _handle: int, sent: bytes | None) -> Reply:
        self.threads.add(threading.current_thread().name)
        given = None if sent is None else json.loads(sent)
        with self.running:
            if self.closed:
                return ClosedError.status, refusal("handle.closed")
            return cast(Reply, getattr(self, name, partial(self.other, name))(given))

    def other(self, name: str, given: object) -> Reply:
        return 0, json.dumps({"called": name, "request": given}).encode()

    def complete(self, given: dict[str, Any]) -> Reply:
        self.completed.append(given)
        return 0, b"{}"

    def load(self, name: bytes) -> list[object]:
        """What the key store answers to a load, and the key."""
        room, length = (ctypes.c_uint8 * 32)(), ctypes.c_size_t()
        answer = self.keystore.load(None, name, room, 32, ctypes.pointer(length))
        return [answer, bytes(room)[: length.value].hex()]

    def save(self, name: bytes, key: bytes, protection: int = PROTECT_DEVICE) -> object:
        data = (ctypes.c_uint8 * len(key))(*key)
        return self.keystore.save(None, name, data, len(key), protection)

    def erase(self, name: bytes) -> object:
        return self.keystore.erase(None, name)

    def close(self, _handle: int) -> None:
        with self.running, self.changed:  # as the real one: after the running calls
            self.closed = True
            self.changed.notify_all()


def opened(fake: FakeLibrary, store: KeyStore | None = None) -> Holdfast:
    return Holdfast(CONFIG, store, library=cast(Library, fake))


async def until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not condition():
            await asyncio.sleep(0.005)


def coroutine(test: Callable[P, Coroutine[Any, Any, None]]) -> Callable[P, None]:
    """A test that is a coroutine, in a loop of its own."""

    @wraps(test)
    def run(*given: P.args, **named: P.kwargs) -> None:
        asyncio.run(asyncio.wait_for(test(*given, **named), 2 * PATIENCE_S))

    return run
