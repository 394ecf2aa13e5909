"""Events: their numbers, their pages, what an acknowledgement deletes, and slow readers."""

from __future__ import annotations

import asyncio
import ctypes
import json
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from holdfast import AsyncHoldfast
from holdfast.transport import Answer
from holdfast.transport import answered as answered_by
from holdfast.types import HttpRequest
from patience import eventually, patience

from support.damage import restart_after
from support.directory_fixtures import DirectoryFixtures
from support.events import (
    DURABLE,
    PAGE,
    answered,
    park,
    parked_in,
    parked_items,
    second_handle,
    seqs,
    settle,
    sleeps,
)
from support.missing import lose, until_lost
from support.paths import BUILDS
from support.phone import App
from support.queue import BAD_MINUTES, RPC, add
from support.users import MakeUser, SignedIn
from support.workers import finish_worker, start_worker

#: How many items two handles park while they race for the numbers of events.
RACES = 100


def test_A7_handles_that_raise_events_at_once_share_no_number(sign_in: MakeUser) -> None:
    """Two handles numbered events outside a transaction: `complete` failed with a key conflict."""
    user = sign_in()
    first = user.app
    stop = threading.Event()
    failures: list[BaseException] = []
    numbers: list[int] = []
    told: dict[int, str] = {}
    with second_handle(user) as second:

        def flicker() -> None:
            online = False
            try:
                while not stop.is_set():
                    second.network_set({"online": online})
                    online = not online
                    events = second.poll()["events"]
                    numbers.extend(e["seq"] for e in events if e["type"] == "screen")
            except BaseException as error:
                failures.append(error)

        other = threading.Thread(target=flicker)
        other.start()
        items: list[str] = []
        ack = 0
        try:
            # When both are at work until this many items are parked
            while len(items) < RACES and not failures:
                items.append(add(first, minutes=BAD_MINUTES))
                polled = first.poll({"ack": ack})
                told |= {e["seq"]: str(e.get("id")) for e in polled["events"]}
                ack = max([ack, *(e["seq"] for e in polled["events"])])
                for request in polled["requests"]:
                    answered(first, request)
        finally:
            stop.set()
            other.join()
    assert not failures, failures
    for _ in range(20):
        told |= {e["seq"]: str(e.get("id")) for e in first.poll()["events"]}
    # Then every parked item was told, and no number was given twice, by whichever handle
    missing = {item["id"] for item in parked_items(first)} - set(told.values())
    assert not missing, f"{len(missing)} of {len(items)} were never told"
    assert numbers
    assert len(numbers) == len(set(numbers))
    assert not set(numbers) & set(told)


def test_ATK_7_processes_that_raise_events_at_once_drop_no_answer(sign_in: MakeUser) -> None:
    # Given two processes that add and send items which the server refuses
    user = sign_in()
    app = user.app
    workers = [start_worker(user.phone, 15, BAD_MINUTES) for _ in range(2)]
    # When this one does the same meanwhile
    told: dict[int, str] = {}
    mine: list[str] = []
    ended = False
    while not ended:
        ended = all(worker.poll() is not None for worker in workers)
        if len(mine) < 30:
            mine.append(add(app, minutes=BAD_MINUTES))
        for _ in range(20 if ended else 1):
            polled = app.poll()
            for event in polled["events"]:
                # Then no number is given twice
                if event["type"] == "item_parked":
                    assert told.setdefault(event["seq"], event["id"]) == event["id"]
            for request in polled["requests"]:
                app.complete(answered_by(request, user.phone.network(request)))
    items = [item for worker in workers for item in finish_worker(worker)]
    assert [worker.returncode for worker in workers] == [0, 0]
    assert len(items) == 30
    # and no answer is dropped: each item is parked, and the others' events came here as well
    assert {item["id"] for item in parked_items(app)} == {*items, *mine}
    assert len(set(told.values())) == len(told)
    assert set(told.values()) <= {*items, *mine}


def test_A5_pages_of_durable_events_follow_each_other(sign_in: MakeUser) -> None:
    """After 200 unacknowledged events the rest never came, and `wake_in_ms` stayed 0."""
    user = sign_in(tables=RPC)
    ids = park(user.app, 450)
    # Given a handle that has handed out nothing
    app = user.restart(online=False)
    # When the host polls without acknowledging
    told: list[str] = []
    for _ in range(3):
        polled = app.poll()
        assert len(seqs(polled)) <= PAGE
        told += parked_in(polled)
    # Then every event came once, and the host sleeps
    assert sorted(told) == sorted(ids)
    assert sleeps(polled)
    # The oldest return, until they are acknowledged
    polled = app.poll()
    assert parked_in(polled) == told[:PAGE]
    assert sleeps(polled)
    assert seqs(app.poll({"only_new": True})) == []
    assert parked_in(app.poll({"ack": max(seqs(polled))})) == told[PAGE : 2 * PAGE]


def test_A5_nothing_comes_beyond_an_event_that_is_held_back(sign_in: MakeUser) -> None:
    """A decision with a high number came with the first page; its ack deleted the rest unseen."""
    user = sign_in(tables=RPC)
    ids = park(user.app, 450)
    # When a host acknowledges all that each poll brings, while one-time events have higher numbers
    app = user.restart()
    told: list[str] = []
    others: list[str] = []
    ack = 0
    for _ in range(10):
        polled = app.poll({"ack": ack})
        told += parked_in(polled)
        others += [e["type"] for e in polled["events"] if e["type"] not in DURABLE]
        ack = max([ack, *(e["seq"] for e in polled["events"])])
        for request in polled["requests"]:
            answered(app, request)
    assert "pull_completed" in others
    # Then it has seen each event once
    assert sorted(told) == sorted(ids)
    assert seqs(app.poll()) == []


def test_A5_an_ack_deletes_only_what_was_handed_out(sign_in: MakeUser) -> None:
    """An acknowledgement deleted every event below its number."""
    user = sign_in()
    park(user.app, 3)
    app = user.restart(online=False)
    ids = parked_in(app.poll({"ack": 1_000_000}))
    assert len(ids) == 3
    app = user.restart(online=False)
    assert parked_in(app.poll({"max_events": 1})) == ids[:1]
    assert parked_in(app.poll({"ack": 1_000_000})) == ids[1:]


def test_A5_a_host_that_takes_no_events_is_not_woken_for_them(sign_in: MakeUser) -> None:
    """`max_events` 0 leaves events where they are; they wake the host when it takes some again."""
    user = sign_in()
    ids = park(user.app, 2)
    app = user.restart(online=False)
    polled = app.poll({"max_events": 0})
    assert polled["events"] == []
    assert sleeps(polled)
    assert app.poll({"max_events": 1})["wake_in_ms"] == 0
    polled = app.poll()
    assert sorted(parked_in(polled)) == sorted(ids)
    assert sleeps(polled)
    # And all come again to a host that could not show them
    assert parked_in(app.poll({"only_new": True})) == []
    assert parked_in(app.poll({"only_new": True, "from_oldest": True})) == parked_in(polled)


def test_A5_newer_events_of_another_user_hide_none(
    sign_in: MakeUser, directory: DirectoryFixtures
) -> None:
    """The last number handed out was kept for all users together: an older event never woke."""
    user = sign_in()
    ids = park(user.app, 1)
    # Given an event that this handle has not handed out, and a newer one of another user
    app = user.restart()
    app.session_logout()
    app.settle()
    app.sign_in(directory.person(user.org))
    park(app, 1)
    ack = max(seqs(app.poll()))
    app.session_logout()
    settle(app)
    # When the first user is back, and the host goes on acknowledging
    app.session_start({"session": directory.session(user.person)})
    told: list[str] = []
    for _ in range(10):
        polled = app.poll({"ack": ack})
        told += parked_in(polled)
        for request in polled["requests"]:
            app.complete(answered_by(request, app.phone.network(request)))
    assert ids[0] in told


def run_of(app: App) -> dict[str, Any]:
    """Settle until another run is complete; returns its event."""
    app.settle_until("sync_completed")
    return app.of_type("sync_completed")[-1]


def test_stored_items_are_named(sign_in: MakeUser) -> None:
    """No event named the items that were stored: a host could not mark its own rows."""
    app = sign_in().app
    # The first two have other columns than the rest, so they are sent alone, and there is progress.
    good = sorted([*(add(app, note="first") for _ in range(2)), add(app)])
    bad = add(app, minutes=BAD_MINUTES)
    done = run_of(app)
    assert (sorted(done["ids"]), done["ids_truncated"]) == (good, False)
    progress = app.of_type("sync_progress")[-1]
    assert set(progress["ids"]) <= set(good)
    assert (len(progress["ids"]), progress["ids_truncated"]) == (progress["sent"], False)
    # A parked item is not among them, and the message does not say that everything was sent
    assert bad not in done["ids"]
    assert (done["sent"], done["parked"]) == (3, 1)
    assert done["message"]["code"] == "sync_completed_parked"
    # The next run names its own items only
    item = add(app)
    done = run_of(app)
    assert (done["ids"], done["message"]["code"]) == ([item], "sync_completed")


def test_a_run_that_only_parks_does_not_say_that_it_sent(sign_in: MakeUser) -> None:
    """`sync_completed` with 0 sent and 1 parked said: what was waiting has been sent."""
    app = sign_in().app
    add(app, minutes=BAD_MINUTES)
    done = run_of(app)
    assert (done["sent"], done["parked"], done["ids"]) == (0, 1, [])
    assert done["message"]["code"] == "sync_completed_parked"


def test_a_run_that_leaves_items_waiting_says_so(sign_in: MakeUser) -> None:
    """The message of a run says when something still waits."""
    user = sign_in()
    app = user.app
    user.phone.network.alter.append(
        lambda request, answer: (
            {**answer, "status": 403, "body": '{"code":"42501"}'}
            if request["purpose"] == "upload" and "waits" in str(request["body"])
            else {**answer, "headers": {}, "body": "[]"}
            if request["purpose"] == "guard"
            else answer
        )
    )
    app.queue_add(
        {
            "kind": "activity",
            "payload": {"type": "visit", "minutes": 1},
            "occurred_at_ms": user.phone.now_ms,
        }
    )
    app.register(note="waits")
    done = run_of(app)
    assert (done["sent"], done["waiting"]) == (1, 1)
    assert done["message"]["code"] == "sync_completed_waiting"


def test_stored_ids_are_kept_over_a_restart_up_to_the_bound(sign_in: MakeUser) -> None:
    """The ids of a run survive a restart; from the 501st on a flag says that there are more."""
    user = sign_in()
    user.app.go_offline()
    ids = [add(user.app) for _ in range(600)]
    user.app.go_online()
    uploads = 0
    while not uploads:
        for request in user.app.poll()["requests"]:
            user.app.complete(answered_by(request, user.phone.network(request)))
            uploads += request["purpose"] == "upload"
    app = user.restart()
    done = run_of(app)
    assert (done["sent"], done["ids_truncated"]) == (len(ids), True)
    assert len(done["ids"]) == len(set(done["ids"])) == 500
    assert set(done["ids"]) <= set(ids)


def test_stored_ids_of_before_a_restart_are_named_after_it(sign_in: MakeUser) -> None:
    """A run of two halves, with a restart between them, names the items of both."""
    user = sign_in()
    network = user.phone.network
    user.app.go_offline()
    ids = {add(user.app), add(user.app, note="later")}
    user.app.go_online()
    # Given one of two batches stored
    network.alter.append(
        lambda request, answer: (
            {"error": "offline"}
            if request["purpose"] == "upload" and network.count("upload") > 1
            else answer
        )
    )
    user.app.settle()
    assert user.app.of_type("sync_completed") == []
    # When the other is sent after a restart
    network.alter.clear()
    done = run_of(user.restart())
    assert (set(done["ids"]), done["ids_truncated"]) == (ids, False)


def test_the_run_of_a_cancelled_item_ends(sign_in: MakeUser) -> None:
    """`sync_completed.duration_ms` was 20 days: a cancelled item's run stayed open."""
    user = sign_in()
    app = user.app
    # Given an item that was sent in vain and cancelled
    user.phone.network.up = False
    user.phone.network.failure = "dns"
    item = add(app)
    app.settle()
    app.queue_cancel({"id": item})
    user.phone.network.up = True
    # When another one is sent much later
    user.phone.pass_time(2 * 3600)
    app.settle()
    add(app)
    done = run_of(app)
    # Then its run began with it
    assert (done["sent"], done["parked"]) == (1, 0)
    assert done["duration_ms"] < 60_000


# A file that takes the place of the main file -----------------------------------------------------


def test_A7_numbers_go_on_in_a_file_that_replaces_one_without_its_key(sign_in: MakeUser) -> None:
    """Seeds 1004485, 1005135 and 1010954: a number that was acknowledged came again."""
    # Given an app that has acknowledged several events
    user = sign_in()
    first = user.app
    for _ in range(3):
        add(first)
        first.settle()
    acknowledged = max(event["seq"] for event in first.events)
    # When the key store tells another process that the device key is gone
    lose(user.phone)
    with second_handle(user) as second:
        until_lost(second)
        second.sign_in(user.person)
        park(second, 1)
        # Then its events have higher numbers
        assert min(event["seq"] for event in second.events) > acknowledged
        # and the first process, which still acknowledges the former ones, is told of the new ones
        told = first.poll({"ack": acknowledged})
        assert "item_parked" in {event["type"] for event in told["events"]}
        assert min(event["seq"] for event in told["events"]) > acknowledged
        # and deletes none of them
        again = first.poll({"ack": acknowledged, "from_oldest": True})
        assert seqs(again) == seqs(told)


def test_A7_numbers_go_on_in_a_file_that_replaces_a_damaged_one(sign_in: MakeUser) -> None:
    # Given an app that has acknowledged several events
    user = sign_in()
    for _ in range(3):
        add(user.app)
        user.app.settle()
    acknowledged = max(event["seq"] for event in user.app.events)
    # When the file's header is destroyed
    app = restart_after(user)
    # Then the event that says so has a higher number
    [number] = seqs(app.poll())
    assert number > acknowledged


# Slow readers -------------------------------------------------------------------------------------


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
