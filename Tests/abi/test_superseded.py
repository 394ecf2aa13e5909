"""What was not handed out yet is withdrawn when it is no longer true or for these eyes."""

from __future__ import annotations

from holdfast.keystore import KEY_FAILED

from conftest import MakePhone, MakeUser
from support.directory_fixtures import PASSWORD, DirectoryFixtures
from support.phone import App


def test_SES_10_no_screen_from_before_the_lock_is_told_after_it(sign_in: MakeUser) -> None:
    # Given an app that has something new to show, and has not polled yet
    app = sign_in().app
    app.go_offline()
    # When it is locked
    app.session_lock()
    # Then the event that would bring the user home never comes
    events = app.poll()["events"]
    assert [event for event in events if event["type"] == "decision"] == []
    assert app.screen["screen"] == "unlock"


def test_KEEP_6_a_contact_that_came_before_the_lock_is_not_shown_after_it(
    sign_in: MakeUser, directory: DirectoryFixtures
) -> None:
    # Given a contact whose withheld columns were fetched, and whose event was not handed out yet
    user = sign_in(contacts=2)
    app = user.app
    app.settle()
    contact = app.contact_search({"query": ""})["contacts"][0]["id"]
    app.contact_get({"id": contact, "live": True})
    (request,) = app.poll()["requests"]
    app.complete({"id": request["id"], **user.phone.network(request)})
    # When the app is locked
    app.session_lock()
    # Then nothing of the contact leaves the library
    assert [event for event in app.poll()["events"] if event["type"] == "contact"] == []


def test_a_process_that_finds_a_session_of_another_asks_for_its_memberships(
    phones: MakePhone, directory: DirectoryFixtures
) -> None:
    # Given two processes on one folder, nobody signed in
    phone = phones()
    first = phone.start()
    phone.app = None
    second = phone.start()
    person = directory.person(directory.organisation())
    # When somebody signs in by one of them, and the other one looks before the server was asked
    first.session_start({"session": directory.session(person)})
    polled = second.poll()
    # Then the other one waits, and has asked for what it waits for
    assert [event["decision"]["screen"] for event in polled["events"]] == ["wait"]  # type: ignore[typeddict-item]
    assert [request["purpose"] for request in polled["requests"]] == ["guard"]
    for request in polled["requests"]:
        second.complete({"id": request["id"], **phone.network(request)})
    second.settle()
    assert second.screen["screen"] == "home"
    first.close()


def test_somebody_who_signs_in_over_another_s_open_session_comes_home(
    sign_in: MakeUser, directory: DirectoryFixtures
) -> None:
    # Given an app whose user is signed in
    user = sign_in()
    # When somebody else signs in on it, without a logout before
    other = directory.person(directory.organisation(), role="coordinator")
    user.app.sign_in_begin({"method": "email"})
    wait = user.app.sign_in_complete({"email": other.email, "password": PASSWORD})
    assert (wait["screen"], wait["reason"]) == ("wait", "signing_in")
    user.app.settle()
    # Then the memberships are asked for, which that screen waits for
    assert user.app.screen["screen"] == "home"
    assert user.app.screen["org"] is not None
    assert user.app.screen["org"]["role"] == "coordinator"


def test_RES_7_who_waits_for_the_key_store_is_told_when_it_answers(sign_in: MakeUser) -> None:
    # Given a key store that does not answer at the start
    user = sign_in()
    user.phone.close()
    user.phone.keychain.answer("load", "device", KEY_FAILED)
    app: App = user.phone.start()
    assert (app.screen["screen"], app.screen["reason"]) == ("wait", "keystore_failed")
    # When the host does no more than its loop
    events = app.settle_until("decision", within_s=60)
    # Then the wait ends by itself
    assert events
    assert app.screen["screen"] == "home"
