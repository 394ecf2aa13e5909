"""`AsyncHoldfast`: an iterator that blocks nobody, and a close that waits for no network."""

from __future__ import annotations

import asyncio
import threading
from typing import Any, cast

import fake_library as h
import pytest
from holdfast import AsyncHoldfast, AsyncTransport, ClosedError, Library, StorageError, Transport
from holdfast.transport import Answer
from holdfast.types import HttpRequest


def opened(
    fake: h.FakeLibrary, transport: Transport | AsyncTransport | None = None
) -> AsyncHoldfast:
    return AsyncHoldfast(h.CONFIG, library=cast(Library, fake), transport=transport)


@h.coroutine
async def test_operations_run_outside_the_loop_s_thread() -> None:
    fake = h.FakeLibrary()
    async with opened(fake) as app:
        assert app.opened["version"] == "9.8.7"
        reply = cast(dict[str, Any], await app.contact_search({"query": "Åse"}))
        assert reply == {"called": "contact_search", "request": {"query": "Åse"}}
    assert {name.rpartition("_")[0] for name in fake.threads} == {"holdfast"}
    assert fake.closed


@h.coroutine
async def test_what_comes_is_iterated_over_from_the_first_screen_to_the_close() -> None:
    fake = h.FakeLibrary(screen=h.WAIT["screen"])
    fake.give(h.NOTICE, h.FIRST)
    seen: list[object] = []
    async with opened(fake) as app:
        seen.append({"screen": await app.settled()})
        async for thing in app:
            seen.append(thing)
            if thing == h.NOTICE:
                fake.give(h.HOME)
            if thing == h.HOME:
                await app.close()
    assert seen == [h.FIRST, h.NOTICE, h.HOME]
    assert app.screen == h.HOME["screen"]


@h.coroutine
async def test_a_wait_that_is_cancelled_loses_nothing_and_asks_for_nothing_more() -> None:
    fake = h.FakeLibrary(screen=None)
    async with opened(fake) as app:
        waiting = asyncio.ensure_future(anext(app))
        await h.until(lambda: fake.asked)
        waiting.cancel()
        fake.give(h.NOTICE)
        await h.until(lambda: not fake.news)
        assert (await anext(app), fake.asked) == (h.NOTICE, 1)


@h.coroutine
async def test_a_failure_is_raised_and_the_iteration_may_go_on() -> None:
    fake = h.FakeLibrary(screen=None)
    fake.give((h.STORAGE, h.refusal("storage.failed")), h.HOME)
    async with opened(fake) as app:
        with pytest.raises(StorageError):
            await anext(app)
        assert await anext(app) == h.HOME


@h.coroutine
async def test_a_coroutine_sends_on_the_loop_and_a_function_on_threads() -> None:
    loop = threading.get_ident()
    places: list[bool] = []

    async def sending(given: HttpRequest) -> Answer:
        places.append(threading.get_ident() == loop)
        if given["id"] == 2:
            raise ValueError("a defect")
        return {"status": 200}

    def blocking(_: HttpRequest) -> Answer:
        places.append(threading.get_ident() == loop)
        return {"status": 200}

    for transport in (sending, blocking):
        fake = h.FakeLibrary()
        fake.give(h.request(1), h.request(2))
        async with opened(fake, transport):
            while len(fake.completed) < 2:
                await asyncio.sleep(0.005)
        answers = {one["id"]: one.get("error") for one in fake.completed}
        assert answers == {1: None, 2: "offline" if transport is sending else None}
    assert places == [True, True, False, False]


@h.coroutine
async def test_a_blocking_transport_delays_neither_loop_nor_close_nor_exit() -> None:
    began, hold = threading.Event(), threading.Event()

    def blocking(_: HttpRequest) -> Answer:
        began.set()
        hold.wait(h.PATIENCE_S)
        return {"status": 200}

    fake = h.FakeLibrary()
    fake.give(h.request())
    async with opened(fake, blocking) as app:
        await h.until(began.is_set)
        [thread] = [one for one in threading.enumerate() if one.name == "holdfast-http"]
        assert thread.daemon
        await app.session_status()
    assert thread.is_alive() and fake.closed
    hold.set()
    await h.until(lambda: not thread.is_alive())


@pytest.mark.parametrize("stubborn", [False, True])
@h.coroutine
async def test_closing_cancels_what_is_sent_and_ends_the_iteration(stubborn: bool) -> None:
    """A transport that ignored its cancellation made `close()` wait for ever."""

    release, began = asyncio.Event(), asyncio.Event()
    cancelled: list[bool] = []

    async def sending(_: HttpRequest) -> Answer:
        began.set()
        try:
            await release.wait()
        except asyncio.CancelledError:
            cancelled.append(True)
            if not stubborn:
                raise
            await release.wait()
        return {"status": 200}

    fake = h.FakeLibrary(screen=None)
    fake.give(h.request())
    app = opened(fake, sending)
    async with app:
        await began.wait()
        waiting = asyncio.ensure_future(anext(app, "ended"))
        await h.until(lambda: fake.asked)
    assert fake.closed
    assert await waiting == "ended"
    await h.until(lambda: cancelled and not app._sending)
    assert fake.completed == []
    release.set()
    with pytest.raises(ClosedError):
        await app.session_status()
    await app.close()


@h.coroutine
async def test_a_close_waits_for_the_call_that_is_running_and_outlives_its_cancellation() -> None:
    inside, release = threading.Event(), threading.Event()

    class Slow(h.FakeLibrary):
        def session_lock(self, given: object) -> h.Reply:
            inside.set()
            release.wait(h.PATIENCE_S)
            return self.other("session_lock", given)

    fake = Slow()
    app = opened(fake)
    await app.__aenter__()
    locking = asyncio.ensure_future(app.session_lock())
    await h.until(inside.is_set)
    closing = asyncio.ensure_future(app.close())
    await asyncio.sleep(0.02)
    assert not closing.done()
    closing.cancel()
    release.set()
    assert cast(Any, await locking)["called"] == "session_lock"
    await h.until(lambda: fake.closed)
    await app.close()


@h.coroutine
async def test_a_folder_that_cannot_be_opened_leaves_no_thread() -> None:
    class Refusing(h.FakeLibrary):
        def open(self, *_: object) -> tuple[int, h.Reply]:
            return 0, (h.STORAGE, h.refusal("storage.failed"))

    def ours() -> list[str]:
        return [one.name for one in threading.enumerate() if one.name.startswith("holdfast_")]

    app = opened(Refusing())  # keep the executor: its finalizer would end the thread
    with pytest.raises(StorageError):
        await app.__aenter__()
    await h.until(lambda: not ours())
    with pytest.raises(RuntimeError, match="async with"):
        await app.session_status()
