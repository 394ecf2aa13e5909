"""Items reach the server once: sent, held, parked, in runs that end and are told."""

from __future__ import annotations

import json
import uuid
from pathlib import Path
from typing import Any

import pytest

from support import children
from support.directory_fixtures import DirectoryFixtures
from support.errors import error_of
from support.held import return_to_foreground, taken
from support.queue import (
    BAD_MINUTES,
    BOTH,
    UPLOADS,
    activity,
    add,
    code_of,
    drain,
    edit,
    item_of,
    stored,
    user_of,
)
from support.sizes import sized
from support.users import MakeUser, SignedIn

# The main path ------------------------------------------------------------------------------------


@pytest.mark.parametrize("limit", [1, 2, 6])
def test_QUE_2_a_page_limit_of_the_server_makes_no_conflicts(
    user: SignedIn, directory: DirectoryFixtures, limit: int
) -> None:
    app = user.app
    app.settle()
    app.go_offline()
    ids = [app.register(minutes=1 + number) for number in range(7)]
    directory.control.drop_after(UPLOADS["table"], method="POST")
    directory.control.set(max_rows=limit)
    app.go_online()
    app.settle_until("sync_completed", within_s=7200)
    assert app.of_type("item_parked") == []
    assert app.queue_list()["items"] == []
    assert sorted(str(row["id"]) for row in directory.activities(user.person)) == sorted(ids)


@BOTH
def test_QUE_2_a_death_between_commit_and_answer_duplicates_nothing(
    sign_in: MakeUser, directory: DirectoryFixtures, upload: str
) -> None:
    user = user_of(sign_in, upload)
    ids = [add(user.app) for _ in range(10)]
    assert user.phone.network(taken(user, "upload"))["status"] in {200, 201}
    app = user.restart()
    assert drain(app)["sent"] == 10
    assert stored(directory, user.person) == sorted(ids)
    assert app.queue_list()["items"] == []


@pytest.mark.both_flavours
def test_QUE_2_the_payload_arrives_as_it_was_registered(
    user: SignedIn, directory: DirectoryFixtures
) -> None:
    contact = directory.contact(user.org, "Kari Prøve")
    note = 'sitat: "æøå" \\ \n\t\U0001f9ad'
    payload: Any = {"type": "gåtur", "minutes": 90, "contact_id": contact, "note": note}
    request: Any = {"kind": "activity", "payload": payload, "occurred_at_ms": 1_795_000_000_123}
    item = user.app.queue_add(request)["id"]
    follow = user.app.register(follows=item)
    user.app.settle_until("sync_completed")
    rows = {str(row["id"]): row for row in directory.activities(user.person)}
    stored = {name: str(value) for name, value in rows[item].items()}
    assert {name: stored[name] for name in payload} == {**payload, "minutes": "90"}
    assert stored["org_id"] == user.org.id
    assert stored["occurred_at"].startswith("2026-11-18 11:06:40.123")
    assert str(rows[follow]["follows"]) == item


@pytest.mark.parametrize("given", ["nothing", "an id", "a column", "null"])
def test_HST_4_an_item_without_a_time_happens_now(
    user: SignedIn, directory: DirectoryFixtures, given: str
) -> None:
    user.app.go_offline()
    request: Any = {"kind": "activity", "payload": {"type": "visit", "minutes": 30}}
    if given == "an id":
        request["id"] = str(uuid.uuid4())
    elif given == "a column":
        request["payload"]["occurred_at"] = "2026-03-01T12:30:00Z"
    elif given == "null":
        request["payload"]["occurred_at"] = None
    now_ms = user.phone.now_ms
    item = user.app.queue_add(request)["id"]
    # Its time is that of the call, unless the host says otherwise, or may add the same item again
    shown = user.app.queue_get({"id": item})["item"]["occurred_at_ms"]
    # (by the server's clock, which it tells in whole seconds)
    assert abs(shown - now_ms) < 2_000 if given == "nothing" else shown is None
    if given == "an id":
        user.phone.pass_time(60)
        assert user.app.queue_add(request)["id"] == item
    user.app.reconnect()
    stored = {str(row["id"]) for row in directory.activities(user.person)}
    assert (item in stored) == (given in {"nothing", "a column"})
    # A kind without the column has no time
    contact = user.app.queue_add({"kind": "contact", "payload": {"name": "Ola"}})["id"]
    assert user.app.queue_get({"id": contact})["item"]["occurred_at_ms"] is None


# Outcomes -----------------------------------------------------------------------------------------


def test_QUE_1_a_process_killed_at_any_write_loses_no_acknowledged_item(
    user: SignedIn, killer: Path, tmp_path: Path
) -> None:
    user.app.go_offline()
    ids = [user.app.register(minutes=1 + number) for number in range(3)]
    user.phone.close()
    fourth = activity("01976b36-0000-7000-8000-0000000c0de4", minutes=44)
    found = []
    arguments = "die_during.py", "queue_add", json.dumps(fourth)
    for twin, _ in children.deaths(user.phone, tmp_path, killer, *arguments, stride=sized(4, 1)):
        items = twin.start(online=False).queue_list()["items"]
        assert [item["id"] for item in items[:3]] == ids
        assert [item["payload"]["minutes"] for item in items[:3]] == [1, 2, 3]
        added = [(item["id"], item["payload"]) for item in items[3:]]
        assert added in ([], [(fourth["id"], fourth["payload"])])
        found.append(len(items))
    assert found[0] == 3, "no process died before the commit: the killer did not work"
    assert found[-1] == 4
    assert found == sorted(found)


def test_QUE_4_a_parked_item_survives_restarts_and_is_sent_when_it_is_corrected(
    user: SignedIn, directory: DirectoryFixtures
) -> None:
    item = add(user.app, minutes=BAD_MINUTES)
    drain(user.app)
    app = user.restart()
    app.settle()
    assert item_of(app, item)["state"] == "parked"
    for request in ({}, {"id": item}):
        assert app.queue_retry(request)["retried"] == 1
        assert item_of(app, item)["state"] == "pending"
        app.settle()
        assert item_of(app, item)["state"] == "parked"
    assert [r["code"] for r in app.queue_explain()["reasons"]] == ["parked"]
    [exported] = app.queue_export({"state": "parked"})["items"]
    assert (exported["id"], exported["payload"]["minutes"]) == (item, BAD_MINUTES)
    assert edit(app, item, 45) == "pending"
    app.events.clear()
    assert drain(app)["sent"] == 1
    assert stored(directory, user.person) == [item]


def test_QUE_5_a_refused_token_is_refreshed_and_no_attempt_is_charged(
    user: SignedIn, directory: DirectoryFixtures
) -> None:
    item = user.offline().register()
    body = {"code": "PGRST303", "message": "JWT expired", "details": None, "hint": None}
    directory.control.respond("/rest/v1/activities", 401, body=body)
    user.app.go_online()
    done = drain(user.app)
    assert (done["sent"], done["parked"]) == (1, 0)
    assert directory.refreshes() == 1
    assert stored(directory, user.person) == [item]


def test_QUE_6_items_of_an_ended_membership_are_held(
    user: SignedIn, directory: DirectoryFixtures
) -> None:
    second = directory.organisation()
    directory.control.set_membership(user.person.id, second.id, role="peer_mentor")
    app = user.restart()
    app.settle()
    app.go_offline()
    held = app.register()
    app.org_select({"org_id": second.id})
    free = app.register()
    directory.control.set_membership(user.person.id, user.org.id, status="ended")
    app.reconnect()
    for _ in range(5):
        app.wait(60)
    assert stored(directory, user.person) == [free]
    item = app.queue_get({"id": held})["item"]
    assert item["state"] == "waiting"
    assert item["reason"] is not None
    assert "organisation" in [r["code"] for r in app.queue_explain()["reasons"]]
    assert app.of_type("item_parked") == []
    directory.control.set_membership(user.person.id, user.org.id, status="active")
    return_to_foreground(user)
    for _ in range(5):
        app.wait(600)
    assert stored(directory, user.person) == sorted({free, held})


def test_QUE_7_retry_after_holds_while_other_requests_succeed(
    user: SignedIn, directory: DirectoryFixtures
) -> None:
    app = user.offline()
    item = app.register()
    busy = {"code": "PGRST001", "message": "no connection", "details": None, "hint": None}
    directory.control.respond(
        "/rest/v1/activities", 503, body=busy, retry_after_s=60, method="POST"
    )
    user.phone.network.forget()
    app.go_online()
    under_way = app.poll()["requests"]
    assert {"guard", "upload"} <= {request["purpose"] for request in under_way}
    for request in sorted(under_way, key=lambda it: it["purpose"] != "upload"):
        answer: Any = {"id": request["id"], **user.phone.network(request)}
        app.complete(answer)
    user.phone.pass_time(50)
    app.sync()
    assert user.phone.network.count("upload") == 1
    app.wait(70)
    assert stored(directory, user.person) == [item]
    assert user.phone.network.count("upload") == 2


def test_QUE_8_an_item_waits_for_the_one_it_depends_on(
    user: SignedIn, directory: DirectoryFixtures
) -> None:
    app = user.offline()
    first = add(app, minutes=BAD_MINUTES)
    second = add(app, follows=first, depends_on=[first])
    assert item_of(app, second)["state"] == "waiting"
    app.go_online()
    drain(user.app)
    item = item_of(app, second)
    assert (item["state"], item["depends_on"]) == ("waiting", [first])
    assert code_of(app, second) == "dependency_parked"
    assert stored(directory, user.person) == []
    edit(app, first, 5)
    app.events.clear()
    drain(user.app)
    app.settle()
    assert stored(directory, user.person) == sorted({first, second})


def test_QUE_11_items_belong_to_their_owner(user: SignedIn, directory: DirectoryFixtures) -> None:
    item = user.offline().register()
    assert user.app.session_logout()["unsent"] == 1
    other = directory.person(directory.organisation())
    user.app.go_online()
    user.app.sign_in(other)
    user.app.settle()
    assert directory.activities(other) == []
    assert user.app.queue_list()["items"] == []
    assert "other_user" in [r["code"] for r in user.app.queue_explain()["reasons"]]
    user.app.session_logout()
    user.app.sign_in(user.person)
    drain(user.app)
    assert stored(directory, user.person) == [item]


def test_QUE_12_only_an_explicit_discard_deletes_items(
    user: SignedIn, directory: DirectoryFixtures
) -> None:
    user.app.go_offline()
    for _ in range(3):
        user.app.register()
    error = error_of(user.app.session_logout, {"unsent": "discard", "confirm_unsent": 2})
    assert (error.code, error.status) == ("session.confirm_unsent", 4)
    assert error.detail == {"unsent": 3}
    assert user.app.session_status()["state"] == "active"
    assert user.app.session_logout({"unsent": "discard", "confirm_unsent": 3})["unsent"] == 3
    user.app.go_online()
    user.app.sign_in(user.person)
    user.app.settle()
    assert user.app.queue_list()["items"] == []
    assert directory.activities(user.person) == []


def test_QUE_18_queue_explain_names_the_cause(user: SignedIn, directory: DirectoryFixtures) -> None:
    app = user.app

    def causes() -> set[str]:
        reasons = app.queue_explain()["reasons"]
        assert all(reason["text"] for reason in reasons)
        return {reason["code"] for reason in reasons}

    assert causes() == {"nothing_queued"}
    app.go_offline()
    app.register()
    assert causes() == {"offline"}
    app.go_online()
    assert causes() == {"ready"}
    app.settle_until("sync_completed")
    app.register()
    directory.control.respond("/rest/v1/activities", 503, retry_after_s=60, times=1)
    app.settle()
    assert causes() == {"back_off"}
    [reason] = app.queue_explain()["reasons"]
    assert reason["until_ms"] is not None
    assert reason["until_ms"] >= user.phone.now_ms + 59_000
    user.phone.pass_time(120)
    while "upload" not in [request["purpose"] for request in app.poll()["requests"]]:
        pass
    assert causes() == {"sending"}
    app.session_lock()
    assert causes() <= {"locked", "sending"}
    app.session_logout()
    assert causes() == {"signed_out"}


@BOTH
def test_items_that_wait_for_a_time_are_held_with_their_organisation(
    sign_in: MakeUser, directory: DirectoryFixtures, upload: str
) -> None:
    # Given an item that waits for a time, since the server's table is missing
    user = user_of(sign_in, upload)
    app = user.app
    missing = {"code": "PGRST205", "message": "Could not find the table"}
    directory.control.respond(UPLOADS[upload], 404, body=missing, method="POST")
    item = add(app)
    app.settle()
    assert code_of(app, item) == "schema_not_ready"
    directory.control.set_membership(user.person.id, user.org.id, status="ended")
    return_to_foreground(user)
    assert code_of(app, item) == "waiting_organisation"
    user.phone.network.forget()
    app.wait(600)
    assert user.phone.network.count("upload") == 0
    assert code_of(app, item) == "waiting_organisation"
    directory.control.set_membership(user.person.id, user.org.id, status="active")
    return_to_foreground(user)
    drain(app)
    assert stored(directory, user.person) == [item]


@pytest.mark.parametrize("linked", ["before", "while held"])
def test_released_items_still_wait_for_the_items_that_they_depend_on(
    user: SignedIn, directory: DirectoryFixtures, linked: str
) -> None:
    app = user.offline()
    parent = add(app, minutes=BAD_MINUTES)
    child = add(app, minutes=6, **({"follows": parent} if linked == "before" else {}))
    directory.control.set_membership(user.person.id, user.org.id, status="ended")
    app.reconnect()
    assert code_of(app, parent) == "waiting_organisation"
    if linked == "while held":
        assert code_of(app, child) == "waiting_organisation"
        edit(app, child, 6, follows=parent)
    directory.control.set_membership(user.person.id, user.org.id, status="active")
    user.phone.network.forget()
    return_to_foreground(user)
    assert item_of(app, parent)["state"] == "parked"
    assert item_of(app, child)["state"] == "waiting"
    posts = [r for r in user.phone.network.sent if r["purpose"] == "upload"]
    assert posts
    assert not [request for request in posts if f'"id":"{child}"' in (request["body"] or "")]
    edit(app, parent, 5)
    app.settle()
    assert stored(directory, user.person) == sorted([parent, child])


def test_OFF_4_the_end_of_a_run_is_told_once(user: SignedIn, directory: DirectoryFixtures) -> None:
    app = user.offline()
    good, bad = add(app), add(app, minutes=BAD_MINUTES)
    child = add(app, follows=bad)
    user.phone.pass_time(5000)
    app.reconnect()
    [done] = app.of_type("sync_completed")
    assert (done["sent"], done["parked"], done["waiting"]) == (1, 1, 1)
    assert (done["running"], done["left"]) == (False, 1)
    # (the time offline does not count)
    assert done["duration_ms"] < 60_000
    assert done["message"]["text"]
    app.settle()
    assert stored(directory, user.person) == [good]
    edit(app, bad, 5)
    app.settle()
    ends = app.of_type("sync_completed")[1:]
    assert [(e["sent"], e["parked"], e["waiting"]) for e in ends] == [(2, 0, 0)]
    assert stored(directory, user.person) == sorted([good, bad, child])


def test_OFF_4_a_sync_run_that_ends_with_held_items_completes(
    user: SignedIn, directory: DirectoryFixtures
) -> None:
    second = directory.organisation()
    directory.control.set_membership(user.person.id, second.id, role="peer_mentor")
    app = user.restart()
    app.settle()
    app.go_offline()
    app.org_select({"org_id": second.id})
    parent = add(app)
    app.org_select({"org_id": user.org.id})
    add(app, depends_on=[parent])
    directory.control.set_membership(user.person.id, user.org.id, status="ended")
    app.go_online()
    done = drain(app)
    assert (done["sent"], done["parked"], done["waiting"]) == (1, 0, 1)
