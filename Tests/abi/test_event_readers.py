"""Slow readers of events: `AsyncHoldfast`, and the HTTP driver over the real library."""

from __future__ import annotations

import asyncio
import ctypes
import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest
from holdfast import AsyncHoldfast
from holdfast.transport import answered

from support.events import parked_items
from support.paths import BUILDS
from support.queue import BAD_MINUTES, RPC, add

if TYPE_CHECKING:
    from holdfast.transport import Answer
    from holdfast.types import HttpRequest

    from support.users import MakeUser, SignedIn

#: The unacknowledged events, and the seconds in which the reader's CPU time is measured.
EVENTS = 1000
MEASURED_S = 4
DRIVER = BUILDS["embedded"].with_name("libholdfast_http.so")


@pytest.fixture
def unread(sign_in: MakeUser) -> SignedIn:
    """A user with a thousand parked items; the app is closed, and no event is acknowledged."""
    user = sign_in(tables=RPC, clock="system")
    for _ in range(EVENTS):
        add(user.app, minutes=BAD_MINUTES)
    while user.app.queue_list({"limit": 1})["counts"]["parked"] < EVENTS:
        for request in user.app.poll()["requests"]:
            upload = request["purpose"] == "upload"
            rows = next(iter(json.loads(str(request["body"])).values())) if upload else []
            results = [{"id": r["id"], "status": "rejected", "sqlstate": "23514"} for r in rows]
            answer: Answer = (
                {"status": 200, "headers": {}, "body": json.dumps(results)}
                if upload
                else user.phone.network(request)
            )
            user.app.complete(answered(request, answer))
    assert len(parked_items(user.app)) == EVENTS
    user.phone.close()
    return user


@pytest.mark.parametrize("ack", ["never", "late", "out of a truncated poll"])
def test_ATK_5_a_thousand_events_come_whenever_they_are_acknowledged(
    unread: SignedIn, ack: str
) -> None:
    # Given a thousand events, and a host that follows the loop
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


def test_A5_asyncio_holds_few_events_for_a_slow_reader(unread: SignedIn) -> None:
    """With a slow reader it queued 566,602 events in 5 s, and used a whole core."""
    phone = unread.phone

    async def main() -> None:
        config: Any = phone.config
        async with AsyncHoldfast(
            config, phone.key_store, transport=offline, library=phone.library
        ) as app:
            await app.network_set({"online": False})
            await app.session_resume()
            await asyncio.sleep(2)
            # Given a reader that reads nothing
            before = time.process_time()
            await asyncio.sleep(MEASURED_S)
            assert time.process_time() - before < 0.01 * MEASURED_S
            assert app._events.qsize() < 1000
            # When it reads, every event comes once
            seqs: list[int] = []
            parked: set[str] = set()
            async with asyncio.timeout(60):
                async for event in app.events():
                    seqs.append(event["seq"])
                    if event["type"] == "item_parked":
                        parked.add(event["id"])
                    if len(parked) == EVENTS:
                        break
            assert seqs == sorted(set(seqs))

    asyncio.run(main())


@contextmanager
def driver(user: SignedIn) -> Iterator[tuple[ctypes.CDLL, ctypes.c_void_p]]:
    """The HTTP driver on the user's app, which is opened again, offline."""
    app = user.phone.start(online=False)
    library = ctypes.CDLL(str(DRIVER))
    token = ctypes.c_void_p()
    handle = ctypes.c_void_p(app._handle)
    assert library.holdfast_http_start(handle, None, ctypes.byref(token)) == 0
    try:
        yield library, token
    finally:
        library.holdfast_http_stop(token)


def take(library: ctypes.CDLL, token: ctypes.c_void_p, timeout_ms: int = 200) -> Any:  # noqa: ANN401
    """The driver's next event; None if there is none."""
    event = ctypes.c_void_p()
    if library.holdfast_http_next(token, timeout_ms, ctypes.byref(event)) != 0:
        return None
    value = json.loads(ctypes.string_at(event.value or 0))
    library.holdfast_http_free(event)
    return value


def test_A5_the_http_driver_rests_with_a_thousand_events(unread: SignedIn, flavour: str) -> None:
    """The driver polled without end while more than 200 events were unacknowledged."""
    if flavour != "embedded":
        pytest.skip("the driver is linked to the Embedded library")
    with driver(unread) as (library, token):
        # Given a host that takes no event
        time.sleep(2)
        before = time.process_time()
        time.sleep(MEASURED_S)
        assert time.process_time() - before < 0.01 * MEASURED_S
        # When it takes them, and acknowledges none
        seqs = []
        while event := take(library, token, 1000):
            seqs.append(event["seq"])
        # Then each comes once, in order, and the driver rests again
        assert seqs == sorted(set(seqs))
        assert len(seqs) >= EVENTS
        before = time.process_time()
        time.sleep(MEASURED_S)
        assert time.process_time() - before < 0.01 * MEASURED_S
        # They all come again with the next driver, also of the same handle
        library.holdfast_http_ack(token, ctypes.c_int64(seqs[9]))
        library.holdfast_http_stop(token)
        handle = ctypes.c_void_p(unread.phone.app._handle if unread.phone.app else 0)
        assert library.holdfast_http_start(handle, None, ctypes.byref(token)) == 0
        again = []
        while event := take(library, token, 1000):
            again.append(event["seq"])
        assert [seq for seq in again if seq in seqs] == seqs[10:]
