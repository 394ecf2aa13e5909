"""Nothing but the server's own proof ends a session (finding A6)."""

from __future__ import annotations

import json
from typing import Any, cast

import pytest

from support.directory_fixtures import DirectoryFixtures
from support.held import return_to_foreground, unlock
from support.phone import TOKEN_S, Phone
from support.refusals import live
from support.screens import why
from support.sizes import sampled
from support.users import MakeUser, SignedIn

DAY = 86_400


@pytest.mark.parametrize(
    "code",
    [
        "validation_failed",
        *sampled(["access_denied", "forbidden", "no_authorization", "portal"], 2),
    ],
)
def test_ATK_6_a_code_that_proves_nothing_never_takes_the_session_away(
    sign_in: MakeUser, directory: DirectoryFixtures, code: str
) -> None:
    user = sign_in(policy={"biometric": "off"})
    item = user.offline().register()
    body = json.dumps({"code": code, "message": "Please accept our terms"})
    for path in ("/auth/v1", "/rest/v1"):
        directory.control.respond(path, 403, body=body, times=-1)
    user.app.go_online()
    for _ in range(4):
        user.app.session_background()
        user.app.session_foreground()
        live(user, 2)
    live(user, TOKEN_S)
    user.restart()
    live(user, 2 * 3600)
    app = user.app
    assert app.session_status()["state"] == "active"
    assert app.session_status()["stale"] is True
    assert app.screen["screen"] == "home"
    assert [banner["code"] for banner in app.screen["banners"]] == ["stale_data"]
    assert app.of_type("session_ended") == []
    asked = directory.refreshes()
    assert 20 <= asked <= 150
    directory.control.clear_faults()
    live(user, 400)
    assert directory.refreshes() > asked
    assert app.session_status()["owed"] == []
    assert app.session_status()["stale"] is False
    assert [str(row["id"]) for row in directory.activities(user.person)] == [item]


@pytest.mark.parametrize(
    "body",
    [
        '{"code":"portal","code":"session_not_found"}',
        '{"code":400,"error_code":"portal","error_code":"refresh_token_not_found"}',
        '{"error":"invalid_grant","error":"invalid_grant"}',
    ],
)
def test_ATK_6_a_code_that_is_given_twice_proves_nothing(
    sign_in: MakeUser, directory: DirectoryFixtures, body: str
) -> None:
    user = sign_in(policy={"biometric": "off"})
    directory.control.respond("/auth/v1", 400, body=body, times=-1)
    live(user, TOKEN_S)
    user.restart()
    live(user, 60)
    assert user.app.of_type("session_ended") == []
    assert user.app.session_status()["state"] == "active"
    directory.control.clear_faults()
    live(user, 600)
    assert user.app.session_status()["stale"] is False


@pytest.mark.parametrize("expired", [False, True])
@pytest.mark.parametrize("code", ["access_denied", "portal"])
def test_ATK_6_a_portal_s_minute_costs_minutes(
    sign_in: MakeUser, directory: DirectoryFixtures, code: str, expired: bool
) -> None:
    user = sign_in(policy={"biometric": "off", "background_timeout_s": 10**6})
    body = json.dumps({"code": code, "message": "Please accept our terms"})
    for path in ("/auth/v1", "/rest/v1"):
        directory.control.respond(path, 403, body=body, times=-1)
    if expired:
        user.phone.pass_time(TOKEN_S)
    item = user.app.register()
    for _ in range(6):
        user.app.session_background()
        user.app.session_foreground()
        live(user, 10)
    directory.control.clear_faults()
    live(user, 600)
    assert user.app.of_type("session_ended") == []
    assert user.app.session_status()["state"] == "active"
    assert user.app.session_status()["owed"] == []
    assert user.app.screen["screen"] == "home"
    assert [str(row["id"]) for row in directory.activities(user.person)] == [item]


@pytest.mark.parametrize("days", sampled([-30, 30], 2))
@pytest.mark.parametrize("how", ["running", "restarted", "rebooted"])
@pytest.mark.parametrize("online", [True, False])
def test_ATK_6_a_clock_wrong_at_the_sign_in_and_corrected_later_does_not_end_the_session(
    phone: Phone, directory: DirectoryFixtures, days: int, how: str, online: bool
) -> None:
    person = directory.person(directory.organisation())
    ahead = phone.network.ahead_ms()
    phone.network.ahead_ms = lambda: ahead
    phone.set_wall_clock(days * DAY)
    app = phone.start()
    app.session_adopt({"session": cast(Any, directory.session(person))})
    app.settle()
    assert app.screen["screen"] == "home"
    if not online:
        app.go_offline()
    item = app.register()
    if how == "rebooted":
        phone.reboot()
    if how == "restarted":
        phone.close()
    phone.set_wall_clock(-days * DAY)
    for _ in range(2):
        app = phone.app or phone.start(online=online)
        if how == "running":
            app.session_background()
            app.session_foreground()
        app.settle()
        assert app.screen["screen"] in {"home", "unlock"}
        if app.screen["screen"] == "unlock":
            app.touch()
            app.settle()
        assert app.screen["screen"] == "home"
        assert app.of_type("session_ended") == []
        age = app.session_status()["validated_age_ms"]
        assert age is not None
        assert age < DAY * 1000
        if how != "running":
            phone.close()
    app = phone.app or phone.start()
    app.go_online()
    if app.screen["screen"] == "unlock":
        app.touch()
    for _ in range(5):
        app.settle()
        phone.pass_time(60)
    assert [str(row["id"]) for row in directory.activities(person)] == [item]


@pytest.mark.parametrize("online", [True, False])
def test_ATK_6_a_clock_set_back_and_forth_does_not_end_the_session(
    user: SignedIn, directory: DirectoryFixtures, online: bool
) -> None:
    network = user.phone.network
    ahead = network.ahead_ms()
    network.ahead_ms = lambda: ahead
    if not online:
        user.app.go_offline()
    for days in (-40, 80, -40, 40, -80, 40):
        user.phone.set_wall_clock(days * DAY)
        user.app.settle()
        return_to_foreground(user)
        for started in (False, True):
            if started:
                user.restart(online=online)
            assert user.app.screen["screen"] in {"home", "unlock"}
            unlock(user)
            user.app.settle()
            assert user.app.screen["screen"] == "home"
            assert user.app.of_type("session_ended") == []
            assert user.app.session_status()["state"] == "active"


def test_ATK_6_a_session_handed_over_under_a_clock_that_was_moved_back_does_not_end(
    user: SignedIn, directory: DirectoryFixtures
) -> None:
    network = user.phone.network
    ahead = network.ahead_ms()
    network.ahead_ms = lambda: ahead
    session = directory.session(user.person)
    user.app.go_offline()
    user.phone.set_wall_clock(-30 * DAY)
    user.app.session_adopt({"session": session})
    user.phone.reboot()
    user.phone.set_wall_clock(30 * DAY)
    user.restart(online=False)
    assert why(user.app.screen) != "session_ended"
    assert user.app.session_status()["state"] != "none"


def test_ATK_6_a_revocation_leased_under_a_wrong_clock_is_sent_when_the_lease_ends(
    user: SignedIn, directory: DirectoryFixtures
) -> None:
    network = user.phone.network
    ahead = network.ahead_ms()
    network.ahead_ms = lambda: ahead
    user.app.go_offline()
    user.app.session_logout({"scope": "global"})
    user.phone.set_wall_clock(26 * 3600)
    user.app.go_online()
    assert [request["purpose"] for request in user.app.poll()["requests"]] == ["revoke"]
    user.phone.close()
    user.phone.set_wall_clock(-26 * 3600)
    user.phone.pass_time(120)
    user.restart()
    user.app.settle()
    assert directory.control.sessions(user.person.id) == []
    assert user.app.session_status()["owed"] == []
