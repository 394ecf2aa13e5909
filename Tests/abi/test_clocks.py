"""Clocks that are wrong, jump, stop or restart, and servers that send Retry-After."""

from __future__ import annotations

from typing import Any

import pytest

from support import contact_data
from support.contact_data import pull
from support.directory_fixtures import DirectoryFixtures
from support.held import unlock
from support.phone import TOKEN_S
from support.sizes import crossed
from support.users import MakeUser, SignedIn


@pytest.mark.parametrize(
    "hours", crossed([-30, -13, -1, 1, 13, 30], fast=lambda hours: hours in (-13, -1, 30))
)
def test_SES_7_a_wrong_clock_at_the_start_causes_at_most_one_refresh(
    user: SignedIn, directory: DirectoryFixtures, hours: int
) -> None:
    network = user.phone.network
    ahead = network.ahead_ms()
    network.ahead_ms = lambda: ahead
    user.phone.close()
    user.phone.set_wall_clock(hours * 3600)
    for _ in range(3):
        user.restart()
        assert user.app.screen["screen"] in {"home", "unlock"}
        unlock(user)
        user.app.settle()
        assert user.app.screen["screen"] == "home"
        assert user.app.of_type("session_ended") == []
        assert user.app.session_status()["state"] == "active"
    assert directory.refreshes() <= 1
    offset = user.app.session_status()["clock_offset_ms"]
    assert abs(offset + hours * 3_600_000) < 5000


def test_SES_7_a_clock_moved_back_does_not_prolong_a_pause(
    user: SignedIn, directory: DirectoryFixtures
) -> None:
    directory.control.respond("/auth/v1/token", 503, body="busy", times=1)
    user.app.wait(TOKEN_S + 60)
    assert user.phone.network.count("refresh") == 1
    user.phone.set_wall_clock(-3 * 3600)
    wake = user.app.poll()["wake_in_ms"]
    assert wake is not None
    assert wake < 300_000
    user.app.wait(wake / 1000 + 1)
    assert user.phone.network.count("refresh") == 2
    assert user.app.session_status()["owed"] == []


def test_SES_7_the_token_s_life_counts_by_the_monotonic_clock(
    user: SignedIn, directory: DirectoryFixtures
) -> None:
    user.phone.set_wall_clock(2 * 3600)
    assert user.app.session_status()["owed"] == []
    user.phone.set_wall_clock(-2 * 3600)
    for _ in range(TOKEN_S // 60 - 2):
        user.app.wait(60)
    assert directory.refreshes() == 0
    user.app.wait(60)
    assert directory.refreshes() == 1


@pytest.mark.parametrize("offset_s", [-7200, 7200])
def test_SES_7_token_expiry_counts_in_server_time(
    user: SignedIn, directory: DirectoryFixtures, offset_s: int
) -> None:
    ahead = user.phone.network.ahead_ms()
    user.phone.network.ahead_ms = lambda: ahead
    user.phone.set_wall_clock(-offset_s)
    user.app.sync()
    assert abs(user.app.session_status()["clock_offset_ms"] - offset_s * 1000) < 5000
    assert user.app.session_status()["state"] == "active"
    assert user.app.screen["screen"] == "home"
    assert directory.refreshes() == 0


CALLS = ["session_status", "org_list", "poll", "sync_now", "session_foreground", "queue_explain"]


def test_SES_6_fifty_calls_during_a_back_off_send_no_refresh(
    sign_in: MakeUser, directory: DirectoryFixtures
) -> None:
    user = sign_in(policy={"background_timeout_s": 10**6})
    directory.control.respond("/auth/v1/token", 503, body="busy", times=-1)
    user.app.wait(TOKEN_S + 60)
    assert directory.refreshes() == 1
    steps = []
    for step in range(2, 7):
        for number in range(50):
            getattr(user.app, CALLS[number % len(CALLS)])()
            user.app.settle()
        assert directory.refreshes() == step - 1
        wake = user.app.poll()["wake_in_ms"]
        assert wake is not None
        assert wake > 100, "wake_in_ms lets the host spin"
        steps.append(wake)
        user.app.wait(wake / 1000 + 0.01)
        assert directory.refreshes() == step
    assert all(2_000 <= wake <= 300_000 for wake in steps)
    assert user.app.of_type("session_ended") == []
    assert user.app.session_status()["state"] == "active"


@pytest.mark.parametrize("form", ["retry_after_s", "retry_after_date_s"])
def test_SES_6_retry_after_is_a_floor_and_survives_a_restart(
    sign_in: MakeUser, directory: DirectoryFixtures, form: str
) -> None:
    user = sign_in(policy={"biometric": "off"})
    asked: Any = {form: 600, "body": {"code": "over_request_rate_limit", "message": "x"}}
    directory.control.respond("/auth/v1/token", 429, times=1, **asked)
    user.app.wait(TOKEN_S + 60)
    assert directory.refreshes() == 1
    for passed in (60, 200, 300):
        user.phone.pass_time(passed)
        user.restart()
        user.app.go_offline()
        user.app.reconnect()
        assert directory.refreshes() == 1
    user.app.wait(340)
    assert directory.refreshes() == 2
    assert user.app.session_status()["owed"] == []


@pytest.mark.parametrize("state", ["past the limit", "locked", "signed out", "refresh fails"])
def test_a_host_that_follows_wake_in_ms_never_spins(
    sign_in: MakeUser, directory: DirectoryFixtures, state: str
) -> None:
    user = sign_in(policy={"offline_limit_s": 86_400})
    user.offline().register()
    if state == "past the limit":
        user.phone.pass_time(90_000)
        user.restart(online=False)
    if state == "locked":
        user.app.session_lock()
        user.phone.pass_time(TOKEN_S + 60)
    if state == "signed out":
        directory.control.respond("/auth/v1/logout", 503, times=-1)
        user.app.session_logout({"unsent": "keep"})
    if state == "refresh fails":
        directory.control.respond("/auth/v1/token", 503, times=-1)
        user.phone.pass_time(TOKEN_S + 60)
    user.app.go_online()
    for _ in range(5):
        user.app.settle()
        wake = user.app.poll()["wake_in_ms"]
        assert wake is None or wake > 100
        user.phone.pass_time((wake or 60_000) / 1000)


def test_a_clock_that_is_moved_back_does_not_put_the_reconcile_off(
    user: SignedIn, directory: DirectoryFixtures
) -> None:
    ids = [directory.contact(user.org, name) for name in ("Kari Prøve", "Ola Prøve")]
    pull(user, after_s=60)
    assert set(contact_data.cached(user.app)) == set(ids)
    user.phone.set_wall_clock(-10 * 3600)
    directory.control.sql("delete from contacts where id = %s", ids[0])
    [event] = pull(user, after_s=60)
    assert event["removed"] == 1
    assert set(contact_data.cached(user.app)) == {ids[1]}
