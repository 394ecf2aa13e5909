"""The organisation guard: server answers, cached memberships, and their age."""

from __future__ import annotations

from typing import Any

import pytest

from support import own_rows
from support.directory_fixtures import DirectoryFixtures
from support.errors import error_of
from support.held import return_to_foreground
from support.phone import ROUTES, App
from support.queue import add
from support.screens import seen, why
from support.users import MakePhone, MakeUser, SignedIn, signed_in


def test_ORG_8_a_changed_role_leads_to_its_home(
    user: SignedIn, directory: DirectoryFixtures
) -> None:
    seen = len(user.app.events)
    directory.control.set_membership(user.person.id, user.org.id, role="coordinator")
    return_to_foreground(user)
    told = [e["screen"] for e in user.app.events[seen:] if e["type"] == "screen"]
    assert [(d["screen"], d["route"]) for d in told] == [("home", "/coordinator")]
    assert user.app.screen["org"] is not None
    assert user.app.screen["org"]["role"] == "coordinator"
    answer: Any = user.app.route_check({"route": "/mentor"})["screen"]
    assert (why(answer), answer["route"]) == ("route_forbidden", "/coordinator")
    assert user.app.route_check({"route": "/reports/1"}) == {"allow": True}
    assert user.app.of_type("org_access_changed") == []
    assert user.restart().screen["route"] == "/coordinator"


def test_ORG_8_a_new_role_with_the_same_home_is_reported(
    phones: MakePhone, directory: DirectoryFixtures
) -> None:
    routes = {**ROUTES, "coordinator": {"home": "/mentor", "screens": ["/mentor", "/reports/*"]}}
    org = directory.organisation()
    user = signed_in(phones, directory.person(org), org, routes=routes)
    seen = len(user.app.events)
    directory.control.set_membership(user.person.id, org.id, role="coordinator")
    return_to_foreground(user)
    told = [e["screen"] for e in user.app.events[seen:] if e["type"] == "screen"]
    assert [d["org"] and d["org"]["role"] for d in told] == ["coordinator"]
    assert user.app.route_check({"route": "/reports/1"}) == {"allow": True}


def test_ORG_2_an_unknown_role_cannot_be_chosen(
    phones: MakePhone, directory: DirectoryFixtures
) -> None:
    routes = {name: ROUTES[name] for name in ("peer_mentor", "org_admin")}
    first, second = directory.organisation("Nordlys"), directory.organisation("Vestland")
    person = directory.person(first)
    directory.control.set_membership(person.id, second.id, role="coordinator")
    user = signed_in(phones, person, first, routes=routes)
    app = user.app
    before = app.org_list()["orgs"]
    generation = app.session_status()["generation"]
    error = error_of(app.org_select, {"org_id": second.id})
    assert (error.code, error.status, error.field) == ("org.unknown_role", 2, "/org_id")
    assert app.org_list()["orgs"] == before
    assert app.session_status()["generation"] == generation
    directory.control.set_membership(person.id, first.id, role="coordinator")
    return_to_foreground(user)
    assert seen(app.screen) == ("select_org", "role_unknown")
    assert app.screen["message"] is not None
    assert first.name in app.screen["message"]["text"]
    assert [e["reason"] for e in app.of_type("org_access_changed")] == ["role_unknown"]
    assert app.session_status()["state"] == "active"


def test_ORG_2_a_role_without_routes_reads_and_adds_nothing(
    phones: MakePhone, directory: DirectoryFixtures
) -> None:
    org = directory.organisation()
    routes = {"peer_mentor": ROUTES["peer_mentor"]}
    user = signed_in(phones, directory.person(org), org, routes=routes)
    queued = user.offline().register()
    user.app.go_online()
    directory.control.set_membership(user.person.id, org.id, role="coordinator")
    return_to_foreground(user)
    assert seen(user.app.screen) == ("select_org", "role_unknown")
    calls: list[Any] = [
        user.app.register,
        lambda: user.app.contact_search({"query": ""}),
        lambda: user.app.summary_get({}),
    ]
    assert [error_of(call).code for call in calls] == ["org.unknown_role"] * 3
    # What was queued before is sent: the server still knows the membership.
    user.app.settle()
    assert [str(row["id"]) for row in user.phone.directory.activities(user.person)] == [queued]


def test_ORG_2_a_role_without_routes_is_why_a_stored_row_is_not_corrected(
    phones: MakePhone, directory: DirectoryFixtures
) -> None:
    org = directory.organisation()
    routes = {"peer_mentor": ROUTES["peer_mentor"]}
    person = directory.person(org)
    user = signed_in(phones, person, org, routes=routes, tables=own_rows.tables(change={}))
    app = user.app
    item = add(app)
    app.settle()
    directory.control.set_membership(user.person.id, org.id, role="coordinator")
    return_to_foreground(user)
    calls: list[Any] = [
        lambda: app.queue_edit({"id": item, "payload": {"minutes": 9}}),
        lambda: app.queue_cancel({"id": item}),
    ]
    assert [error_of(call).code for call in calls] == ["org.unknown_role"] * 2


@pytest.mark.parametrize(
    ("membership", "reason"),
    [
        ("none", "no_membership"),
        ("unknown role", "role_unknown"),
        ("ended", "no_membership"),
        ("disabled", "first_choice"),
    ],
)
def test_ORG_6_without_a_usable_membership_nothing_is_chosen(
    phones: MakePhone, directory: DirectoryFixtures, membership: str, reason: str
) -> None:
    org = directory.organisation()
    person = directory.person(*([] if membership == "none" else [org]))
    if membership == "ended":
        directory.control.set_membership(person.id, org.id, status="ended")
    elif membership == "disabled":
        directory.control.set_org(org.id, "disabled")
    routes = {"org_admin": ROUTES["org_admin"]} if membership == "unknown role" else ROUTES
    app = phones(routes=routes).start()
    app.sign_in(person)
    assert seen(app.screen) == ("select_org", reason)
    if membership == "none":
        assert app.screen["orgs"] == []
        assert app.screen["message"] is not None
    assert error_of(app.register).code == "org.none"


def whose_access_is_back(sign_in: MakeUser, directory: DirectoryFixtures) -> SignedIn:
    """A user whose app shows that access has ended, and who has it again."""
    user = sign_in()
    directory.control.set_org(user.org.id, "disabled")
    return_to_foreground(user)
    assert why(user.app.screen) == "org_disabled"
    directory.control.set_org(user.org.id, "active")
    return user


def test_ORG_2_restored_access_leads_back_home(
    sign_in: MakeUser, directory: DirectoryFixtures
) -> None:
    user = whose_access_is_back(sign_in, directory)
    return_to_foreground(user)
    assert (user.app.screen["screen"], user.app.screen["route"]) == ("home", user.home)


def test_ORG_2_somebody_who_waits_for_access_learns_that_it_is_back(
    sign_in: MakeUser, directory: DirectoryFixtures
) -> None:
    user = whose_access_is_back(sign_in, directory)
    # The app stays in the foreground, and its user does nothing.
    user.app.wait(900)
    assert (user.app.screen["screen"], user.app.screen["route"]) == ("home", user.home)


def freshness(app: App) -> tuple[str, int | None]:
    listed = app.org_list()
    return listed["freshness"], listed["as_of_ms"]


def test_ORG_3_confirmed_cached_and_revoked_are_told_apart(
    user: SignedIn, directory: DirectoryFixtures
) -> None:
    confirmed = freshness(user.app)
    assert confirmed == ("confirmed", confirmed[1])
    assert confirmed[1] is not None
    assert abs(confirmed[1] - user.phone.now_ms) < 1000
    user.phone.pass_time(1800)
    user.restart()
    assert freshness(user.app) == ("cached", confirmed[1])
    user.app.go_offline()
    user.app.settle()
    [stale] = [b for b in user.app.screen["banners"] if b["code"] == "stale_data"]
    assert stale["as_of_ms"] == confirmed[1]
    directory.control.set_membership(user.person.id, user.org.id, status="ended")
    user.app.reconnect()
    assert freshness(user.app) == ("confirmed", user.phone.now_ms)
    assert [org["status"] for org in user.app.org_list()["orgs"]] == ["revoked"]
    assert why(user.app.screen) == "membership_revoked"


def test_ORG_3_no_memberships_are_known_before_the_first_answer(
    phones: MakePhone, directory: DirectoryFixtures
) -> None:
    app = phones().start()
    app.session_adopt({"session": directory.session(directory.person(directory.organisation()))})
    assert freshness(app) == ("none", None)
    assert app.org_list()["orgs"] == []


@pytest.mark.parametrize("failure", ["offline", "500", "html", "not a list"])
def test_ORG_7_an_unanswered_guard_falls_back_to_cached_memberships(
    user: SignedIn, directory: DirectoryFixtures, failure: str
) -> None:
    known = user.app.org_list()["as_of_ms"]
    bodies = {"500": (500, "{}"), "html": (200, "<html>"), "not a list": (200, '{"a":1}')}
    if failure in bodies:
        status, body = bodies[failure]
        directory.control.respond("/rest/v1/memberships", status, body=body, times=-1)
    user.phone.pass_time(60)
    if failure == "offline":
        user.phone.network.up = False
    app = user.restart()
    app.settle()
    assert app.screen["screen"] == "home"
    assert [(b["code"], b["as_of_ms"]) for b in app.screen["banners"]] == [("stale_data", known)]
    assert app.route_check({"route": "/mentor"}) == {"allow": True}
    directory.control.clear_faults()
    user.phone.network.up = True
    app.wait(400)
    assert app.screen["banners"] == []
    assert app.org_list()["freshness"] == "confirmed"


@pytest.mark.parametrize("org", ["not-a-uuid", "01976b36-0000-7000-8000-00000000abcd"])
def test_ORG_6_an_invalid_choice_changes_nothing(user: SignedIn, org: str) -> None:
    generation = user.app.session_status()["generation"]
    error = error_of(user.app.org_select, {"org_id": org})
    assert error.field == "/org_id"
    assert error.code in {"org.not_a_member", "request.invalid_value"}
    assert user.app.session_status()["generation"] == generation
    assert user.restart().screen["org"] is not None


def test_ORG_2_a_changed_selection_is_reported(
    user: SignedIn, directory: DirectoryFixtures
) -> None:
    directory.control.set_org(user.org.id, "disabled")
    return_to_foreground(user)
    assert why(user.app.screen) == "org_disabled"
    second = directory.organisation("Vestland")
    directory.control.set_membership(user.person.id, second.id)
    directory.control.set_membership(user.person.id, user.org.id, status="ended")
    return_to_foreground(user)
    assert seen(user.app.screen) == (
        "select_org",
        "membership_revoked",
    )
    statuses = {org["org_id"]: org["status"] for org in user.app.screen["orgs"]}
    assert statuses == {user.org.id: "revoked", second.id: "active"}
