"""One session for the whole app: session_token, for the host's own calls (HST-3)."""

from __future__ import annotations

import http.client
import itertools
import json
import urllib.parse
from collections.abc import Callable, Iterator
from typing import Any, cast

import pytest
from holdfast import HoldfastError
from holdfast.keystore import KEY_FAILED

from support.directory_fixtures import DirectoryFixtures
from support.errors import error_of
from support.phone import TOKEN_S, App
from support.users import MakePhone, MakeUser, SignedIn
from support.waking import readable


@pytest.fixture(autouse=True)
def another_token(directory: DirectoryFixtures) -> Iterator[Callable[[], None]]:
    """Makes the next token differ: those that the server issues within a second are the same."""
    times = itertools.count(TOKEN_S + 1)
    yield lambda: directory.control.set(jwt_lifetime=next(times)) and None
    directory.control.set(jwt_lifetime=TOKEN_S)


def refusal(app: App) -> HoldfastError:
    return error_of(app.session_token)


def works(user: SignedIn, token: str) -> bool:
    """Whether the server takes the token in a call of the host's own."""
    address = urllib.parse.urlsplit(user.phone.backend.url)
    link = http.client.HTTPConnection(address.hostname or "", address.port, timeout=30)
    try:
        link.request(
            "GET",
            "/auth/v1/user",
            headers={"apikey": user.phone.backend.anon_key, "Authorization": f"Bearer {token}"},
        )
        answer = link.getresponse()
        body = json.loads(answer.read())
    finally:
        link.close()
    return answer.status == 200 and body["id"] == user.person.id


def changes(app: App) -> list[dict[str, Any]]:
    return app.of_type("session_token")


def test_HST_3_an_open_session_gives_its_token(user: SignedIn) -> None:
    app = user.app
    reply = app.session_token()
    assert set(reply) == {"access_token", "expires_ms"}
    assert works(user, reply["access_token"])
    assert reply["expires_ms"] == app.session_status()["expires_ms"]
    # Asking changes nothing and sends nothing
    assert app.session_token() == reply
    assert app.settle() == []
    # Without a network it is the same: the token is still valid
    app.go_offline()
    assert app.session_token() == reply


def test_HST_3_a_new_token_wakes_the_host(
    user: SignedIn, directory: DirectoryFixtures, another_token: Callable[[], None]
) -> None:
    app = user.app
    app.session_token()
    app.settle()
    app.go_offline()
    app.settle()
    assert not readable(app.wake_fd())
    another_token()
    app.session_adopt({"session": directory.session(user.person)})
    assert readable(app.wake_fd())
    assert [event["type"] for event in app.poll()["events"]] == ["session_token"]


@pytest.mark.parametrize("left_s", [60, 0, -3600], ids=["ends soon", "ended", "long ended"])
def test_HST_3_a_token_that_is_about_to_end_is_refreshed_first(
    user: SignedIn, another_token: Callable[[], None], left_s: int
) -> None:
    another_token()
    app = user.app
    old = app.session_token()
    user.phone.pass_time(TOKEN_S - left_s)
    error = refusal(app)
    assert (error.status, error.code, error.retryable) == (2, "session.refreshing", True)
    assert 0 < cast(int, error.detail["wait_ms"]) <= 60_000
    # The next poll refreshes, and an answer tells of the new token, without it
    app.settle()
    assert user.phone.directory.refreshes() == 1
    [event] = changes(app)
    new = app.session_token()
    assert set(event) == {"type", "to", "expires_ms"}
    assert event["expires_ms"] == new["expires_ms"] > old["expires_ms"]
    assert new["access_token"] != old["access_token"]
    assert works(user, new["access_token"])


def test_HST_3_every_new_token_is_announced_once_asked_for_one(
    user: SignedIn, another_token: Callable[[], None]
) -> None:
    app = user.app
    # A host that never asks hears nothing
    app.wait(TOKEN_S - 60)
    assert user.phone.directory.refreshes() == 1
    assert changes(app) == []
    # One that asked learns of every new token
    for number in (1, 2):
        app.session_token()
        another_token()
        app.wait(TOKEN_S - 60)
        assert len(changes(app)) == number
        app.settle()
        assert len(changes(app)) == number
    app.session_background()
    app.session_foreground()
    app.settle()
    assert len(changes(app)) == 2


def test_HST_3_offline_a_token_near_its_end_waits_for_the_network(user: SignedIn) -> None:
    app = user.app
    app.session_token()
    app.go_offline()
    user.phone.pass_time(TOKEN_S - 60)
    error = refusal(app)
    assert (error.code, error.retryable) == ("session.refreshing", True)
    assert error.detail == {"wait_ms": None}
    app.settle()
    assert changes(app) == []
    app.reconnect()
    assert len(changes(app)) == 1
    assert works(user, app.session_token()["access_token"])


def test_HST_3_a_server_that_asks_for_a_pause_sets_the_wait(
    user: SignedIn, directory: DirectoryFixtures
) -> None:
    app = user.app
    directory.control.respond("/auth/v1/token", 429, body="{}", retry_after_s=300, times=1)
    app.wait(TOKEN_S - 60)
    error = refusal(app)
    assert 290_000 <= cast(int, error.detail["wait_ms"]) <= 900_000
    app.wait(cast(int, error.detail["wait_ms"]) / 1000)
    assert works(user, app.session_token()["access_token"])


def test_HST_3_a_token_that_the_server_refused_is_not_handed_out(
    user: SignedIn, directory: DirectoryFixtures, another_token: Callable[[], None]
) -> None:
    # Given a server that no longer takes the token (its keys changed)
    another_token()
    app = user.app
    old = app.session_token()
    directory.control.respond("/auth/v1/user", 403, body='{"code":"bad_jwt"}', times=1)
    app.session_foreground()
    [request] = [one for one in app.poll()["requests"] if one["purpose"] == "validate"]
    app.complete(cast(Any, {"id": request["id"], **user.phone.network(request)}))
    assert refusal(app).code == "session.refreshing"
    app.settle()
    assert len(changes(app)) == 1
    assert app.session_token()["access_token"] != old["access_token"]


@pytest.mark.parametrize(
    "locked", ["by the user", "away too long", "after a restart", "before somebody comes"]
)
def test_HST_3_a_locked_session_gives_none(user: SignedIn, locked: str) -> None:
    app = user.app
    app.session_token()
    if locked == "away too long":
        app.session_background()
        user.phone.pass_time(301)
    elif locked == "before somebody comes":
        user.phone.close()
        app = user.app = user.phone.open()
    else:
        app.session_lock()
        if locked == "after a restart":
            app = user.restart()
    error = refusal(app)
    assert (error.status, error.code, error.retryable) == (2, "session.locked", False)
    app.settle()
    assert changes(app) == []
    assert refusal(app).code == "session.locked"
    # The finger opens it
    if app.session_foreground()["screen"] == "unlock":
        app.touch()
    app.settle()
    assert works(user, app.session_token()["access_token"])


def test_HST_3_nobody_s_token_is_refused(
    phones: MakePhone, sign_in: MakeUser, directory: DirectoryFixtures
) -> None:
    # Never signed in
    assert refusal(phones().start()).code == "session.none"
    # Signed out
    user = sign_in()
    app = user.app
    token = app.session_token()["access_token"]
    app.session_logout()
    assert refusal(app).code == "session.none"
    app.settle()
    assert not works(user, token)
    # Ended by the server
    app.sign_in(user.person)
    token = app.session_token()["access_token"]
    directory.control.revoke_sessions(user.person.id)
    app.wait(TOKEN_S - 60)
    assert refusal(app).code == "session.none"


def test_HST_3_the_next_user_s_token_is_announced(
    user: SignedIn, directory: DirectoryFixtures
) -> None:
    app = user.app
    app.session_token()
    other = directory.person(directory.organisation())
    app.sign_in(other)
    assert len(changes(app)) == 1
    user.person = other
    assert works(user, app.session_token()["access_token"])


def test_HST_3_another_process_s_refresh_is_announced(
    user: SignedIn, another_token: Callable[[], None]
) -> None:
    another_token()
    first = user.app
    first.session_token()
    second = user.phone.another()
    user.phone.pass_time(TOKEN_S - 60)
    second.settle()
    assert user.phone.directory.refreshes() == 1
    first.clock_set({"now_ms": user.phone.now_ms, "monotonic_ms": user.phone.monotonic_ms})
    first.settle()
    assert len(changes(first)) == 1
    assert works(user, first.session_token()["access_token"])
    assert user.phone.directory.refreshes() == 1
    first.close()


def test_HST_3_a_key_store_that_does_not_answer_gives_none(user: SignedIn) -> None:
    user.phone.close()
    user.phone.keychain.answer("load", "device", *[KEY_FAILED] * 9)
    app = user.phone.start()
    assert refusal(app).code == "keystore.failed"
