"""Slow readers of events: `AsyncHoldfast`, and the HTTP driver over the real library."""

from __future__ import annotations

import asyncio
import ctypes
import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from holdfast import AsyncHoldfast
from patience import eventually, patience

from support.events import park
from support.paths import BUILDS
from support.queue import RPC

if TYPE_CHECKING:
    from holdfast.transport import Answer
    from holdfast.types import HttpRequest

    from support.users import MakeUser, SignedIn

#: The unacknowledged events: more than `AsyncHoldfast` takes before its reader takes one.
EVENTS = 700
#: How long a reader is watched that must rest; `rests` repeats that until it does.
WATCHED_S = 0.5
DRIVER = BUILDS["embedded"].with_name("libholdfast_http.so")


@pytest.fixture
def unread(sign_in: MakeUser) -> SignedIn:
    """A user with hundreds of parked items; the app is closed, and no event is acknowledged."""
    user = sign_in(tables=RPC, clock="system")
    assert len(park(user.app, EVENTS)) == EVENTS
    user.phone.close()
    return user


@pytest.mark.parametrize("ack", ["never", "late", "out of a truncated poll"])
def test_ATK_5_hundreds_of_events_come_whenever_they_are_acknowledged(
    unread: SignedIn, ack: str
) -> None:
    # Given hundreds of events, and a host that follows the loop
    app = unread.phone.start(online=False)
    told: list[str] = []
    seqs: list[int] = []
    polls = 0
    while len(set(told)) < EVENTS:
        polls += 1
        assert polls < 3 * EVENTS, "events are held back"
        request: Any = {}
        if ack == "out of a truncated poll":
            request = {"max_events": 7, "ack": max(seqs, default=0)}
        elif ack == "late" and polls % 3 == 0:
            request = {"ack": max(seqs)}
        polled = app.poll(request)
        wake = polled["wake_in_ms"]
        new = [event["id"] for event in polled["events"] if event["type"] == "item_parked"]
        # Then it is called again while there are more, and may rest as soon as there are none
        assert wake == 0 or len({*told, *new}) == EVENTS or ack == "never"
        seqs += [event["seq"] for event in polled["events"]]
        told += new
    if ack == "out of a truncated poll":
        # and each came once, in order
        assert len(told) == EVENTS
        assert seqs == sorted(seqs)
    for _ in range(2):
        polled = app.poll({"ack": max(seqs)} if ack != "never" else {})
    assert polled["wake_in_ms"] is None or polled["wake_in_ms"] > 1000
    # and what was not acknowledged comes again
    app = unread.phone.start(online=False)
    left = [e for e in app.poll()["events"] if e["type"] == "item_parked"]
    assert bool(left) == (ack == "never")


async def offline(request: HttpRequest) -> Answer:
    """A transport without a network."""
    return {"error": "offline"}


class Counted(AsyncHoldfast):
    """Counts its polls."""

    polls = 0

    async def poll(self, *arguments: Any) -> Any:  # noqa: ANN401
        self.polls += 1
        return await super().poll(*arguments)


def test_A5_asyncio_holds_few_events_for_a_slow_reader(unread: SignedIn) -> None:
    """With a slow reader it queued 566,602 events in 5 s, and used a whole core."""
    phone = unread.phone

    async def main() -> None:
        config: Any = phone.config
        async with (
            asyncio.timeout(patience(300)),
            Counted(config, phone.key_store, transport=offline, library=phone.library) as app,
        ):
            await app.network_set({"online": False})
            await app.session_resume()
            # Given a reader that reads nothing, Then the library is left alone
            before = -1
            while before != app.polls:
                before = app.polls
                await asyncio.sleep(WATCHED_S)
            assert 0 < app._events.qsize() <= 600
            # When it reads, every event comes once
            seqs: list[int] = []
            parked: set[str] = set()
            async for event in app.events():
                seqs.append(event["seq"])
                if event["type"] == "item_parked":
                    parked.add(event["id"])
                if len(parked) == EVENTS:
                    break
            assert seqs == sorted(set(seqs))

    asyncio.run(main())


class Driver:
    """The HTTP driver on the user's app, which is opened again, offline."""

    def __init__(self, user: SignedIn) -> None:
        self.library = ctypes.CDLL(str(DRIVER))
        self.token = ctypes.c_void_p()
        self.handle = ctypes.c_void_p(user.phone.start(online=False)._handle)
        self.start()

    def start(self) -> None:
        """Start it on the handle."""
        before = set(TASKS.iterdir())
        started = self.library.holdfast_http_start(self.handle, None, ctypes.byref(self.token))
        assert started == 0
        self.threads = sorted(set(TASKS.iterdir()) - before)

    def stop(self) -> None:
        """Stop it; the handle stays open."""
        self.library.holdfast_http_stop(self.token)

    def take(self, timeout_ms: int) -> Any:  # noqa: ANN401
        """Its next event; None if there is none."""
        event = ctypes.c_void_p()
        if self.library.holdfast_http_next(self.token, timeout_ms, ctypes.byref(event)) != 0:
            return None
        value = json.loads(ctypes.string_at(event.value or 0))
        self.library.holdfast_http_free(event)
        return value

    def take_until(self, done: Callable[[dict[str, Any]], bool]) -> list[int]:
        """Take events until one is the last that is missing; returns the numbers of all."""
        seqs = []
        while event := self.take(round(patience(60_000))):
            seqs.append(event["seq"])
            if done(event):
                return seqs
        raise AssertionError(f"no more events after {len(seqs)}")

    def rests(self) -> bool:
        """Whether none of its threads wakes up while it is watched."""
        before = [switches(thread) for thread in self.threads]
        time.sleep(WATCHED_S)
        return [switches(thread) for thread in self.threads] == before


#: The threads of this process.
TASKS = Path("/proc/self/task")


def switches(thread: Path) -> str:
    """The thread's state, and how often it went to sleep and was interrupted."""
    lines = (thread / "status").read_text().splitlines()
    return "".join(line for line in lines if line.startswith(("State", "voluntary", "nonvolunt")))


@pytest.fixture
def driver(unread: SignedIn, flavour: str) -> Iterator[Driver]:
    """The driver over the app with hundreds of unacknowledged events."""
    if flavour != "embedded":
        pytest.skip("the driver is linked to the Embedded library")
    made = Driver(unread)
    yield made
    made.stop()


def test_A5_the_http_driver_rests_with_hundreds_of_events(driver: Driver) -> None:
    """The driver polled without end while more than 200 events were unacknowledged."""
    # Given a host that takes no event, Then the driver rests
    eventually(driver.rests, 120, "the driver rests")
    # When the host takes them, and acknowledges none
    parked: set[str] = set()

    def is_last(event: dict[str, Any]) -> bool:
        if event["type"] == "item_parked":
            parked.add(event["id"])
        return len(parked) == EVENTS

    seqs = driver.take_until(is_last)
    # Then the driver rests again, and each came once, in order
    eventually(driver.rests, 120, "the driver rests")
    while event := driver.take(0):
        seqs.append(event["seq"])
    assert seqs == sorted(set(seqs))
    # They all come again with the next driver, also of the same handle
    driver.library.holdfast_http_ack(driver.token, ctypes.c_int64(seqs[9]))
    driver.stop()
    driver.start()
    again = driver.take_until(lambda event: bool(event["seq"] == seqs[-1]))
    assert [seq for seq in again if seq in seqs] == seqs[10:]
