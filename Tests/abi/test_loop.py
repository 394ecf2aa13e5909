"""The host's loop: requests, answers, waiting and waking, and the Python package's runner."""

from __future__ import annotations

import json
import threading
import time
from queue import Queue
from typing import Any

import pytest
from holdfast import HoldfastError, Runner
from holdfast.transport import Answer
from holdfast.types import HttpRequest
from patience import eventually, patience

from support.directory_fixtures import DirectoryFixtures
from support.errors import error_of
from support.held import taken
from support.phone import TOKEN_S, Phone
from support.queue import add, stored
from support.screens import seen, why
from support.users import MakeUser, SignedIn
from support.waking import HANG_S, Waiting, readable


def test_the_descriptor_is_readable_while_there_is_something_to_poll(user: SignedIn) -> None:
    app = user.app
    app.settle()
    descriptor = app.wake_fd()
    assert descriptor >= 0
    assert not readable(descriptor)
    app.register()
    assert readable(descriptor)
    assert readable(descriptor)
    app.settle_until("sync_completed")
    app.settle()
    assert not readable(descriptor)
    app.go_offline()
    app.settle()
    app.register()
    assert not readable(descriptor)
    app.go_online()
    assert readable(descriptor)


@pytest.mark.parametrize("device", ["unlocked", "locked at first"])
def test_a_process_that_only_polls_sends_what_waits(
    user: SignedIn, directory: DirectoryFixtures, device: str
) -> None:
    user.app.settle()
    item = user.offline().register()
    user.app.session_background()
    user.phone.close()
    user.phone.network.up = True
    user.phone.keychain.unlocked_since_boot = device == "unlocked"
    worker = user.phone.open()
    assert readable(worker.wake_fd())
    worker.settle()
    if device == "locked at first":
        assert not stored(directory, user.person)
        user.phone.keychain.unlocked_since_boot = True
        worker.settle_until("sync_completed", within_s=30)
    assert stored(directory, user.person) == [item]
    assert worker.shown is None
    with pytest.raises(HoldfastError, match="nobody has come in"):
        worker.queue_list()


def test_a_poll_before_the_user_comes_refreshes_no_expired_token(user: SignedIn) -> None:
    """At a cold start an expired token locks: a refresh by the loop must not come first."""
    user.app.settle()
    user.phone.close()
    user.phone.pass_time(TOKEN_S + 60)
    app = user.phone.open()
    user.phone.network.forget()
    app.settle()
    assert user.phone.network.count("refresh") == 0
    screen = app.session_resume()
    assert seen(screen) == ("unlock", "token_expired")


def test_a_poll_asks_for_no_key_while_nobody_is_signed_in(phone: Phone) -> None:
    app = phone.open()
    app.settle()
    assert not phone.keychain.calls
    assert app.step().wake_in_ms is None


def test_next_returns_at_its_timeout(sign_in: MakeUser) -> None:
    app = sign_in().app
    app.settle()
    began = time.monotonic()
    assert "wake_in_ms" in app.next(150)
    assert time.monotonic() - began > 0.1


def test_the_runner_s_thread_sends_items_and_passes_news(
    sign_in: MakeUser, directory: DirectoryFixtures
) -> None:
    user = sign_in(clock="system")
    things: Queue[Any] = Queue()
    with Runner(user.app, things.put):
        ids = [user.app.register(minutes=5 + number) for number in range(3)]
        sent = 0
        while sent < 3:
            sync = things.get(timeout=HANG_S).get("sync")
            sent += sync["sent"] if sync and sync["message"] else 0
    assert sorted(str(row["id"]) for row in directory.activities(user.person)) == sorted(ids)


# Earlier wake-up times ----------------------------------------------------------------------------


@pytest.fixture
def backing_off(sign_in: MakeUser, directory: DirectoryFixtures) -> SignedIn:
    """An offline app whose services both back off and whose last wake_in_ms was null."""
    user = sign_in()
    busy = {"code": "PGRST001", "message": "no connection", "details": None, "hint": None}
    directory.control.respond("/rest/v1", 503, body=busy, times=-1, retry_after_s=120)
    user.app.sync()
    limited = {"code": "over_request_rate_limit", "message": "slow down"}
    directory.control.respond("/auth/v1", 429, body=limited, times=-1, retry_after_s=90)
    user.app.wait(TOKEN_S + 60)
    user.app.go_offline()
    user.app.settle()
    assert user.app.poll()["wake_in_ms"] is None
    assert not readable(user.app.wake_fd())
    return user


def test_coming_online_while_both_services_back_off_wakes_the_host(backing_off: SignedIn) -> None:
    app = backing_off.app
    app.network_report({"online": True})
    # Then the descriptor is readable, so that the host polls for the new wake-up time
    assert readable(app.wake_fd())
    step = app.poll()
    assert step["requests"] == []
    assert step["wake_in_ms"] is not None
    assert step["wake_in_ms"] <= 300_000
    assert not readable(app.wake_fd())
    app.session_status()
    assert not readable(app.wake_fd())


def test_a_waiting_thread_is_woken_too(backing_off: SignedIn) -> None:
    waiting = Waiting(backing_off.app)
    backing_off.app.network_report({"online": True})
    assert waiting.ends()
    assert "screen" in waiting.answers[0]


def test_a_descriptor_that_is_asked_for_late_tells_of_what_there_is(sign_in: MakeUser) -> None:
    waiting, idle = sign_in().app, sign_in().app
    for app in (waiting, idle):
        app.settle()
        app.poll()
        app.register()
    idle.settle_until("sync_completed")
    idle.settle()
    assert readable(waiting.wake_fd())
    assert not readable(idle.wake_fd())
    waiting.settle_until("sync_completed")
    waiting.settle()
    assert not readable(waiting.wake_fd())


def test_an_earlier_clock_wakes_and_a_later_one_does_not(
    user: SignedIn, directory: DirectoryFixtures
) -> None:
    directory.control.respond("/auth/v1/token", 503, body="busy", times=-1, retry_after_s=600)
    user.app.wait(TOKEN_S + 60)
    assert user.app.poll()["wake_in_ms"] is not None
    assert not readable(user.app.wake_fd())
    user.phone.pass_time(60)
    assert not readable(user.app.wake_fd())


def test_the_host_is_woken_when_the_time_of_the_last_poll_is_over(user: SignedIn) -> None:
    user.phone.keychain.unlocked_since_boot = False
    app = user.restart()
    assert why(app.screen) == "keystore_locked"
    app.settle()
    assert app.poll()["wake_in_ms"] == 10_000
    assert not readable(app.wake_fd())
    user.phone.pass_time(6)
    app.session_status()
    assert not readable(app.wake_fd())
    user.phone.keychain.unlocked_since_boot = True
    user.phone.pass_time(4)
    assert readable(app.wake_fd())
    app.settle()
    assert app.screen["screen"] == "home"
    assert not readable(app.wake_fd())


def test_a_host_that_waits_before_its_first_poll_is_woken_in_time(user: SignedIn) -> None:
    user.phone.close()
    user.phone.keychain.unlocked_since_boot = False
    app = user.phone.open()
    assert why(app.session_resume()) == "keystore_locked"
    assert "wake_in_ms" in app.next(20)
    user.phone.keychain.unlocked_since_boot = True
    user.phone.pass_time(10)
    began = time.monotonic()
    assert "screen" in app.next(int(2000 * HANG_S))
    assert time.monotonic() - began < HANG_S
    app.settle()
    assert app.session_resume()["screen"] == "home"


# Requests and answers -----------------------------------------------------------------------------


def test_each_request_is_handed_out_once(user: SignedIn) -> None:
    user.app.register()
    request = taken(user, "upload")
    assert user.app.poll()["requests"] == []
    assert user.app.poll()["requests"] == []
    answer: Any = {"id": request["id"], **user.phone.network(request)}
    assert user.app.complete(answer) == {}
    assert user.app.complete(answer) == {}
    assert user.app.complete({"id": 999_999, "error": "offline"}) == {}


def test_requests_carry_the_headers_of_the_services(sign_in: MakeUser) -> None:
    user = sign_in(contacts=1)
    user.app.register()
    user.app.settle_until("sync_completed")
    purposes = set()
    for request in user.phone.network.sent:
        names = {name.lower() for name in request["headers"]}
        assert "apikey" in names
        assert request["url"].startswith(user.phone.backend.url)
        assert request["timeout_ms"] > 0
        if request["purpose"] in {"upload", "pull", "guard", "summary"}:
            assert "authorization" in names
            assert "/rest/v1/" in request["url"]
        if request["body"] is not None:
            json.loads(request["body"])
            assert "content-type" in names
        purposes.add(request["purpose"])
    assert {"guard", "pull", "summary", "upload"} <= purposes


def test_wake_in_ms_names_the_next_step_of_a_back_off(
    user: SignedIn, directory: DirectoryFixtures
) -> None:
    directory.control.respond("/rest/v1/activities", 503, body="busy", retry_after_s=30)
    user.app.register()
    user.app.settle()
    count = user.phone.network.count("upload")
    assert count == 1
    wake = user.app.poll()["wake_in_ms"]
    assert wake is not None
    assert 29_000 <= wake <= 60_000
    user.app.wait(wake / 1000 - 1)
    assert user.phone.network.count("upload") == count
    user.app.wait(1.1)
    assert user.phone.network.count("upload") == count + 1
    assert len(directory.activities(user.person)) == 1


def test_the_clock_of_the_system_cannot_be_set(sign_in: MakeUser) -> None:
    app = sign_in(clock="system").app
    error = error_of(app.clock_set, {"now_ms": 1})
    assert (error.code, error.status) == ("clock.not_manual", 2)


# The runner ---------------------------------------------------------------------------------------


#: Answers that the library cannot take.
UNUSABLE: dict[str, Any] = {
    "status 600": {"status": 600, "headers": {}, "body": "{}"},
    "status 999": {"status": 999, "headers": {}, "body": "{}"},
    "status 0": {"status": 0, "headers": {}, "body": None},
    "a NUL in the body": {"status": 200, "headers": {}, "body": "[\0]"},
    "a NUL in a header": {"status": 200, "headers": {"date": "a\0b"}, "body": "[]"},
    "a NUL in a header's name": {"status": 200, "headers": {"da\0te": "b"}, "body": "[]"},
    "a number that is none": {"status": float("nan"), "headers": {}, "body": "[]"},
    "a body of bytes": {"status": 200, "headers": {}, "body": b"[]"},
}


def test_ATK_8_an_answer_that_the_library_refuses_is_a_failed_request(
    user: SignedIn, directory: DirectoryFixtures
) -> None:
    items: list[str] = []
    for name, unusable in UNUSABLE.items():

        def instead(request: HttpRequest, answer: Answer, unusable: Any = unusable) -> Answer:  # noqa: ANN401
            return unusable if request["purpose"] == "upload" else answer  # type: ignore[no-any-return]

        user.phone.network.alter.append(instead)
        items.append(user.app.register())
        user.app.settle()
        assert user.app.queue_get({"id": items[-1]})["item"]["state"] == "pending", name
        user.phone.network.alter.clear()
        user.app.settle_until("sync_completed")
        assert stored(directory, user.person) == sorted(items), name


def test_ATK_8_a_refresh_is_not_behind_a_slow_upload(user: SignedIn) -> None:
    blocked, release = threading.Event(), threading.Event()
    sent: list[str] = []

    def transport(request: HttpRequest) -> Answer:
        sent.append(request["purpose"])
        if request["purpose"] == "upload":
            blocked.set()
            release.wait(patience(300))
        return user.phone.network(request)

    with Runner(user.app, transport=transport):
        try:
            user.app.register()
            assert blocked.wait(patience(60))
            user.phone.pass_time(TOKEN_S - 30)
            eventually(lambda: "refresh" in sent)
        finally:
            release.set()


def test_ATK_8_a_transport_that_raises_does_not_end_the_runner(
    sign_in: MakeUser, directory: DirectoryFixtures
) -> None:
    """An exception of the transport is a failed request, too."""
    user = sign_in(clock="system")
    failing = True

    def transport(request: HttpRequest) -> Answer:
        if failing:
            raise RuntimeError("a fault of the host")
        return user.phone.network(request)

    runner = Runner(user.app, transport=transport)
    with runner:
        item = user.app.register()
        eventually(lambda: user.app.queue_get({"id": item})["item"]["attempts"] > 0)
        failing = False
        user.app.network_report({"online": False})
        user.app.network_report({"online": True})
        user.app.sync_now()
        eventually(lambda: len(directory.activities(user.person)) == 1)


def test_the_state_of_a_run_comes_at_most_five_times_a_second(
    sign_in: MakeUser, directory: DirectoryFixtures
) -> None:
    user = sign_in(clock="system")
    app = user.offline()
    for number in range(120):
        app.org_list()
        add(app, **({"note": str(number)} if number % 2 else {}), minutes=1 + number)
    directory.control.set(max_body_rows=2)
    app.go_online()
    begun = time.monotonic()
    app.settle(limit=2000)
    seconds = time.monotonic() - begun
    progress = [one for one in app.of_type("sync") if one["running"]]
    assert 1 <= len(progress) <= seconds * 5 + 1
    assert [e["sent"] for e in progress] == sorted(e["sent"] for e in progress)
    assert all(e["left"] + e["parked"] + e["sent"] == 120 for e in progress)


def test_an_idle_app_is_rarely_woken(user: SignedIn) -> None:
    app = user.app
    wakes = 0
    passed = 0.0
    while passed < 3 * 3600:
        app.settle()
        wake = app.poll()["wake_in_ms"]
        assert wake is not None
        passed += wake / 1000
        user.phone.pass_time(wake / 1000)
        wakes += 1
        assert wakes < 60
    user.phone.network.alter.append(lambda request, answer: {"error": "timeout"})
    wakes, passed = 0, 0
    while passed < 3 * 3600:
        app.settle()
        wake = app.poll()["wake_in_ms"]
        assert wake is not None
        passed += wake / 1000
        user.phone.pass_time(wake / 1000)
        wakes += 1
        assert wakes < 400
