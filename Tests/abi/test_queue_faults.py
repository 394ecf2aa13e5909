"""Network and server faults: no item is blamed, duplicated or stuck."""

from __future__ import annotations

import json
from typing import Any

import pytest
from holdfast.transport import Answer
from holdfast.types import HttpRequest

from support.directory_fixtures import DirectoryFixtures
from support.held import answer, taken
from support.queue import (
    BOTH,
    EMPTY,
    UPLOADS,
    add,
    add_offline,
    code_of,
    drain,
    item_of,
    stored,
    user_of,
)
from support.sizes import crossed
from support.users import MakeUser, SignedIn

#: The user stays at home for days.
DAYS = {"session_window_s": 10**7, "offline_limit_s": 10**7}
UNKNOWN = {"code": "", "message": "", "details": None, "hint": None}


def assert_all_sent(user: SignedIn, directory: DirectoryFixtures, ids: list[str]) -> None:
    """Every item is on the server once, and none is queued or parked."""
    assert stored(directory, user.person) == sorted(ids)
    assert user.app.of_type("item_parked") == []
    assert user.app.queue_list()["counts"] == EMPTY


@pytest.mark.both_flavours
@BOTH
@pytest.mark.parametrize("fault", ["drop_before", "drop_after"])
def test_QUE_2_a_connection_lost_around_the_commit_duplicates_nothing(
    sign_in: MakeUser, directory: DirectoryFixtures, upload: str, fault: str
) -> None:
    user = user_of(sign_in, upload)
    ids = add_offline(user, 12)
    getattr(directory.control, fault)(UPLOADS[upload], method="POST", times=3)
    user.app.go_online()
    assert drain(user.app)["sent"] == 12
    assert_all_sent(user, directory, ids)


@BOTH
@pytest.mark.parametrize("keep", [0, 3])
def test_QUE_10_rows_missing_from_an_answer_are_read_back(
    sign_in: MakeUser, directory: DirectoryFixtures, upload: str, keep: int
) -> None:
    user = user_of(sign_in, upload)
    ids = add_offline(user, 250)
    directory.control.truncate_rows(UPLOADS[upload], keep=keep, method="POST")
    user.app.go_online()
    assert drain(user.app)["sent"] == 250
    assert_all_sent(user, directory, ids)


@BOTH
def test_empty_answers_cause_a_back_off(
    sign_in: MakeUser, directory: DirectoryFixtures, upload: str
) -> None:
    user = user_of(sign_in, upload)
    ids = add_offline(user, 5)
    empty: Any = {
        "body": "null" if upload == "table" else "[]",
        "headers": {"Content-Type": "application/json"},
    }
    directory.control.respond(UPLOADS[upload], 200, times=6, method="POST", **empty)
    directory.control.clear_requests()
    user.app.reconnect()
    assert directory.control.count(UPLOADS[upload], "POST") == 1
    drain(user.app)
    assert_all_sent(user, directory, ids)


#: What a server, or something before it, answers while it is out of order.
OUT_OF_ORDER: list[tuple[int, Any]] = [
    (400, UNKNOWN),
    (400, {"code": "ZZ999", "message": "new"}),
    (400, "<html>"),
    (500, {"code": "XX000", "message": "internal error"}),
    (500, {"code": "P0003", "message": "more than one row"}),
    (502, "<html>bad gateway</html>"),
    (404, {"code": "PGRST205", "message": "Could not find the table"}),
    (400, {"code": "PGRST204", "message": "Could not find the 'x' column"}),
    (200, "<html>Log in to the train's network</html>"),
    (500, {"code": "40P01", "message": "deadlock detected"}),
    (503, {"code": "PGRST002", "message": "schema cache"}),
]


@BOTH
def test_QUE_20_server_faults_park_no_item(
    sign_in: MakeUser, directory: DirectoryFixtures, upload: str
) -> None:
    user = user_of(sign_in, upload, policy=DAYS)
    ids: list[str] = []
    for status, body in OUT_OF_ORDER:
        new = add_offline(user, 9)
        ids += new
        directory.control.clear_faults()
        fault = directory.control.respond(
            UPLOADS[upload], status, body=body, times=5, method="POST"
        )
        user.app.go_online()
        # (a run ends without an item that a gateway refused, which is sent a little later)
        user.app.settle_until("sync_completed", within_s=7200)
        while drain(user.app)["waiting"]:
            pass
        case = (status, body)
        assert set(new) <= set(stored(directory, user.person)), case
        [rule] = [each for each in directory.control.faults() if each["id"] == fault]
        assert rule["hits"] >= 1, case
        assert user.app.of_type("item_parked") == [], case
        assert user.app.queue_list()["counts"] == EMPTY, case
    assert_all_sent(user, directory, ids)


@pytest.mark.parametrize(
    "sqlstate",
    crossed(
        ["40001", "53300", "57P01", "55P03", "XX000", "ZZ999"],
        fast=lambda sqlstate: sqlstate in ("40001", "ZZ999"),
    ),
)
def test_QUE_20_a_function_s_row_with_a_code_that_blames_no_item_is_not_parked(
    sign_in: MakeUser, directory: DirectoryFixtures, sqlstate: str
) -> None:
    user = user_of(sign_in, "rpc")
    app = user.offline()
    ids = [add(app) for _ in range(9)]
    refusals: list[str] = []

    def refuse(request: HttpRequest) -> Answer | None:
        rows = json.loads(request["body"] or "{}").get("items", [])
        others = [row for row in rows if row["id"] != ids[4]]
        if len(rows) == len(others) or len(refusals) == 4:
            return None
        refusals.append(ids[4])
        answer = user.phone.network._http({**request, "body": json.dumps({"items": others})})
        assert "status" in answer
        told = json.loads(answer["body"] or "[]")
        told.append({"id": ids[4], "status": "rejected", "sqlstate": sqlstate, "message": "no"})
        return {**answer, "body": json.dumps(told)}

    user.phone.network.instead.append(refuse)
    app.reconnect()
    assert stored(directory, user.person) == sorted(set(ids) - {ids[4]})
    assert item_of(app, ids[4])["state"] == "waiting"
    # items that are added meanwhile do not wait for it,
    ids.append(add(app))
    app.settle()
    assert ids[-1] in stored(directory, user.person)
    # and it is sent again, and not parked (a run ends without an item that fails alone)
    while (done := drain(app))["waiting"]:
        pass
    assert done["parked"] == 0
    assert len(refusals) == 4
    assert_all_sent(user, directory, ids)


@BOTH
def test_QUE_20_an_answer_that_cannot_be_used_ends_no_back_off(
    sign_in: MakeUser, directory: DirectoryFixtures, upload: str
) -> None:
    user = user_of(sign_in, upload)
    app = user.app
    item = add(app)
    fault = directory.control.respond(
        UPLOADS[upload], 200, body={"ok": True}, times=-1, method="POST"
    )
    app.settle()
    for _ in range(200):
        until_ms = app.sync_status()["not_before_ms"]
        assert until_ms is not None
        app.wait((until_ms - user.phone.now_ms) / 1000)
        if directory.control.count(UPLOADS[upload], "POST") == 12:
            break
    began = app.queue_get({"id": item})["item"]["created_ms"]
    assert user.phone.now_ms - began > 12 * 4_000
    directory.control.clear_faults(fault)
    drain(app)
    assert_all_sent(user, directory, [item])


@BOTH
def test_QUE_20_a_stopped_database_parks_no_item(
    sign_in: MakeUser, directory: DirectoryFixtures, upload: str
) -> None:
    user = user_of(sign_in, upload)
    ids = add_offline(user, 5)
    directory.control.stop_database()
    try:
        user.app.reconnect()
        user.app.wait(300)
        assert user.app.queue_list()["counts"]["parked"] == 0
    finally:
        directory.control.start_database()
    drain(user.app)
    assert_all_sent(user, directory, ids)


@BOTH
def test_QUE_20_a_late_answer_after_the_timeout_is_ignored(
    sign_in: MakeUser, directory: DirectoryFixtures, upload: str
) -> None:
    user = user_of(sign_in, upload)
    ids = add_offline(user, 3)
    user.app.go_online()
    request = taken(user, "upload")
    late: Any = {"id": request["id"], **user.phone.network(request)}
    assert {item["state"] for item in user.app.queue_list()["items"]} == {"sending"}
    user.phone.pass_time(request["timeout_ms"] / 1000 + 5)
    assert drain(user.app)["sent"] == 3
    assert user.app.complete(late) == {}
    assert_all_sent(user, directory, ids)


def test_a_missing_table_blocks_no_other_kind(
    sign_in: MakeUser, directory: DirectoryFixtures
) -> None:
    columns = ["type", "minutes", "occurred_at", "user_id"]
    kinds = {
        "visit": {"table": "visits_of_next_year", "columns": ["name"]},
        "activity": {"table": "activities", "columns": columns},
    }
    user = sign_in(tables={"queue": kinds})
    early = user.offline().queue_add({"kind": "visit", "payload": {"name": "x"}})["id"]
    ids = [add(user.app) for _ in range(5)]
    user.app.reconnect()
    assert stored(directory, user.person) == sorted(ids)
    assert item_of(user.app, early)["state"] == "waiting"
    directory.control.clear_requests()
    for _ in range(40):
        user.app.wait(30)
    # with growing pauses
    assert 3 <= directory.control.count("/rest/v1/visits_of_next_year", "POST") <= 20
    assert user.app.queue_list()["counts"]["parked"] == 0


@BOTH
def test_QUE_5_refused_new_tokens_cause_no_refresh_storm(
    sign_in: MakeUser, directory: DirectoryFixtures, upload: str
) -> None:
    user = user_of(sign_in, upload)
    ids = add_offline(user, 3)
    body = {"code": "PGRST301", "message": "No suitable key"}
    fault = directory.control.respond("/rest/v1/", 401, body=body, times=-1)
    before = directory.refreshes()
    user.app.go_online()
    for _ in range(20):
        user.app.settle()
        user.phone.pass_time(30)
    assert directory.refreshes() - before <= 20
    assert {item["attempts"] for item in user.app.queue_list()["items"]} == {0}
    assert user.app.screen["screen"] == "home"
    directory.control.clear_faults(fault)
    drain(user.app)
    assert_all_sent(user, directory, ids)


@BOTH
@pytest.mark.parametrize("form", ["retry_after_s", "retry_after_date_s"])
def test_QUE_7_retry_after_is_kept_over_a_restart_and_a_change_of_the_network(
    sign_in: MakeUser, directory: DirectoryFixtures, upload: str, form: str
) -> None:
    user = user_of(sign_in, upload)
    ids = add_offline(user, 3)
    # (its own answer: a gateway's would be a pause of five minutes at most)
    asked: Any = {form: 600, "body": {"code": "PT429", "message": "slow down"}}
    directory.control.respond(UPLOADS[upload], 429, method="POST", **asked)
    user.app.reconnect()
    app = user.restart()
    app.go_offline()
    app.reconnect()
    app.wait(590)
    assert directory.control.count(UPLOADS[upload], "POST") == 1
    assert 0 < (app.poll()["wake_in_ms"] or 0) <= 312_000
    drain(app)
    assert_all_sent(user, directory, ids)


def test_QUE_7_full_jitter_and_no_request_while_offline(
    user: SignedIn, directory: DirectoryFixtures
) -> None:
    app = user.app
    add(app)
    directory.control.respond("/rest/v1/", 503, times=-1)
    app.settle()
    pauses: list[int] = []
    for _ in range(14):
        until = app.sync_status()["not_before_ms"]
        assert until is not None
        pauses.append(until - user.phone.now_ms)
        directory.control.clear_requests()
        app.wait((pauses[-1] - 1) / 1000)
        assert directory.control.count("/rest/v1/activities", "POST") == 0
        app.wait(0.001)
        assert directory.control.count("/rest/v1/activities", "POST") == 1
    assert all(2000 <= pause <= 300_000 for pause in pauses)
    assert all(pause <= 2000 * 2 ** (n + 1) for n, pause in enumerate(pauses))
    assert max(pauses) > 30_000
    assert len(set(pauses)) > 10
    app.go_offline()
    directory.control.clear_faults()
    user.phone.network.forget()
    app.wait(3600)
    assert user.phone.network.sent == []


@BOTH
def test_QUE_6_items_stored_before_the_membership_ended_are_held(
    sign_in: MakeUser, directory: DirectoryFixtures, upload: str
) -> None:
    user = user_of(sign_in, upload)
    app = user.offline()
    ids = [add(app) for _ in range(4)]
    directory.control.drop_after(UPLOADS[upload], method="POST")
    app.reconnect()
    assert stored(directory, user.person) == sorted(ids)
    directory.control.set_membership(user.person.id, user.org.id, status="ended")
    for _ in range(6):
        app.wait(60)
    assert app.queue_list()["counts"] == {**EMPTY, "waiting": 4}
    assert {code_of(app, item) for item in ids} == {"waiting_organisation"}
    directory.control.set_membership(user.person.id, user.org.id, status="active")
    drain(app)
    assert_all_sent(user, directory, ids)


def test_QUE_6_a_membership_that_ends_twice_parks_nothing(
    user: SignedIn, directory: DirectoryFixtures
) -> None:
    app = user.app
    directory.control.set_membership(user.person.id, user.org.id, status="ended")
    item = add(app)
    app.settle()
    assert code_of(app, item) == "waiting_organisation"
    # Restore the membership, and end it between the check's answer and the upload
    directory.control.set_membership(user.person.id, user.org.id, status="active")
    user.phone.pass_time(1000)
    for _ in range(10):
        requests = app.poll()["requests"]
        for request in requests:
            app.complete({"id": request["id"], **user.phone.network(request)})
        if any(request["purpose"] == "guard" for request in requests):
            directory.control.set_membership(user.person.id, user.org.id, status="ended")
            break
    for _ in range(5):
        app.settle()
        user.phone.pass_time(60)
    assert item_of(app, item)["state"] == "waiting"
    assert app.of_type("item_parked") == []


@BOTH
def test_QUE_10_a_taken_id_is_parked_and_the_others_are_sent(
    sign_in: MakeUser, directory: DirectoryFixtures, upload: str
) -> None:
    other = sign_in()
    taken = add(other.app)
    drain(other.app)
    user = user_of(sign_in, upload)
    app = user.offline()
    ids = [add(app) for _ in range(5)]
    add(app, taken)
    app.go_online()
    done = drain(app)
    assert (done["sent"], done["parked"]) == (5, 1)
    assert code_of(app, taken) == "conflict"
    assert stored(directory, user.person) == sorted(ids)
    assert stored(directory, other.person) == [taken]


def test_logout_during_an_unconfirmed_batch_uses_no_other_users_token(
    user: SignedIn, directory: DirectoryFixtures
) -> None:
    # Given a batch whose answer has no rows, so that its ids must be read back
    app = user.offline()
    ids = [add(app) for _ in range(3)]
    directory.control.truncate_rows("/rest/v1/activities", keep=0, method="POST")
    app.go_online()
    flying = taken(user, "upload")
    assert app.session_logout()["unsent"] == 3
    answer(app, flying)
    other = directory.person(directory.organisation())
    app.sign_in(other)
    user.phone.network.forget()
    for _ in range(3):
        app.wait(100)
    assert "upload" not in user.phone.network.purposes()
    app.session_logout()
    app.sign_in(user.person)
    drain(app)
    assert_all_sent(user, directory, ids)


def test_logout_while_ids_are_read_back_leaves_nothing_in_flight(
    user: SignedIn, directory: DirectoryFixtures
) -> None:
    app = user.offline()
    ids = [add(app) for _ in range(3)]
    directory.control.truncate_rows("/rest/v1/activities", keep=0, method="POST")
    app.go_online()
    sent = False
    while not sent:
        for request in app.poll()["requests"]:
            app.complete({"id": request["id"], **user.phone.network(request)})
            sent = sent or request["purpose"] == "upload"
    app.session_logout()
    app.sign_in(user.person)
    drain(app)
    assert_all_sent(user, directory, ids)
