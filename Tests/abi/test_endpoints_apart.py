"""Pauses are kept apart by purpose, and only the service itself may ask for a long one."""

from __future__ import annotations

import pytest
from holdfast.transport import Answer

from support.directory_fixtures import PASSWORD, DirectoryFixtures
from support.held import taken
from support.phone import TOKEN_S
from support.queue import EMPTY, add, stored
from support.refusals import coded
from support.sizes import crossed, sized
from support.users import MakeUser, SignedIn

#: What each purpose's requests are sent to.
PATHS = {
    "guard": ("/rest/v1/memberships", "GET"),
    "upload": ("/rest/v1/activities", "POST"),
    "pull": ("/rest/v1/contacts", "GET"),
    "summary": ("/rest/v1/rpc/activity_summary", "POST"),
    "validate": ("/auth/v1/user", "GET"),
}
FAILURES: dict[str, Answer] = {
    "recursion in a policy": coded(500, "42P17", "infinite recursion detected in policy"),
    "statement timeout": coded(500, "57014", "canceling statement due to statement timeout"),
    "no such table": coded(404, "42P01", "relation does not exist"),
    "gateway time-out": {"status": 504, "headers": {"retry-after": "240"}, "body": "<html>"},
    "no answer": {"error": "timeout"},
    "token refused": coded(401, "PGRST301", "No suitable key"),
}


def break_purpose(user: SignedIn, purpose: str, failure: str) -> None:
    """From now on every request of this purpose fails."""
    broken = FAILURES[failure]
    user.phone.network.instead.append(
        lambda request: broken if request["purpose"] == purpose else None
    )


@pytest.mark.parametrize(
    "failure",
    crossed(FAILURES, fast=lambda failure: failure in ("recursion in a policy", "token refused")),
)
def test_ATK_1_a_failing_guard_holds_up_nothing_else(
    sign_in: MakeUser, directory: DirectoryFixtures, failure: str
) -> None:
    user = sign_in(contacts=3)
    break_purpose(user, "guard", failure)
    app = user.restart()
    app.settle()
    assert app.screen["screen"] == "home"
    ids: list[str] = []
    hours = sized(10, 24)
    for _ in range(hours):
        ids.append(add(app))
        app.settle()
        assert stored(directory, user.person) == sorted(ids)
        app.wait(3600)
    assert app.queue_list()["counts"] == EMPTY
    assert user.phone.network.count("pull") >= hours - 4
    assert user.phone.network.count("summary") >= hours - 4
    assert hours - 4 <= user.phone.network.count("guard") <= 25 * hours
    assert app.of_type("session_ended") == []
    assert app.screen["screen"] == "home"
    assert [banner["code"] for banner in app.screen["banners"]] == ["stale_data"]


@pytest.mark.parametrize(
    ("purpose", "failure"),
    crossed(
        ["upload", "pull", "summary", "validate"],
        ["recursion in a policy", "gateway time-out", "no answer"],
        fast=lambda purpose, failure: (
            failure == ("gateway time-out" if purpose in ("upload", "summary") else "no answer")
        ),
    ),
)
def test_ATK_1_each_purpose_fails_for_itself(
    sign_in: MakeUser, directory: DirectoryFixtures, purpose: str, failure: str
) -> None:
    user = sign_in(contacts=3)
    app = user.app
    break_purpose(user, purpose, failure)
    user.phone.network.forget()
    item = add(app)
    for _ in range(12):
        app.session_background()
        user.phone.pass_time(150)
        app.session_foreground()
        app.settle()
        app.wait(150)
    sent = {name: user.phone.network.count(name) for name in PATHS}
    others = {"guard", "pull", "summary", "validate"} - {purpose}
    if purpose == "upload":
        # The figures may or may not count an item whose fate is unknown, so they are not asked.
        others.remove("summary")
    assert all(sent[name] >= 10 for name in others), sent
    assert (item in stored(directory, user.person)) == (purpose != "upload")
    assert 3 <= sent[purpose] <= 40


def test_ATK_1_the_probe_of_one_purpose_blocks_no_other(
    user: SignedIn, directory: DirectoryFixtures
) -> None:
    app = user.app
    directory.control.respond("/rest/v1/", 503, times=2)
    item = add(app)
    app.session_background()
    app.session_foreground()
    app.settle()
    assert stored(directory, user.person) == []
    user.phone.pass_time(30)
    taken(user, "guard")
    assert stored(directory, user.person) == [item]


# A captive portal and Retry-After ----------------------------------------------------------------

PORTALS: dict[str, Answer] = {
    "html": {"headers": {"content-type": "text/html"}, "body": "<html>Log in</html>"},
    "json": {"headers": {"content-type": "application/json"}, "body": '{"code":"access_denied"}'},
    "nothing": {"headers": {}, "body": ""},
}


def portal(kind: str, after: str = "86400") -> Answer:
    """The answer of a captive portal to every request."""
    headers = {**PORTALS[kind].get("headers", {}), "retry-after": after}
    return {"status": 503, "headers": headers, "body": PORTALS[kind].get("body", "")}


@pytest.mark.parametrize("other_network", [False, True])
@pytest.mark.parametrize(
    ("kind", "expired"),
    crossed(PORTALS, [False, True], fast=lambda kind, expired: (kind == "json") == expired),
)
def test_ATK_17_a_portals_retry_after_is_no_long_pause(
    sign_in: MakeUser, directory: DirectoryFixtures, kind: str, expired: bool, other_network: bool
) -> None:
    user = sign_in(policy={"background_timeout_s": 10**6})
    app = user.app
    user.phone.network.instead.append(lambda _: portal(kind))
    item = add(app)
    if expired:
        user.phone.pass_time(TOKEN_S)
    app.settle()
    if other_network:
        app.go_offline()
    user.phone.network.instead.clear()
    if other_network:
        app.reconnect()
    for _ in range(0 if other_network else 14):
        app.wait(60)
    assert stored(directory, user.person) == [item]


def test_ATK_17_sync_now_ends_a_portals_pause(user: SignedIn, directory: DirectoryFixtures) -> None:
    app = user.app
    user.phone.network.instead.append(lambda _: portal("html"))
    item = add(app)
    app.settle()
    user.phone.network.instead.clear()
    app.settle()
    assert stored(directory, user.person) == []
    assert app.sync_now() == {"started": True, "reason": None}
    app.settle()
    assert stored(directory, user.person) == [item]


@pytest.mark.parametrize("what", ["refresh", "sign_in"])
def test_a_pause_of_the_auth_service_ends_with_a_logout(
    user: SignedIn, directory: DirectoryFixtures, what: str
) -> None:
    app = user.app
    busy = {"code": "over_request_rate_limit", "msg": "busy"}
    directory.control.respond("/auth/v1/token", 503, body=busy, retry_after_s=600)
    if what == "refresh":
        user.phone.pass_time(TOKEN_S - 30)
    else:
        app.sign_in_complete({"email": user.person.email, "password": PASSWORD})
    app.settle()
    assert directory.control.faults()[0]["hits"] == 1
    app.session_logout()
    app.sign_in_complete({"email": user.person.email, "password": PASSWORD})
    app.settle()
    assert app.screen["screen"] == "home"


def test_a_pause_of_the_auth_service_ends_with_another_user_s_session(
    user: SignedIn, directory: DirectoryFixtures
) -> None:
    busy = {"code": "over_request_rate_limit", "msg": "busy"}
    directory.control.respond("/auth/v1/token", 503, body=busy, retry_after_s=7200)
    user.app.wait(TOKEN_S - 30)
    assert directory.control.faults()[0]["hits"] == 1
    other = directory.person(user.org)
    user.start_as(other)
    refreshes = user.phone.network.count("refresh")
    user.app.wait(TOKEN_S - 30)
    assert user.phone.network.count("refresh") == refreshes + 1
    assert user.app.session_status()["owed"] == []
    assert user.app.session_status()["user_id"] == other.id
