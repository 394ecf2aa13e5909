"""The first membership check after a sign-in, when the server does not answer."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, cast

import pytest
from holdfast.keystore import KEY_LOCKED
from holdfast.types import Decision, TransportError

from support.directory_fixtures import DirectoryFixtures
from support.errors import error_of
from support.missing import lose
from support.phone import App
from support.screens import seen, why
from support.users import MakePhone, MakeUser
from support.waking import another


def signed_in(
    phones: MakePhone,
    directory: DirectoryFixtures,
    *,
    online: bool = True,
    failure: TransportError = "timeout",
) -> App:
    """An app whose user has just signed in and whose server became unreachable."""
    phone = phones()
    person = directory.person(directory.organisation())
    app = phone.start()
    phone.network.up = False
    phone.network.failure = failure
    if not online:
        app.network_report({"online": False})
    app.session_adopt({"session": directory.session(person)})
    return app


def polled_until_quiet(app: App) -> int | None:
    """Poll like a host until idle; returns the last `wake_in_ms`. Fails if the host spins."""
    for _ in range(20):
        step = app.step()
        if step.idle and step.wake_in_ms != 0:
            return step.wake_in_ms
    raise AssertionError("the host does not become idle")


def test_a_failed_guard_ends_the_wait_and_backs_off(
    phones: MakePhone, directory: DirectoryFixtures
) -> None:
    app = signed_in(phones, directory)
    assert seen(app.screen) == ("wait", "guard_pending")
    wake = polled_until_quiet(app)
    told = [why(event["screen"]) for event in app.of_type("screen")]
    assert told == ["server_unreachable"]
    assert wake is not None
    assert wake > 0
    app.phone.network.up = True
    app.settle_until("screen")
    assert seen(app.screen) == ("home", None)


def test_an_unanswered_guard_is_reported_once(
    phones: MakePhone, directory: DirectoryFixtures
) -> None:
    app = signed_in(phones, directory)
    deadline = app.screen["deadline_ms"]
    assert deadline is not None
    assert [request["purpose"] for request in app.poll()["requests"]] == ["guard"]
    app.phone.pass_time((deadline - app.phone.now_ms) / 1000)
    first, second = app.poll(), app.poll()
    assert [event["type"] for event in first["events"]] == ["screen"]
    assert second["events"] == []
    assert second["wake_in_ms"] is None or second["wake_in_ms"] > 0


def test_signing_in_offline_lets_the_host_idle(
    phones: MakePhone, directory: DirectoryFixtures
) -> None:
    app = signed_in(phones, directory, online=False, failure="offline")
    assert seen(app.screen) == ("wait", "server_unreachable")
    assert polled_until_quiet(app) is None
    app.reconnect()
    assert seen(app.screen) == ("home", None)


def test_a_wait_that_a_call_has_told_ends(phones: MakePhone, directory: DirectoryFixtures) -> None:
    app = signed_in(phones, directory)
    app.settle()
    assert why(app.screen) == "server_unreachable"
    app.sync_now()
    screen = app.route_check({"route": "/somewhere"})["screen"]
    assert seen(screen) == ("wait", "guard_pending")
    app.settle()
    assert why(app.screen) == "server_unreachable"
    told = [why(event["screen"]) for event in app.of_type("screen")]
    assert told[-1] == "server_unreachable"
    assert len(told) > 1


def test_a_wait_that_a_call_has_told_ends_before_anybody_has_come(
    phones: MakePhone, directory: DirectoryFixtures
) -> None:
    phone = signed_in(phones, directory).phone
    assert phone.app is not None
    phone.app.close()
    app = phone.open()
    wait = app.route_check({"route": "/somewhere"})["screen"]
    app.poll()
    assert pass_the_deadline(app, wait) == ["server_unreachable"]
    assert error_of(app.register).code == "session.locked"


def pass_the_deadline(app: App, wait: Decision) -> list[str | None]:
    """Advance to the deadline of the `wait` and poll; returns the reasons of the new decisions."""
    deadline = wait["deadline_ms"]
    assert (why(wait), deadline is None) == ("guard_pending", False)
    assert deadline is not None
    app.phone.pass_time(max(0, deadline - app.phone.now_ms) / 1000)
    told = [event["screen"] for event in app.poll()["events"] if event["type"] == "screen"]
    return [why(decision) for decision in told]


def test_ORG_7_a_denied_item_keeps_the_announced_deadline(sign_in: MakeUser) -> None:
    app = sign_in().restart()
    app.register()
    requests = {request["purpose"]: request["id"] for request in app.poll()["requests"]}
    wait = app.session_background()
    app.phone.pass_time(1)
    # When a row-level policy refuses the item, so that the membership must be checked
    body = '{"code":"42501","message":"denied","details":null,"hint":null}'
    headers = {"content-type": "application/json"}
    app.complete({"id": requests["upload"], "status": 403, "headers": headers, "body": body})
    assert pass_the_deadline(app, wait) == [None]
    assert app.screen["screen"] == "home"


def test_ORG_7_a_sign_in_during_a_wait_for_the_guard_announces_the_new_deadline(
    phones: MakePhone, directory: DirectoryFixtures
) -> None:
    app = signed_in(phones, directory)
    sign_in_again(app)
    wait = app.session_background()
    asked = {request["purpose"]: request["id"] for request in app.poll()["requests"]}
    app.phone.pass_time(1)
    session = directory.session(directory.person(directory.organisation()))
    headers = {"content-type": "application/json"}
    body = json.dumps(session)
    app.complete({"id": asked["sign_in"], "status": 200, "headers": headers, "body": body})
    (told,) = [event["screen"] for event in app.poll()["events"] if event["type"] == "screen"]
    assert told["deadline_ms"] > wait["deadline_ms"]
    assert pass_the_deadline(app, told) == ["server_unreachable"]


def sign_in_again(app: App) -> None:
    """Begin another sign-in over the session."""
    app.sign_in_begin({"method": "email"})
    app.sign_in_complete({"email": "somebody@example.org", "password": "correct-horse"})
    assert why(app.screen) == "signing_in"


def pulls_to_refresh(app: App) -> Decision:
    app.phone.pass_time(1)
    app.sync_now()
    return app.screen


def returns(arrive: str) -> Callable[[App], Decision]:
    def come_back(app: App) -> Decision:
        first = app.screen["deadline_ms"]
        app.phone.pass_time(1)
        app.session_background()
        wait: Decision = getattr(app, arrive)()
        assert wait["deadline_ms"] == first
        return wait

    return come_back


def signs_in_again(app: App) -> Decision:
    sign_in_again(app)
    wait = app.session_foreground()
    app.poll()
    return wait


def another_signs_in_elsewhere(app: App) -> Decision:
    wait, directory = app.screen, app.phone.directory
    other = App(app.phone, app.phone.config)
    other.session_adopt({"session": directory.session(directory.person(directory.organisation()))})
    other.close()
    return wait


@pytest.mark.parametrize(
    "happens",
    [
        pulls_to_refresh,
        returns("session_foreground"),
        returns("session_resume"),
        signs_in_again,
        another_signs_in_elsewhere,
    ],
)
def test_ORG_7_a_wait_for_the_guard_ends_at_the_deadline_that_was_announced(
    phones: MakePhone, directory: DirectoryFixtures, happens: Callable[[App], Decision]
) -> None:
    app = signed_in(phones, directory)
    assert [request["purpose"] for request in app.poll()["requests"]] == ["guard"]
    assert pass_the_deadline(app, happens(app)) == ["server_unreachable"]


def test_ORG_7_a_wait_ends_in_time_when_another_process_signs_the_user_in_again(
    phones: MakePhone, directory: DirectoryFixtures
) -> None:
    # Given an app whose membership the server has confirmed (seed 909 of the simulation)
    phone = phones()
    person = directory.person(directory.organisation())
    app = phone.start()
    app.session_adopt({"session": directory.session(person)})
    app.settle()
    assert app.screen["screen"] == "home"
    with another(phone) as other:
        phone.network.up = False
        other.session_logout()
        other.session_adopt({"session": directory.session(person)})
        (told,) = [event for event in app.poll()["events"] if event["type"] == "screen"]
        assert pass_the_deadline(app, told["screen"]) == ["server_unreachable"]


def test_ORG_7_a_wait_for_the_guard_ends_when_the_key_store_refuses(
    phones: MakePhone, directory: DirectoryFixtures
) -> None:
    app = signed_in(phones, directory)
    wait = app.screen
    app.poll()
    phone = app.phone
    lose(phone)
    with another(phone) as other:
        later = {"now_ms": phone.now_ms + 9000, "monotonic_ms": phone.monotonic_ms + 9000}
        other.clock_set(cast(Any, later))
        person = directory.person(directory.organisation())
        other.session_adopt({"session": phone.session(person)})
        other.session_logout()
        phone.keychain.answer("load", "device_b", KEY_LOCKED)
        assert pass_the_deadline(app, wait) == ["keystore_locked", "session_missing"]
        assert app.screen["screen"] == "sign_in"
