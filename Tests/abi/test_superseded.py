"""Undelivered events and waits after a lock, another sign-in or a key-store failure."""

from __future__ import annotations

from support.directory_fixtures import PASSWORD, DirectoryFixtures
from support.screens import seen, why
from support.users import MakePhone, MakeUser, SignedIn


def test_SES_10_a_lock_discards_undelivered_screens(sign_in: MakeUser) -> None:
    app = sign_in().app
    app.go_offline()
    app.session_lock()
    events = app.poll()["events"]
    assert [event for event in events if event["type"] == "screen"] == []
    assert app.screen["screen"] == "unlock"


def test_a_process_that_finds_another_process_s_session_requests_memberships(
    phones: MakePhone, directory: DirectoryFixtures
) -> None:
    phone = phones()
    first = phone.start()
    second = phone.another()
    person = directory.person(directory.organisation())
    first.session_adopt({"session": directory.session(person)})
    polled = second.poll()
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
    phone = phones()
    first = phone.start()
    person = directory.person(directory.organisation())
    first.session_adopt({"session": directory.session(person)})
    first.settle()
    assert first.screen["screen"] == "home"
    second = phone.another()
    second.session_lock()
    first.settle()
    assert first.screen["screen"] == "unlock"
    other = directory.person(directory.organisation())
    second.session_adopt({"session": directory.session(other)})
    polled = first.poll()
    assert [why(event["screen"]) for event in polled["events"]] == ["guard_pending"]  # type: ignore[typeddict-item]
    for request in polled["requests"]:
        first.complete({"id": request["id"], "error": "timeout"})
    events = first.poll()["events"]
    assert [why(event["screen"]) for event in events] == ["server_unreachable"]  # type: ignore[typeddict-item]
    first.close()


def test_ORG_2_a_membership_that_another_process_found_ended_is_known(
    phones: MakePhone, directory: DirectoryFixtures
) -> None:
    phone = phones()
    first = phone.start()
    kept, left = directory.organisation(), directory.organisation()
    person = directory.person(kept, left)
    first.session_adopt({"session": directory.session(person)})
    first.settle()
    first.org_select({"org_id": left.id})
    first.settle()
    second = phone.another()
    second.session_resume()
    second.settle()
    assert (first.screen["screen"], second.screen["screen"]) == ("home", "home")
    directory.control.set_membership(person.id, left.id, status="ended")
    second.session_foreground()
    second.settle()
    assert second.screen["screen"] == "select_org"
    status = {org["org_id"]: org["status"] for org in first.org_list()["orgs"]}
    assert status == {kept.id: "active", left.id: "revoked"}
    polled = first.poll()
    decisions = [event for event in polled["events"] if event["type"] == "screen"]
    assert [event["screen"]["screen"] for event in decisions] == ["select_org"]  # type: ignore[typeddict-item]
    assert polled["requests"] == []
    first.close()


def test_a_sign_in_over_another_user_s_session_leads_home(
    user: SignedIn, directory: DirectoryFixtures
) -> None:
    other = directory.person(directory.organisation(), role="coordinator")
    user.app.sign_in_begin({"method": "email"})
    wait = user.app.sign_in_complete({"email": other.email, "password": PASSWORD})
    assert seen(wait) == ("wait", "signing_in")
    user.app.settle()
    # Then the memberships are requested, for which that screen waits
    assert user.app.screen["screen"] == "home"
    assert user.app.screen["org"] is not None
    assert user.app.screen["org"]["role"] == "coordinator"
