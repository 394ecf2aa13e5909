"""`AsyncHoldfast`: the loop around poll and complete, without blocking the event loop."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from typing import Any, cast

import pytest
from fake_library import (
    BUSY,
    PATIENCE_S,
    STORAGE,
    FakeLibrary,
    event,
    opened,
    refusal,
    request,
    run,
    until,
)
from holdfast import AsyncHoldfast, ClosedError, StorageError, ThreadTransport
from holdfast.transport import Answer
from holdfast.types import HttpRequest


def test_operations_run_outside_the_loop_s_thread() -> None:
    async def main() -> None:
        fake = FakeLibrary()
        async with opened(fake) as app:
            assert app.opened["version"] == "9.8.7"
            reply = cast(dict[str, Any], await app.contact_search({"query": "Åse"}))
            assert reply == {"called": "contact_search", "request": {"query": "Åse"}}
        assert {name.rpartition("_")[0] for name in fake.threads} == {"holdfast"}
        assert fake.closed

    run(main())


def test_requests_are_sent_at_once_and_answered() -> None:
    async def main() -> None:
        fake = FakeLibrary()
        fake.then({"requests": [request(1), request(2)]}, {"requests": [request(3)]})
        async with opened(fake):
            await until(lambda: len(fake.completed) == 3)
        assert sorted(answer["id"] for answer in fake.completed) == [1, 2, 3]
        assert all(answer["status"] == 200 for answer in fake.completed)

    run(main())


def test_requests_in_flight_are_limited_to_connections() -> None:
    busy, most = 0, 0
    release: asyncio.Event

    async def counting(_: HttpRequest) -> Answer:
        nonlocal busy, most
        busy += 1
        most = max(most, busy)
        await release.wait()
        busy -= 1
        return {"status": 200}

    async def main() -> None:
        nonlocal release
        release = asyncio.Event()
        fake = FakeLibrary()
        fake.then({"requests": [request(number) for number in range(1, 8)]})
        async with opened(fake, transport=counting, connections=3) as app:
            # Given requests that are answered only when all that may start have started
            await until(lambda: busy == 3)
            await app.session_status()
            release.set()
            await until(lambda: len(fake.completed) == 7)
        assert most == 3

    run(main())


def test_requesting_the_next_event_acknowledges_the_last() -> None:
    async def main() -> None:
        fake = FakeLibrary()
        fake.then({"events": [event(4), event(5)]})
        async with opened(fake) as app:
            events = app.events()
            assert (await anext(events))["seq"] == 4
            # Given a poll while the event is shown
            fake.then({"requests": [request(1)]})
            await until(lambda: fake.completed)
            assert {"ack": 4, "only_new": True} not in fake.asked
            assert (await anext(events))["seq"] == 5
            await until(lambda: {"ack": 4, "only_new": True} in fake.asked)
            assert {"ack": 5, "only_new": True} not in fake.asked

    run(main())


def test_a_decision_that_a_reply_has_superseded_is_left_out() -> None:
    """An old `home` was drawn over the `unlock` of a later reply."""

    def decision(number: int) -> dict[str, Any]:
        shown = {"screen": "home", "number": number}
        return {"seq": number, "type": "decision", "decision": shown}

    class Locking(FakeLibrary):
        def session_lock(self, _: object) -> tuple[int, bytes]:
            return 0, b'{"screen":"unlock","number":2}'

    async def main() -> None:
        fake = Locking()
        fake.then({"events": [decision(1), decision(3)]})
        async with opened(fake) as app:
            await until(lambda: app._events.qsize() == 2)
            await app.session_lock()
            assert (await anext(app.events()))["seq"] == 3
            await until(lambda: {"ack": 1, "only_new": True} in fake.asked)

    run(main())


def is_waiting(app: AsyncHoldfast) -> bool:
    """Whether the loop that polls waits for a reason to poll."""
    return bool(app._woken._waiters)


def test_the_descriptor_and_wake_in_ms_both_wake() -> None:
    async def main() -> None:
        fake = FakeLibrary()
        fake.then({"wake_in_ms": 30})
        async with opened(fake) as app:
            await until(lambda: len(fake.asked) == 2)  # woken by time
            await until(lambda: is_waiting(app))
            await asyncio.sleep(0.05)
            assert len(fake.asked) == 2, "a poll without a reason"
            fake.then({"requests": [request(1)]})
            await until(lambda: fake.completed)  # woken by the descriptor

    run(main())


def test_calls_repeat_while_another_process_holds_the_files() -> None:
    async def main() -> None:
        fake = FakeLibrary()
        fake.then((BUSY, refusal("storage.busy", retryable=True)), {"requests": [request(1)]})
        async with opened(fake):
            await until(lambda: fake.completed)

    run(main())


def test_a_failure_ends_the_events_with_its_exception() -> None:
    async def main() -> None:
        fake = FakeLibrary()
        fake.then((STORAGE, refusal("storage.failed", retryable=False)))
        async with opened(fake) as app:
            with pytest.raises(StorageError):
                async for _ in app.events():
                    raise AssertionError("there is no event")

    run(main())


def test_closing_cancels_requests_and_ends_the_events(monkeypatch: pytest.MonkeyPatch) -> None:
    # Given a transport that never answers, and no limit for a close that would wait for it
    monkeypatch.setattr("holdfast.async_handle.FAREWELL_S", None)

    async def never(_: HttpRequest) -> Answer:
        await asyncio.Event().wait()
        raise AssertionError("it was cancelled")

    async def main() -> None:
        fake = FakeLibrary()
        fake.then({"requests": [request(1)], "events": [event(1)]})
        app = opened(fake, transport=never)
        seen: list[int] = []
        async with app:
            reader = asyncio.create_task(read(app, seen))
            await until(lambda: seen)
        await reader
        assert fake.completed == [{"id": 1, "error": "cancelled"}]
        with pytest.raises(ClosedError):
            await app.session_status()
        await app.close()

    async def read(app: AsyncHoldfast, seen: list[int]) -> None:
        async for one in app.events():
            seen.append(one["seq"])

    run(main())


@pytest.mark.parametrize("steps", range(12))
def test_closing_ends_while_a_wake_up_is_on_its_way(steps: int) -> None:
    """Issue 16, point 10: Python 3.11's `wait_for` drops a cancellation that meets its result.

    `close()` then waited for a loop that polled for ever. The wake-up passes through several steps
    of the event loop; the handle is closed at each of them.
    """

    async def main() -> None:
        fake = FakeLibrary()
        fake.then({"wake_in_ms": 60_000})
        app = opened(fake)
        async with app:
            await until(lambda: fake.asked and is_waiting(app))
            fake.then({"wake_in_ms": 60_000})
            for _ in range(steps):
                await asyncio.sleep(0)
        assert fake.closed

    run(main())


@pytest.mark.parametrize("steps", range(12))
def test_closing_ends_while_an_answer_is_on_its_way(steps: int) -> None:
    """Issue 16, point 10: a transport may use `wait_for` itself, and misses its cancellation."""
    release: asyncio.Event

    async def waiting(_: HttpRequest) -> Answer:
        await asyncio.wait_for(release.wait(), PATIENCE_S)
        return {"status": 200}

    async def main() -> None:
        nonlocal release
        release = asyncio.Event()
        fake = FakeLibrary()
        fake.then({"requests": [request(1)]})
        app = opened(fake, transport=waiting)
        async with app:
            await until(lambda: app._sending)
            release.set()
            for _ in range(steps):
                await asyncio.sleep(0)
        assert fake.closed
        assert {answer["id"] for answer in fake.completed} == {1}

    run(main())


def test_closing_leaves_a_transport_behind_that_ignores_its_cancellation(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Issue 16, point 10: one such transport made `close()` wait for ever."""
    monkeypatch.setattr("holdfast.async_handle.FAREWELL_S", 0)

    async def main() -> None:
        release = asyncio.Event()
        ended: list[bool] = []

        async def stubborn(_: HttpRequest) -> Answer:
            while not release.is_set():
                with contextlib.suppress(asyncio.CancelledError):
                    await release.wait()
            ended.append(True)
            return {"status": 200}

        fake = FakeLibrary()
        fake.then({"requests": [request(1)]})
        app = opened(fake, transport=stubborn)
        async with app:
            await until(lambda: app._sending)
            await asyncio.sleep(0)
        assert fake.closed
        assert fake.completed == [{"id": 1, "error": "cancelled"}]
        release.set()
        await until(lambda: ended and not app._sending)  # its late answer meets a closed handle

    run(main())


def test_a_cancelled_close_still_closes_the_handle() -> None:
    """Issue 16, point 10: a `close()` that was cancelled left the folder open."""

    async def main() -> None:
        fake = FakeLibrary()
        app = opened(fake)
        await app.__aenter__()
        closing = asyncio.create_task(app.close())
        await asyncio.sleep(0)
        closing.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await closing
        await until(lambda: fake.closed)
        await app.close()

    run(main())


def test_closing_does_not_block_the_loop_while_a_call_runs() -> None:
    """Issue 16, point 10: `close()` waited for a running call on the loop's own thread.

    A key store may show a prompt in that call, and needs the loop for it.
    """

    async def main() -> None:
        fake = FakeLibrary()
        inside, release = threading.Event(), threading.Event()

        def prompting(given: object) -> tuple[int, bytes]:
            inside.set()
            release.wait(PATIENCE_S)
            return fake.other("session_lock", given)

        fake.session_lock = prompting  # type: ignore[attr-defined]
        app = opened(fake)
        await app.__aenter__()
        locking = asyncio.create_task(app.session_lock())
        await until(inside.is_set)
        closing = asyncio.create_task(app.close())
        for _ in range(5):
            await asyncio.sleep(0.005)
        assert not closing.done()
        release.set()
        await closing
        assert fake.closed
        assert (await locking)["called"] == "session_lock"  # type: ignore[typeddict-item]

    run(main())


def test_a_transport_that_fails_counts_as_offline() -> None:
    async def failing(_: HttpRequest) -> Answer:
        raise ValueError("a defect")

    async def main() -> None:
        fake = FakeLibrary()
        fake.then({"requests": [request(1)]})
        async with opened(fake, transport=failing):
            await until(lambda: fake.completed)
        assert fake.completed == [{"id": 1, "error": "offline"}]

    run(main())


def test_a_blocking_transport_blocks_neither_loop_nor_exit() -> None:
    began = threading.Event()
    hold = threading.Event()

    def blocking(_: HttpRequest) -> Answer:
        began.set()
        hold.wait(PATIENCE_S)
        return {"status": 200}

    async def main() -> None:
        fake = FakeLibrary()
        fake.then({"requests": [request(1)]})
        async with opened(fake, transport=ThreadTransport(blocking)) as app:
            await until(began.is_set)
            [thread] = [one for one in threading.enumerate() if one.name == "holdfast-http"]
            assert thread.daemon
            await app.session_status()
        hold.set()
        await until(lambda: not thread.is_alive())

    run(main())


def test_a_thread_s_exception_reaches_the_loop() -> None:
    def failing(_: HttpRequest) -> Answer:
        raise OSError("no sockets left")

    async def main() -> None:
        with pytest.raises(OSError, match="no sockets left"):
            await ThreadTransport(failing)(cast(HttpRequest, request(1)))

    run(main())


class Refusing(FakeLibrary):
    def open(self, *_: object) -> tuple[int, tuple[int, bytes]]:
        return 0, (STORAGE, refusal("storage.failed", retryable=False))


def test_a_folder_that_cannot_be_opened_leaves_no_thread() -> None:
    def ours() -> list[str]:
        return [one.name for one in threading.enumerate() if one.name.startswith("holdfast_")]

    async def main() -> None:
        app = opened(Refusing())  # keep the executor: its finalizer would end the thread
        with pytest.raises(StorageError):
            await app.__aenter__()
        await until(lambda: not ours())

    run(main())


def test_use_before_open_raises() -> None:
    async def main() -> None:
        with pytest.raises(RuntimeError, match="async with"):
            await opened(FakeLibrary()).session_status()

    run(main())
