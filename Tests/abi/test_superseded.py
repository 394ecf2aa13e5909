"""Undelivered events and waits after a lock, another sign-in or a key-store failure."""

from __future__ import annotations

from holdfast.keystore import KEY_FAILED

from conftest import MakePhone, MakeUser
from support.directory_fixtures import PASSWORD, DirectoryFixtures
from support.phone import App


def test_SES_10_a_lock_discards_undelivered_screens(sign_in: MakeUser) -> None:
    # Given an app with an undelivered decision
    app = sign_in().app
    app.go_offline()
    # When it is locked
    app.session_lock()
    # Then the event that shows home is discarded
    events = app.poll()["events"]
    assert [event for event in events if event["type"] == "screen"] == []
    assert app.screen["screen"] == "unlock"


def test_a_process_that_finds_another_process_s_session_requests_memberships(
    phones: MakePhone, directory: DirectoryFixtures
) -> None:
    # Given two processes on one folder, without a session
    phone = phones()
    first = phone.start()
    phone.app = None
    second = phone.start()
    person = directory.person(directory.organisation())
    # When a user signs in in one of them, and the other one resumes before any membership check
    first.session_adopt({"session": directory.session(person)})
    polled = second.poll()
    # Then the other one waits and requests the memberships
    assert [event["screen"]["screen"] for event in polled["events"]] == ["wait"]  # type: ignore[typeddict-item]
    assert [request["purpose"] for request in polled["requests"]] == ["guard"]
    for request in polled["requests"]:
        second.complete({"id": request["id"], **phone.network(request)})
    second.settle()
    assert second.screen["screen"] == "home"
    first.close()


def test_ORG_7_another_user_s_confirmed_check_does_not_keep_a_wait_open(
    phones: MakePhone, directory: DirectoryFixtures
) -> None:
    # Given a process with a confirmed membership check, and another one on the same folder
    phone = phones()
    first = phone.start()
    person = directory.person(directory.organisation())
    first.session_adopt({"session": directory.session(person)})
    first.settle()
    assert first.screen["screen"] == "home"
    phone.app = None
    second = phone.start()
    # When the other one locks, the first one notices, and another user signs in
    second.session_lock()
    first.settle()
    assert first.screen["screen"] == "unlock"
    other = directory.person(directory.organisation())
    second.session_adopt({"session": directory.session(other)})
    polled = first.poll()
    assert [event["screen"]["reason"] for event in polled["events"]] == ["guard_pending"]  # type: ignore[typeddict-item]
    # And the check of that user's memberships fails
    for request in polled["requests"]:
        first.complete({"id": request["id"], "error": "timeout"})
    # Then the wait ends: the host is told that the server cannot be reached
    events = first.poll()["events"]
    assert [event["screen"]["reason"] for event in events] == ["server_unreachable"]  # type: ignore[typeddict-item]
    first.close()


def test_ORG_2_a_membership_that_another_process_found_ended_is_known(
    phones: MakePhone, directory: DirectoryFixtures
) -> None:
    # Given two processes that show home of one folder's session
    phone = phones()
    first = phone.start()
    kept, left = directory.organisation(), directory.organisation()
    person = directory.person(kept, left)
    first.session_adopt({"session": directory.session(person)})
    first.settle()
    first.org_select({"org_id": left.id})
    first.settle()
    phone.app = None
    second = phone.start()
    second.session_resume()
    second.settle()
    assert (first.screen["screen"], second.screen["screen"]) == ("home", "home")
    # When the membership ends, and one process learns of it
    directory.control.set_membership(person.id, left.id, status="ended")
    second.session_foreground()
    second.settle()
    assert second.screen["screen"] == "select_org"
    # Then the other one knows without a request of its own
    status = {org["org_id"]: org["status"] for org in first.org_list()["orgs"]}
    assert status == {kept.id: "active", left.id: "revoked"}
    polled = first.poll()
    decisions = [event for event in polled["events"] if event["type"] == "screen"]
    assert [event["screen"]["screen"] for event in decisions] == ["select_org"]  # type: ignore[typeddict-item]
    assert polled["requests"] == []
    first.close()


def test_a_sign_in_over_another_user_s_session_leads_home(
    sign_in: MakeUser, directory: DirectoryFixtures
) -> None:
    # Given an app whose user is signed in
    user = sign_in()
    # When another user signs in without a logout
    other = directory.person(directory.organisation(), role="coordinator")
    user.app.sign_in_begin({"method": "email"})
    wait = user.app.sign_in_complete({"email": other.email, "password": PASSWORD})
    assert (wait["screen"], wait["reason"]) == ("wait", "signing_in")
    user.app.settle()
    # Then the memberships are requested, for which that screen waits
    assert user.app.screen["screen"] == "home"
    assert user.app.screen["org"] is not None
    assert user.app.screen["org"]["role"] == "coordinator"


def test_RES_7_a_wait_for_the_key_store_ends_when_it_answers(sign_in: MakeUser) -> None:
    # Given a key store that is unavailable at the start
    user = sign_in()
    user.phone.close()
    user.phone.keychain.answer("load", "device", KEY_FAILED)
    app: App = user.phone.start()
    assert (app.screen["screen"], app.screen["reason"]) == ("wait", "keystore_failed")
    # When the host only runs its loop
    events = app.settle_until("screen", within_s=60)
    # Then the wait ends with an event
    assert events
    assert app.screen["screen"] == "home"
