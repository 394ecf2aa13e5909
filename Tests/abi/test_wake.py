"""The wake descriptor is also raised when work falls due earlier than the last wake_in_ms."""

from __future__ import annotations

import pytest

from support.directory_fixtures import DirectoryFixtures
from support.phone import TOKEN_S
from support.users import MakeUser, SignedIn
from support.waking import Waiting, readable


@pytest.fixture
def backing_off(sign_in: MakeUser, directory: DirectoryFixtures) -> SignedIn:
    """An offline app whose services both back off and whose last wake_in_ms was null."""
    user = sign_in()
    busy = {"code": "PGRST001", "message": "no connection", "details": None, "hint": None}
    directory.control.respond("/rest/v1", 503, body=busy, times=-1, retry_after_s=120)
    user.app.sync_now()
    user.app.settle()
    limited = {"code": "over_request_rate_limit", "message": "slow down"}
    directory.control.respond("/auth/v1", 429, body=limited, times=-1, retry_after_s=90)
    user.phone.pass_time(TOKEN_S + 60)
    user.app.settle()
    user.app.go_offline()
    user.app.settle()
    assert user.app.poll()["wake_in_ms"] is None
    assert not readable(user.app.wake_fd())
    return user


def test_coming_online_while_both_services_back_off_wakes_the_host(backing_off: SignedIn) -> None:
    # Given an app without a wake-up time
    app = backing_off.app
    # When the network comes back, and nothing may be sent yet
    app.network_set({"online": True})
    # Then the descriptor is readable, so that the host polls for the new wake-up time
    assert readable(app.wake_fd())
    step = app.poll()
    assert step["requests"] == []
    assert step["wake_in_ms"] is not None
    assert step["wake_in_ms"] <= 300_000
    # and after that poll it is no longer readable
    assert not readable(app.wake_fd())
    app.session_status()
    assert not readable(app.wake_fd())


def test_a_waiting_thread_is_woken_too(backing_off: SignedIn) -> None:
    waiting = Waiting(backing_off.app)
    backing_off.app.network_set({"online": True})
    assert waiting.ends()
    assert waiting.answers == [True]


def test_a_descriptor_that_is_asked_for_late_tells_of_what_there_is(sign_in: MakeUser) -> None:
    # Given two apps, of which one has an item to send and the other has sent it
    waiting, idle = sign_in().app, sign_in().app
    for app in (waiting, idle):
        app.settle()
        app.poll()
        app.register()
    idle.settle_until("sync_completed")
    idle.settle()
    # When the host asks for the descriptors for the first time
    # Then only the one with work is readable
    assert readable(waiting.wake_fd())
    assert not readable(idle.wake_fd())
    # And it stays right
    waiting.settle_until("sync_completed")
    waiting.settle()
    assert not readable(waiting.wake_fd())


def test_calls_without_an_earlier_wake_up_do_not_wake(sign_in: MakeUser) -> None:
    app = sign_in().app
    app.settle()
    app.poll()
    for call in ("session_status", "org_list", "queue_list", "queue_explain", "sync_status"):
        getattr(app, call)()
        assert not readable(app.wake_fd()), call


def test_an_earlier_clock_wakes_and_a_later_one_does_not(
    sign_in: MakeUser, directory: DirectoryFixtures
) -> None:
    # Given a refresh that backs off
    user = sign_in()
    directory.control.respond("/auth/v1/token", 503, body="busy", times=-1, retry_after_s=600)
    user.phone.pass_time(TOKEN_S + 60)
    user.app.settle()
    assert user.app.poll()["wake_in_ms"] is not None
    assert not readable(user.app.wake_fd())
    user.phone.pass_time(60)
    assert not readable(user.app.wake_fd())


def test_an_earlier_wake_up_time_wakes_the_host(
    sign_in: MakeUser, directory: DirectoryFixtures
) -> None:
    # Given a revoke that backs off from a busy server, on an offline phone
    user = sign_in()
    app = user.app
    directory.control.respond("/auth/v1/logout", 503, body="busy", times=-1, retry_after_s=90)
    app.session_logout()
    app.settle()
    app.go_offline()
    app.settle()
    assert app.poll()["wake_in_ms"] is None
    assert not readable(app.wake_fd())
    # When the network comes back during the back-off
    app.network_set({"online": True})
    # Then there is no request or event, but the host is woken for the new wake-up time
    assert readable(app.wake_fd())
    step = app.poll()
    assert (step["requests"], step["events"]) == ([], [])
    assert step["wake_in_ms"] is not None
    assert not readable(app.wake_fd())


def test_the_host_is_woken_when_the_time_of_the_last_poll_is_over(sign_in: MakeUser) -> None:
    """The 10 s after which the key store is asked again began anew at every query."""
    # Given an app that waits for the key store, and a host that asks for something meanwhile
    user = sign_in()
    user.phone.keychain.unlocked_since_boot = False
    app = user.restart()
    assert app.screen["reason"] == "keystore_locked"
    app.settle()
    assert app.poll()["wake_in_ms"] == 10_000
    assert not readable(app.wake_fd())
    user.phone.pass_time(6)
    app.session_status()
    assert not readable(app.wake_fd())
    # When the time of the poll is over, and the key store has the keys
    user.phone.keychain.unlocked_since_boot = True
    user.phone.pass_time(4)
    # Then the descriptor is readable, and a poll goes on
    assert readable(app.wake_fd())
    app.settle()
    assert app.screen["screen"] == "home"
    assert not readable(app.wake_fd())
