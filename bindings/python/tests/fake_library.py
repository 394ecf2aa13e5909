"""A scripted `Library` for `AsyncHoldfast`."""

from __future__ import annotations

import asyncio
import json
import os
import threading
from collections import deque
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any, cast

from holdfast import AsyncHoldfast, AsyncKeyStore, AsyncTransport, Library
from holdfast.transport import Answer
from holdfast.types import HttpRequest
from patience import patience

CONFIG = {"data_dir": "/nowhere", "backend": {"url": "http://localhost", "api_key": "k"}}
CLOSED = 9
STORAGE = 6
BUSY = 8

#: How long a test waits for what must happen, in seconds.
PATIENCE_S = patience(60)

Poll = dict[str, Any]


def request(number: int) -> dict[str, Any]:
    return {"id": number, "purpose": "pull", "url": f"http://localhost/{number}"}


def event(seq: int) -> dict[str, Any]:
    return {"seq": seq, "type": "session_ended", "reason": "signed_out"}


def refusal(code: str, *, retryable: bool) -> bytes:
    error: dict[str, Any] = {
        "code": code,
        "message": "m",
        "field": None,
        "retryable": retryable,
        "detail": {},
    }
    return json.dumps({"error": error}).encode()


class FakeLibrary:
    """A fake `Library` with scripted polls and a descriptor that behaves like the real one."""

    def __init__(self) -> None:
        self.script: deque[Poll | tuple[int, bytes]] = deque()
        self.asked: list[dict[str, Any] | None] = []
        self.completed: list[dict[str, Any]] = []
        self.threads: set[str] = set()
        self.closed = False
        self.running = threading.Lock()
        self.descriptor = os.eventfd(0, os.EFD_NONBLOCK)

    def then(self, *polls: Poll | tuple[int, bytes]) -> None:
        self.script.extend(polls)
        os.eventfd_write(self.descriptor, 1)

    def open(self, _config: bytes, keystore: object) -> tuple[int, tuple[int, bytes]]:
        self.keystore = cast("Any", keystore)
        reply = {"version": "9.8.7", "recovered": False, "unlock_prompt": "Open up"}
        return 1, (0, json.dumps(reply).encode())

    def call(self, name: str, _handle: int, sent: bytes | None) -> tuple[int, bytes]:
        self.threads.add(threading.current_thread().name)
        given = None if sent is None else json.loads(sent)
        with self.running:
            if self.closed:
                return CLOSED, refusal("handle.closed", retryable=False)
            return getattr(self, name, partial(self.other, name))(given)

    def other(self, name: str, given: object) -> tuple[int, bytes]:
        return 0, json.dumps({"called": name, "request": given}).encode()

    def poll(self, given: dict[str, Any] | None) -> tuple[int, bytes]:
        self.asked.append(given)
        if not self.script:
            self.lower()
            return 0, b'{"requests":[],"events":[],"wake_in_ms":null}'
        now = self.script.popleft()
        if not self.script:
            self.lower()
        if isinstance(now, tuple):
            return now
        nothing: Poll = {"requests": [], "events": [], "wake_in_ms": None}
        return 0, json.dumps(nothing | now).encode()

    def lower(self) -> None:
        try:
            os.eventfd_read(self.descriptor)
        except BlockingIOError:
            return

    def complete(self, given: dict[str, Any]) -> tuple[int, bytes]:
        self.completed.append(given)
        return 0, b'{"accepted":true}'

    def wake_fd(self, _handle: int) -> int:
        return self.descriptor

    def close(self, _handle: int) -> None:
        with self.running:  # as the real one: after the running calls
            if not self.closed:
                self.closed = True
                os.close(self.descriptor)


async def answering(request: HttpRequest) -> Answer:
    return {"status": 200, "body": request["url"]}


def opened(
    fake: FakeLibrary,
    transport: AsyncTransport = answering,
    connections: int = 8,
    keystore: AsyncKeyStore | None = None,
) -> AsyncHoldfast:
    library = cast(Library, fake)
    return AsyncHoldfast(
        CONFIG, keystore, library=library, transport=transport, connections=connections
    )


async def until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not condition():
            await asyncio.sleep(0.005)


def run(work: Coroutine[Any, Any, None]) -> None:
    async def limited() -> None:
        async with asyncio.timeout(2 * PATIENCE_S):
            await work

    asyncio.run(limited())
