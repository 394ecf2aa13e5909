"""Every live read of a contact is answered by one event (finding B7)."""

from __future__ import annotations

import json
from typing import Any, cast

import pytest

from support.contact_data import pull
from support.directory_fixtures import DirectoryFixtures
from support.held import return_to_foreground, taken
from support.phone import TOKEN_S
from support.refusals import live as follow
from support.users import MakeUser, SignedIn


def asked(user: SignedIn) -> tuple[int, str]:
    """Ask for the user's only contact; returns the request's number and the contact's id."""
    [contact] = user.app.contact_search({"query": ""})["contacts"]
    number = user.app.contact_get({"id": contact["id"], "live": True})["request"]
    assert number is not None
    return number, contact["id"]


def answers(user: SignedIn, within_s: float = 31) -> list[dict[str, Any]]:
    """The answers after following `wake_in_ms` for this time."""
    follow(user, within_s)
    return user.app.of_type("contact")


def test_ATK_13_a_refresh_meanwhile_does_not_swallow_the_answer(
    sign_in: MakeUser, directory: DirectoryFixtures
) -> None:
    user = sign_in(contacts=1)
    number, contact = asked(user)
    live = taken(user, "live")
    user.app.wait(TOKEN_S)
    user.app.complete(cast("Any", {"id": live["id"], **user.phone.network(live)}))
    [event] = answers(user)
    assert (event["request"], event["id"]) == (number, contact)
    assert directory.refreshes() == 1


def test_CAC_3_a_contact_that_comes_after_the_end_of_the_membership_is_not_given(
    sign_in: MakeUser, directory: DirectoryFixtures
) -> None:
    user = sign_in(contacts=1)
    asked(user)
    live = taken(user, "live")
    early: Any = {"id": live["id"], **user.phone.network(live)}
    directory.control.set_membership(user.person.id, user.org.id, status="ended")
    return_to_foreground(user)
    assert user.app.screen["screen"] == "select_org"
    user.app.complete(early)
    [event] = answers(user)
    assert (event["contact"], event["message"]["code"]) == (None, "contact_withdrawn")


def test_ATK_13_a_refresh_shortly_before_the_answer_brings_the_contact(
    sign_in: MakeUser, directory: DirectoryFixtures
) -> None:
    user = sign_in(contacts=1)
    user.app.wait(TOKEN_S - 100)
    number, contact = asked(user)
    live = taken(user, "live")
    user.phone.pass_time(20)
    held_refreshes = directory.refreshes()
    user.app.settle()
    assert directory.refreshes() == held_refreshes + 1
    user.app.complete(cast("Any", {"id": live["id"], **user.phone.network(live)}))
    user.app.settle()
    [event] = user.app.of_type("contact")
    assert event["request"] == number
    assert event["contact"]["id"] == contact
    assert user.phone.network.count("live") == 2, "it is asked for with the new token"


def test_ATK_13_a_refused_token_is_renewed_and_the_contact_comes(
    sign_in: MakeUser, directory: DirectoryFixtures
) -> None:
    user = sign_in(contacts=1)
    body = json.dumps({"code": "PGRST301", "message": "JWSError"})
    directory.control.respond("/rest/v1/contacts", 401, body=body, times=1)
    number, contact = asked(user)
    [event] = answers(user, 5)
    assert (event["request"], event["contact"]["id"]) == (number, contact)


def test_ATK_13_a_lock_answers(sign_in: MakeUser) -> None:
    user = sign_in(contacts=1)
    number, _ = asked(user)
    live = taken(user, "live")
    user.app.session_lock()
    user.app.complete(cast("Any", {"id": live["id"], **user.phone.network(live)}))
    [event] = [e for e in user.app.poll()["events"] if e["type"] == "contact"]
    assert (event["request"], event["contact"]) == (number, None)  # type: ignore[typeddict-item]
    assert event["message"]["code"] == "contact_withdrawn"  # type: ignore[typeddict-item]


def test_ATK_13_a_switch_of_organisation_answers(
    sign_in: MakeUser, directory: DirectoryFixtures
) -> None:
    user = sign_in(contacts=1)
    second = directory.organisation()
    directory.control.set_membership(user.person.id, second.id, role="peer_mentor")
    user.app.sync()
    number, _ = asked(user)
    live = taken(user, "live")
    user.app.org_select({"org_id": second.id})
    user.app.complete(cast("Any", {"id": live["id"], **user.phone.network(live)}))
    [event] = answers(user)
    assert (event["request"], event["contact"]) == (number, None)
    assert event["message"]["code"] == "contact_withdrawn"


@pytest.mark.parametrize("trouble", ["back-off", "silence", "token", "offline"])
def test_ATK_13_a_read_that_cannot_be_sent_is_answered_in_time(
    sign_in: MakeUser, directory: DirectoryFixtures, trouble: str
) -> None:
    user = sign_in(contacts=1)
    if trouble == "back-off":
        directory.control.respond("/rest/v1", 503, times=-1, retry_after_s=3600)
        user.app.register()
        user.app.sync()
        number, _ = asked(user)
    elif trouble == "silence":
        number, _ = asked(user)
        taken(user, "live")
    elif trouble == "token":
        directory.control.respond("/auth/v1", 503, times=-1, retry_after_s=3600)
        user.app.wait(TOKEN_S + 60)
        number, _ = asked(user)
    else:
        number, _ = asked(user)
        user.app.go_offline()
    [event] = answers(user, 1 if trouble == "offline" else 31)
    assert (event["request"], event["contact"]) == (number, None)
    code = "offline" if trouble == "offline" else "contact_unreachable"
    assert event["message"]["code"] == code


@pytest.mark.parametrize("moved", [False, True], ids=["deleted", "moved"])
def test_a_live_contact_that_was_deleted_or_moved_to_another_organisation_is_gone(
    user: SignedIn, directory: DirectoryFixtures, moved: bool
) -> None:
    contact = directory.contact(user.org, "Prøve", phone="+47 000 00 002")
    second = directory.organisation()
    directory.control.set_membership(user.person.id, second.id, role="peer_mentor")
    pull(user, after_s=60)
    asked = user.app.contact_get({"id": contact, "live": True})
    if moved:
        directory.control.sql("update contacts set org_id = %s where id = %s", second.id, contact)
    else:
        directory.control.sql("delete from contacts where id = %s", contact)
    user.app.settle()
    [event] = user.app.of_type("contact")
    assert event["request"] == asked["request"]
    assert (event["contact"], event["message"]["code"]) == (None, "contact_gone")
