"""The app offline, and when the network returns; the same for every role."""

from __future__ import annotations

from typing import Any

import pytest

from support import children, scan
from support.directory_fixtures import DirectoryFixtures
from support.held import taken
from support.phone import TOKEN_S
from support.screens import seen
from support.sizes import sampled
from support.users import MakeUser, SignedIn

#: OFF-9: what holds for a peer mentor holds for an administrator.
EACH_ROLE = pytest.mark.parametrize("role", sampled(["peer_mentor", "org_admin"], 2))


def codes(banners: list[Any]) -> dict[str, str]:
    """(code, tone) of each banner."""
    return {each["code"]: each["tone"] for each in banners}


@EACH_ROLE
def test_OFF_1_an_activity_is_registered_offline(
    sign_in: MakeUser, directory: DirectoryFixtures, role: str
) -> None:
    user = sign_in(role)
    app = user.offline()
    added = app.queue_add(
        {
            "kind": "activity",
            "payload": {"type": "samtale", "minutes": 45, "note": "på kaféen"},
            "occurred_at_ms": user.phone.now_ms,
        }
    )
    assert added["state"] == "pending"
    item = app.queue_get({"id": added["id"]})["item"]
    assert item["payload"]["note"] == "på kaféen"
    assert item["org_id"] == user.org.id
    assert item["occurred_at_ms"] == user.phone.now_ms
    assert [reason["code"] for reason in app.queue_explain()["reasons"]] == ["offline"]
    app.settle()
    assert directory.activities(user.person) == []
    app = user.restart(online=False)
    assert [each["id"] for each in app.queue_list()["items"]] == [added["id"]]


@EACH_ROLE
def test_OFF_2_the_app_opens_offline(
    sign_in: MakeUser, directory: DirectoryFixtures, role: str
) -> None:
    user = sign_in(role, contacts=6)
    user.phone.pass_time(TOKEN_S + 60)
    app = user.restart(online=False)
    assert app.screen["screen"] == "unlock"
    screen = app.touch()
    assert seen(screen) == ("home", None)
    assert screen["route"] == user.home
    assert codes(list(screen["banners"]))["offline"] == "info"
    assert app.contact_search({"query": ""})["total"] == 6
    app.settle()
    assert user.phone.network.sent == []
    assert "validation" in app.session_status()["owed"]


@EACH_ROLE
def test_OFF_3_live_data_offline_comes_from_the_cache(
    sign_in: MakeUser, directory: DirectoryFixtures, role: str
) -> None:
    user = sign_in(role, contacts=1)
    app = user.app
    [contact] = app.contact_search({"query": ""})["contacts"]
    app.go_offline()
    user.phone.network.forget()
    reply = app.contact_get({"id": contact["id"], "live": True})
    assert reply["contact"]["name"] == contact["name"]
    assert reply["request"] is None
    assert codes(list(reply["banners"]))["offline"] == "info"
    assert codes(list(app.contact_search({"query": ""})["banners"]))["offline"] == "info"
    assert codes(list(app.summary_get()["banners"]))["offline"] == "info"
    started = app.sync_now()
    assert (started["started"], started["reason"]) == (False, "offline")
    app.settle()
    assert user.phone.network.sent == []


@EACH_ROLE
def test_OFF_4_queued_items_are_sent_automatically(
    sign_in: MakeUser, directory: DirectoryFixtures, role: str
) -> None:
    user = sign_in(role)
    app = user.offline()
    ids = [app.register(minutes=10 + number) for number in range(3)]
    app.go_online()
    events = app.settle_until("sync_completed")
    done: list[Any] = [event for event in events if event["type"] == "sync_completed"]
    assert [(event["sent"], event["parked"], event["waiting"]) for event in done] == [(3, 0, 0)]
    assert {str(row["id"]) for row in directory.activities(user.person)} == set(ids)
    assert {str(row["org_id"]) for row in directory.activities(user.person)} == {user.org.id}
    assert app.queue_list()["items"] == []
    app.settle()
    user.restart().settle()
    assert user.app.of_type("sync_completed") == []


@EACH_ROLE
def test_OFF_5_the_session_is_validated_silently(
    sign_in: MakeUser, directory: DirectoryFixtures, role: str
) -> None:
    user = sign_in(role)
    user.phone.pass_time(TOKEN_S + 60)
    app = user.restart(online=False)
    app.touch()
    app.settle()
    item = app.register()
    loads = user.phone.keychain.calls["load", "biometric"]
    app.reconnect()
    assert directory.refreshes() == 1
    status = app.session_status()
    assert (status["state"], status["owed"], status["stale"]) == ("active", [], False)
    assert user.phone.keychain.calls["load", "biometric"] == loads
    shown = [event["screen"] for event in app.of_type("screen")]
    assert {(decision["screen"], decision["route"]) for decision in shown} <= {("home", user.home)}
    assert app.screen["banners"] == []
    assert [str(row["id"]) for row in directory.activities(user.person)] == [item]


@EACH_ROLE
def test_OFF_6_network_only_details_need_a_connection(
    sign_in: MakeUser, directory: DirectoryFixtures, role: str
) -> None:
    user = sign_in(role)
    secret = {"phone": "+47 000 12 345", "address": "Prøveveien 17", "national_id": "00000012345"}
    contact = directory.contact(user.org, "Frøydis Prøvesen", municipality="Vadsø", **secret)
    app = user.app
    app.sync()
    app.go_offline()
    reply = app.contact_get({"id": contact, "live": True})
    assert sorted(reply["needs_network"]) == ["address", "national_id", "phone"]
    assert reply["message"] is not None
    assert reply["message"]["text"]
    assert "encrypted_requires_connectivity" in codes(list(reply["banners"]))
    assert reply["contact"]["name"] == "Frøydis Prøvesen"
    assert reply["contact"]["municipality"] == "Vadsø"
    assert set(reply["contact"]) & set(secret) == set()
    assert scan.scan_files(user.phone.folder, *secret.values()) == []
    app.go_online()
    reply = app.contact_get({"id": contact, "live": True})
    assert reply["request"] is not None
    app.settle()
    [event] = [e for e in app.of_type("contact") if e["request"] == reply["request"]]
    # except the national id, which the server shows to coordinators and administrators only
    shown: dict[str, Any] = {**secret}
    if role == "peer_mentor":
        shown["national_id"] = None
    assert {name: event["contact"][name] for name in secret} == shown
    assert scan.scan_files(user.phone.folder, *secret.values()) == []


@EACH_ROLE
def test_OFF_7_contacts_are_searched_in_the_cache(
    sign_in: MakeUser, directory: DirectoryFixtures, role: str
) -> None:
    user = sign_in(role)
    names = ["Åse Øvingsdal", "Bjørn Prøvé", "Cæcilie Testås", "Kåre Bjørnsen", "O'Brien, Pål"]
    for name in names:
        directory.contact(user.org, name)
    app = user.app
    app.sync()
    app.go_offline()
    user.phone.pass_time(600)
    hits = {"ASE": ["Åse Øvingsdal"], "": sorted(names), "zzz": [], "caec": ["Cæcilie Testås"]}
    for query, expected in hits.items():
        reply = app.contact_search({"query": query})
        assert sorted(contact["name"] for contact in reply["contacts"]) == expected, query
        assert reply["total"] == len(expected)
        assert reply["as_of_ms"] is not None
        assert 600_000 <= user.phone.now_ms - reply["as_of_ms"] < 660_000
        assert codes(list(reply["banners"]))["offline"] == "info"
    reply = app.contact_search({"query": "", "limit": 2})
    assert (len(reply["contacts"]), reply["total"]) == (2, 5)


@EACH_ROLE
def test_OFF_8_the_summary_counts_queued_items_separately(
    sign_in: MakeUser, directory: DirectoryFixtures, role: str
) -> None:
    user = sign_in(role)
    app = user.app
    app.register(minutes=60)
    app.register(minutes=15)
    app.settle_until("sync_completed")
    app.sync()
    app.go_offline()
    app.register(minutes=20)
    app.register(minutes=25)
    user.phone.pass_time(300)
    reply = app.summary_get()
    assert reply["summary"] is not None
    assert (reply["summary"]["activities"], reply["summary"]["minutes"]) == (2, 75)
    assert reply["queued"] == {"activities": 2, "minutes": 45}
    assert reply["as_of_ms"] is not None
    assert 300_000 <= user.phone.now_ms - reply["as_of_ms"] < 360_000
    assert {"offline", "queued_not_sent"} <= set(codes(list(reply["banners"])))


def test_OFF_1_OFF_4_it_is_durable_before_the_call_returns_and_sent_after_a_kill(
    user: SignedIn, directory: DirectoryFixtures
) -> None:
    user.phone.close()
    ended = children.run("register_and_die.py", user.phone.spec(), "5")
    assert ended.killed, ended.errors
    acknowledged = ended.output.split()
    assert len(acknowledged) == 5
    app = user.restart(online=False)
    items = app.queue_list()["items"]
    assert [item["id"] for item in items] == acknowledged
    assert [item["payload"]["minutes"] for item in items] == [10, 11, 12, 13, 14]
    app.go_online()
    [done] = [e for e in app.settle_until("sync_completed") if e["type"] == "sync_completed"]
    assert (done["sent"], done["parked"]) == (5, 0)
    assert {str(row["id"]) for row in directory.activities(user.person)} == set(acknowledged)


def test_OFF_3_an_empty_cache_says_so(user: SignedIn, directory: DirectoryFixtures) -> None:
    second = directory.organisation(contacts=3)
    directory.control.set_membership(user.person.id, second.id, role="peer_mentor")
    app = user.restart()
    app.settle()
    app.go_offline()
    app.org_select({"org_id": second.id})
    for reply in (app.contact_search({"query": ""}), app.summary_get()):
        assert "nothing_cached_yet" in codes(list(reply["banners"]))
        assert reply["as_of_ms"] is None
    assert app.contact_search({"query": ""})["contacts"] == []
    assert app.summary_get()["summary"] is None


def test_OFF_5_a_valid_token_is_validated_without_a_refresh(
    sign_in: MakeUser, directory: DirectoryFixtures
) -> None:
    user = sign_in(policy={"session_window_s": 100})
    user.phone.pass_time(200)
    app = user.restart(online=False)
    app.touch()
    app.reconnect()
    assert directory.refreshes() == 0
    assert user.phone.network.count("validate") == 1
    assert app.session_status()["owed"] == []


def test_OFF_9_the_administrator_s_routes_hold_offline(sign_in: MakeUser) -> None:
    user = sign_in("org_admin")
    app = user.restart(online=False)
    assert app.screen["route"] == "/admin"
    assert app.route_check({"route": "/anything"}) == {"allow": True}


def test_coming_online_makes_the_memberships_cached_until_the_server_answers(
    user: SignedIn,
) -> None:
    app = user.app
    assert app.org_list()["freshness"] == "confirmed"
    app.go_offline()
    app.go_online()
    assert app.org_list()["freshness"] == "cached"
    request = taken(user, "guard")
    assert app.org_list()["freshness"] == "cached"
    answer: Any = {"id": request["id"], **user.phone.network(request)}
    app.complete(answer)
    assert app.org_list()["freshness"] == "confirmed"
