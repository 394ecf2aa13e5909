"""The chosen organisation: resume, loss of access, switch, routes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from support import children
from support.directory_fixtures import DirectoryFixtures, Organisation
from support.errors import error_of
from support.phone import ROUTES, TOKEN_S, App
from support.queue import EMPTY
from support.screens import seen, why
from support.users import MakePhone, MakeUser, SignedIn, signed_in

Two = tuple[SignedIn, Organisation]


def banner(app: App, code: str) -> dict[str, Any]:
    """The shown banner with this code."""
    found = [dict(each) for each in app.screen["banners"] if each["code"] == code]
    assert len(found) == 1, app.screen["banners"]
    return found[0]


@pytest.fixture
def two(phones: MakePhone, directory: DirectoryFixtures) -> Two:
    """A user who has chosen the first of two organisations."""
    first, second = directory.organisation("Nordlys"), directory.organisation("Vestland")
    return signed_in(phones, directory.person(first, second), first), second


def test_ORG_1_the_chosen_organisation_is_opened_again(two: Two) -> None:
    user, _ = two
    user.phone.pass_time(TOKEN_S + 60)
    app = user.restart()
    assert why(app.screen) == "token_expired"
    shown = [app.touch()]
    app.settle()
    shown += [event["screen"] for event in app.of_type("screen")]
    assert "select_org" not in {decision["screen"] for decision in shown}
    assert app.screen["screen"] == "home"
    assert app.screen["org"] == {"id": user.org.id, "name": user.org.name, "role": user.role}
    current = [org for org in app.org_list()["orgs"] if org["current"]]
    assert [org["org_id"] for org in current] == [user.org.id]


@pytest.mark.parametrize("cause", ["ended", "deleted", "disabled"])
def test_ORG_2_ended_access_leads_to_the_selection(
    two: Two, directory: DirectoryFixtures, cause: str
) -> None:
    user, second = two
    if cause == "ended":
        directory.control.set_membership(user.person.id, user.org.id, status="ended")
    elif cause == "deleted":
        directory.control.sql("delete from memberships where org_id = %s", user.org.id)
    else:
        directory.control.set_org(user.org.id, "disabled")
    app = user.restart()
    app.settle()
    screen = app.screen
    reason, ended = "membership_revoked", "revoked"
    if cause == "disabled":
        reason, ended = "org_disabled", "disabled"
    assert seen(screen) == ("select_org", reason)
    assert screen["message"] is not None
    assert screen["message"]["code"] == reason
    assert user.org.name in screen["message"]["text"]
    statuses = {org["org_id"]: org["status"] for org in screen["orgs"]}
    assert statuses == {user.org.id: ended, second.id: "active"}
    assert [event["reason"] for event in app.of_type("org_access_changed")] == [reason]
    assert app.session_status()["state"] == "active"
    assert error_of(app.org_select, {"org_id": user.org.id}).code == f"org.{ended}"
    assert error_of(app.register).code == f"org.{ended}"
    assert app.org_select({"org_id": second.id})["screen"] == "home"


@pytest.mark.parametrize("cause", ["revoked", "disabled"])
def test_ORG_2_nothing_is_queued_for_an_organisation_whose_access_has_ended(
    two: Two, directory: DirectoryFixtures, cause: str
) -> None:
    user, second = two
    if cause == "revoked":
        directory.control.set_membership(user.person.id, second.id, status="ended")
    else:
        directory.control.set_org(second.id, "disabled")
    app = user.restart()
    app.settle()
    assert app.screen["screen"] == "home"
    payload = {"type": "visit", "minutes": 5}
    request = {"kind": "activity", "payload": payload, "org_id": second.id}
    error = error_of(app.queue_add, request)
    assert (error.code, error.field) == (f"org.{cause}", "/org_id")
    assert app.queue_list()["counts"] == EMPTY


def test_ORG_3_cached_memberships_serve_offline(sign_in: MakeUser) -> None:
    user = sign_in(contacts=4)
    confirmed = user.app.org_list()["as_of_ms"]
    assert confirmed is not None
    user.phone.pass_time(1200)
    app = user.restart(online=False)
    assert seen(app.screen) == ("home", None)
    stale = banner(app, "stale_data")
    assert (stale["tone"], stale["as_of_ms"]) == ("warning", confirmed)
    assert stale["text"]
    assert banner(app, "offline")["tone"] == "info"
    assert app.org_list()["freshness"] == "cached"
    assert app.contact_search({"query": ""})["total"] == 4
    app.reconnect()
    assert app.screen["banners"] == []
    assert app.org_list()["freshness"] == "confirmed"


def test_ORG_4_the_newest_choice_is_resumed(two: Two) -> None:
    user, second = two
    screen = user.app.org_select({"org_id": second.id})
    assert seen(screen) == ("home", None)
    assert screen["org"] is not None
    assert screen["org"]["id"] == second.id
    app = user.restart()
    assert app.screen["screen"] == "home"
    assert app.screen["org"] == {"id": second.id, "name": second.name, "role": "peer_mentor"}


def test_RES_1_a_choice_asks_no_user_for_proof_during_use(two: Two) -> None:
    """The window of a proof ends at the next start or return, not in the hand of the user."""
    user, second = two
    user.app.wait(13 * 3600)
    assert user.app.screen["screen"] == "home"
    screen = user.app.org_select({"org_id": second.id})
    assert seen(screen) == ("home", None)
    user.app.settle()
    assert user.app.screen["screen"] == "home"


@pytest.mark.parametrize("stride", [4, pytest.param(1, marks=pytest.mark.slow)])
def test_KEEP_5_a_process_killed_at_any_write_of_a_switch_mixes_nothing(
    two: Two, directory: DirectoryFixtures, killer: Path, tmp_path: Path, stride: int
) -> None:
    user, second = two
    directory.contact(user.org, "Kari Første")
    directory.contact(second, "Ola Andre")
    user.app.sync()
    user.phone.close()
    ended_in = []
    arguments = "die_during.py", "org_select", json.dumps({"org_id": second.id})
    for twin, _ in children.deaths(user.phone, tmp_path, killer, *arguments, stride=stride):
        app = twin.start(online=False)
        assert (app.screen["screen"], app.screen["org"] is not None) == ("home", True)
        org = app.screen["org"] or {"id": "", "name": "", "role": ""}
        current = [each["org_id"] for each in app.org_list()["orgs"] if each["current"]]
        assert current == [org["id"]]
        names = [each["name"] for each in app.contact_search({"query": ""})["contacts"]]
        assert names == (["Kari Første"] if org["id"] == user.org.id else [])
        assert app.queue_get({"id": app.register()})["item"]["org_id"] == org["id"]
        ended_in.append(org["id"])
    assert ended_in[0] == user.org.id, "no process died before the commit: the killer did not work"
    assert ended_in[-1] == second.id
    assert ended_in == sorted(ended_in, key=lambda each: each == second.id)


def test_ORG_6_one_membership_is_chosen_for_the_user(
    phones: MakePhone, directory: DirectoryFixtures
) -> None:
    org = directory.organisation()
    person = directory.person(org)
    app = phones().start()
    screen = app.session_adopt({"session": directory.session(person)})
    assert screen["screen"] in {"wait", "home"}
    app.settle()
    assert seen(app.screen) == ("home", None)
    assert app.screen["org"] == {"id": org.id, "name": org.name, "role": "peer_mentor"}


def test_ORG_6_several_memberships_are_offered(
    phones: MakePhone, directory: DirectoryFixtures
) -> None:
    orgs = [directory.organisation(name) for name in ("Nordlys", "Vestland", "Ås")]
    person = directory.person(*orgs)
    app = phones().start()
    app.sign_in(person)
    assert seen(app.screen) == ("select_org", "first_choice")
    assert {(org["org_id"], org["name"], org["status"]) for org in app.screen["orgs"]} == {
        (org.id, org.name, "active") for org in orgs
    }
    assert [org for org in app.screen["orgs"] if org["current"]] == []
    screen = app.org_select({"org_id": orgs[1].id})
    assert seen(screen) == ("home", None)
    assert screen["org"] is not None
    assert screen["org"]["id"] == orgs[1].id


def test_ORG_7_navigation_waits_for_the_guard_then_uses_cached_memberships(
    user: SignedIn,
) -> None:
    app = user.restart()
    requests = app.poll()["requests"]
    assert "guard" in [request["purpose"] for request in requests]
    answer: Any = app.route_check({"route": "/mentor"})["screen"]
    assert seen(answer) == ("wait", "guard_pending")
    left = answer["deadline_ms"] - user.phone.now_ms
    assert 0 < left <= 2500
    user.phone.pass_time(2.6)
    events = [event for event in app.poll()["events"] if event["type"] == "screen"]
    assert events, "no decision followed the wait"
    assert app.route_check({"route": "/mentor"}) == {"allow": True}
    assert events[-1]["type"] == "screen"
    assert events[-1]["screen"]["screen"] == "home"
    codes = [each["code"] for each in events[-1]["screen"]["banners"]]
    assert codes == ["stale_data"]


#: The routes of deep links, and whether the role may open them.
DEEP_LINKS = {
    "peer_mentor": {
        "/mentor": True,
        "/activities": True,
        "/contacts/0f-1": True,
        "/contacts/0f-1/notes": True,
        "/admin": False,
        "/reports/2026": False,
        "/activities/1": False,
        "/contactsbook": False,
        "/mentor/../admin": False,
        "/contacts/../admin": False,
        "/Mentor": False,
    },
    "coordinator": {"/reports/2026": True, "/mentor": False},
    # Lock finding 14: "*" allows every path, and nothing that is not one.
    "org_admin": {
        "/admin": True,
        "/anything/at/all": True,
        "javascript:alert(1)": False,
        "//host/admin": False,
        "/x/../y": False,
    },
}


@pytest.mark.parametrize("role", DEEP_LINKS)
def test_ORG_8_a_forbidden_deep_link_is_redirected(sign_in: MakeUser, role: str) -> None:
    app = sign_in(role).app
    home = ROUTES[role]["home"]
    for route, is_allowed in DEEP_LINKS[role].items():
        answer: Any = app.route_check({"route": route})
        if is_allowed:
            assert answer == {"allow": True}, route
            continue
        assert answer["allow"] is False
        answer = answer["screen"]
        assert seen(answer) == ("home", "route_forbidden"), route
        assert answer["route"] == home, route
        assert answer["message"]["code"] == "route_forbidden", route
        assert app.route_check({"route": str(home)}) == {"allow": True}, route


def test_ORG_8_a_deep_link_is_refused_while_locked_or_signed_out(user: SignedIn) -> None:
    user.app.session_lock()
    locked: Any = user.app.route_check({"route": "/mentor"})["screen"]
    assert locked["screen"] == "unlock"
    user.app.session_logout()
    out: Any = user.app.route_check({"route": "/mentor"})["screen"]
    assert out["screen"] == "sign_in"


def test_QUE_5_a_token_that_is_refused_for_two_organisations_is_refreshed(
    two: Two, directory: DirectoryFixtures
) -> None:
    """The change of the organisation changes the session, and not its token."""
    # Given an access token that the data service refuses
    user, second = two
    app, network = user.app, user.phone.network
    refused = []

    def answer(request: Any) -> Any:  # noqa: ANN401
        if "/rest/" not in request["url"] or directory.refreshes() > 0:
            return network(request)
        refused.append(request["purpose"])
        return {"status": 401, "headers": {}, "body": '{"code":"PGRST303","message":"JWT expired"}'}

    app.session_foreground()
    while not refused:
        request = app.next(0)["request"]
        app.answer(request, answer(request))
    # When the user changes the organisation before another one is fetched
    app.org_select({"org_id": second.id})
    for _ in range(20):
        app.round(answer)
    # Then another one is fetched, and what was asked for is answered
    assert directory.refreshes() == 1
    assert app.screen["org"] is not None
    assert app.screen["org"]["id"] == second.id
    assert app.session_status()["owed"] == []


def test_QUE_5_a_refresh_that_brings_the_same_token_causes_no_storm(
    two: Two, directory: DirectoryFixtures
) -> None:
    """A server gives the same token twice within a second."""
    user, _ = two
    app, network = user.app, user.phone.network
    token = app.session_token()["access_token"]

    def answer(request: Any) -> Any:  # noqa: ANN401
        if "/rest/" in request["url"]:
            body = '{"code":"PGRST301","message":"No suitable key"}'
            return {"status": 401, "headers": {}, "body": body}
        given = network(request)
        if request["purpose"] == "refresh":
            given = {
                **given,
                "body": json.dumps({**json.loads(given["body"]), "access_token": token}),
            }
        return given

    app.session_foreground()
    for _ in range(20):
        app.round(answer)
    assert directory.refreshes() == 1
    assert app.screen["screen"] == "home"
