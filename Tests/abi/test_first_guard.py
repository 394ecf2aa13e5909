"""The first membership check of a sign-in, with no server to answer it."""

from __future__ import annotations

from holdfast.types import Decision, TransportError

from conftest import MakePhone, MakeUser
from support.directory_fixtures import DirectoryFixtures
from support.phone import App


def signed_in(
    phones: MakePhone, directory: DirectoryFixtures, *, online: bool, failure: TransportError
) -> App:
    """Somebody has just signed in, and the server is not reached any more."""
    phone = phones()
    person = directory.person(directory.organisation())
    app = phone.start()
    phone.network.up = False
    phone.network.failure = failure
    if not online:
        app.network_set({"online": False})
    app.session_start({"session": directory.session(person)})
    return app


def polled_until_quiet(app: App) -> int | None:
    """Poll as a host does; what the last `wake_in_ms` says. A host must not be kept running."""
    for _ in range(20):
        step = app.runner.step()
        if step.idle and step.wake_in_ms != 0:
            return step.wake_in_ms
    raise AssertionError("there is always something to do at once")


def test_a_guard_that_fails_ends_the_wait_and_leaves_the_host_in_peace(
    phones: MakePhone, directory: DirectoryFixtures
) -> None:
    # Given a first sign-in that waits for the memberships
    app = signed_in(phones, directory, online=True, failure="timeout")
    assert (app.screen["screen"], app.screen["reason"]) == ("wait", "guard_pending")
    # When the server is not reached
    wake = polled_until_quiet(app)
    # Then the host is told so once, and comes back when the back-off ends
    told = [event["decision"]["reason"] for event in app.of_type("decision")]
    assert told == ["server_unreachable"]
    assert wake is not None
    assert wake > 0
    # and once the server is back the wait ends
    app.phone.network.up = True
    app.settle_until("decision")
    assert (app.screen["screen"], app.screen["reason"]) == ("home", "chosen")


def test_a_guard_that_is_not_answered_in_time_is_told_once(
    phones: MakePhone, directory: DirectoryFixtures
) -> None:
    # Given a request for the memberships that the host has not answered
    app = signed_in(phones, directory, online=True, failure="timeout")
    deadline = app.screen["deadline_ms"]
    assert deadline is not None
    assert [request["purpose"] for request in app.poll()["requests"]] == ["guard"]
    # When the deadline passes
    app.phone.pass_time((deadline - app.phone.now_ms) / 1000)
    # Then an event says so, once
    first, second = app.poll(), app.poll()
    assert [event["type"] for event in first["events"]] == ["decision"]
    assert second["events"] == []
    assert second["wake_in_ms"] is None or second["wake_in_ms"] > 0


def test_signing_in_offline_leaves_the_host_in_peace(
    phones: MakePhone, directory: DirectoryFixtures
) -> None:
    # Given a phone without a network, and a session that was obtained just before
    app = signed_in(phones, directory, online=False, failure="offline")
    assert (app.screen["screen"], app.screen["reason"]) == ("wait", "server_unreachable")
    # Then there is nothing to be done until the network is back
    assert polled_until_quiet(app) is None
    app.go_online()
    app.settle()
    assert (app.screen["screen"], app.screen["reason"]) == ("home", "chosen")


def pass_the_deadline(app: App, wait: Decision) -> list[str]:
    """Time passes up to the deadline of the `wait`, and the host polls: what it is told."""
    deadline = wait["deadline_ms"]
    assert (wait["reason"], deadline is None) == ("guard_pending", False)
    assert deadline is not None
    app.phone.pass_time(max(0, deadline - app.phone.now_ms) / 1000)
    told = [event["decision"] for event in app.poll()["events"] if event["type"] == "decision"]
    return [decision["reason"] for decision in told]


def test_ORG_7_a_deadline_that_was_told_is_kept_when_the_user_pulls_to_refresh(
    phones: MakePhone, directory: DirectoryFixtures
) -> None:
    # Given a host that waits for the memberships
    app = signed_in(phones, directory, online=True, failure="timeout")
    assert [request["purpose"] for request in app.poll()["requests"]] == ["guard"]
    # When the user pulls to refresh a second later
    app.phone.pass_time(1)
    app.sync_now()
    # Then the wait ends when it was said to end
    assert pass_the_deadline(app, app.screen) == ["server_unreachable"]


def test_ORG_7_a_deadline_that_was_told_is_kept_when_the_server_denies_an_item(
    sign_in: MakeUser,
) -> None:
    # Given an app that has just been started, and an item on its way
    app = sign_in().restart()
    app.register()
    requests = {request["purpose"]: request["id"] for request in app.poll()["requests"]}
    # and that waits for the memberships
    wait = app.session_background()
    app.phone.pass_time(1)
    # When a policy refuses the item, so that the memberships are in doubt
    body = '{"code":"42501","message":"denied","details":null,"hint":null}'
    headers = {"content-type": "application/json"}
    app.complete({"id": requests["upload"], "status": 403, "headers": headers, "body": body})
    # Then the wait ends when it was said to end: with what is known of the memberships
    assert pass_the_deadline(app, wait) == ["active"]


def test_ORG_7_a_wait_for_the_guard_ends_in_time_while_somebody_signs_in(
    phones: MakePhone, directory: DirectoryFixtures
) -> None:
    # Given a session whose memberships were never had, over which another sign-in is under way
    app = signed_in(phones, directory, online=True, failure="timeout")
    app.sign_in_begin({"method": "email"})
    app.sign_in_complete({"email": "somebody@example.org", "password": "correct-horse"})
    assert app.screen["reason"] == "signing_in"
    # When the app comes back to the screen, and neither is answered
    wait = app.session_foreground()
    app.poll()
    # Then its wait ends by the deadline that it was told
    assert pass_the_deadline(app, wait) == ["server_unreachable"]


def test_ORG_7_a_wait_ends_in_time_when_another_process_signs_somebody_else_in(
    phones: MakePhone, directory: DirectoryFixtures
) -> None:
    # Given a host that waits for the memberships
    app = signed_in(phones, directory, online=True, failure="timeout")
    wait = app.screen
    app.poll()
    # When somebody else signs in by another process, and the answer comes too late
    other = App(app.phone, app.phone.config)
    other.session_start({"session": directory.session(directory.person(directory.organisation()))})
    other.close()
    # Then the wait ends by the deadline that it was told
    assert pass_the_deadline(app, wait) == ["server_unreachable"]
