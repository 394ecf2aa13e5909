"""What network and server can do to a batch: never the item's fault, never twice, never stuck."""

from __future__ import annotations

from typing import Any

import pytest
from holdfast.transport import Answer
from holdfast.types import HttpRequest

from conftest import MakeUser, SignedIn
from support.directory_fixtures import DirectoryFixtures
from support.queue import (
    BAD_MINUTES,
    EMPTY,
    UPLOADS,
    add,
    code_of,
    drain,
    item_of,
    new_ids,
    stored,
    user_of,
)

BOTH = pytest.mark.parametrize("upload", UPLOADS)
UNKNOWN = {"code": "", "message": "", "details": None, "hint": None}


def assert_all_sent(user: SignedIn, directory: DirectoryFixtures, ids: list[str]) -> None:
    """Everything is on the server once, and nothing is left or parked."""
    assert stored(directory, user.person) == sorted(ids)
    assert user.app.of_type("item_parked") == []
    assert user.app.queue_list()["counts"] == EMPTY


@BOTH
@pytest.mark.parametrize("fault", ["drop_before", "drop_after"])
def test_QUE_2_a_connection_is_lost_before_or_after_the_commit(
    sign_in: MakeUser, directory: DirectoryFixtures, upload: str, fault: str
) -> None:
    user = user_of(sign_in, upload)
    user.app.go_offline()
    ids = [add(user.app) for _ in range(12)]
    getattr(directory.control, fault)(UPLOADS[upload], method="POST", times=3)
    user.app.go_online()
    assert drain(user.app)["sent"] == 12
    assert_all_sent(user, directory, ids)


@BOTH
@pytest.mark.parametrize("keep", [0, 3])
def test_QUE_10_an_answer_with_fewer_rows_than_were_stored(
    sign_in: MakeUser, directory: DirectoryFixtures, upload: str, keep: int
) -> None:
    # Given a server that stores everything and names only some of it
    user = user_of(sign_in, upload)
    user.app.go_offline()
    ids = [add(user.app) for _ in range(250)]
    directory.control.truncate_rows(UPLOADS[upload], keep=keep, method="POST")
    user.app.go_online()
    # Then the rest is asked for, by at most 100 ids at a time, and nothing is reported lost
    assert drain(user.app)["sent"] == 250
    assert_all_sent(user, directory, ids)


@BOTH
def test_a_function_or_table_that_answers_nothing_is_not_asked_all_the_time(
    sign_in: MakeUser, directory: DirectoryFixtures, upload: str
) -> None:
    # Given a server that says 200 and nothing about the rows, and has stored none
    user = user_of(sign_in, upload)
    user.app.go_offline()
    ids = [add(user.app) for _ in range(5)]
    body: Any = "null" if upload == "table" else "[]"
    directory.control.respond(
        UPLOADS[upload],
        200,
        body=body,
        times=6,
        method="POST",
        headers={"Content-Type": "application/json"},
    )
    directory.control.clear_requests()
    user.app.go_online()
    user.app.settle()
    assert directory.control.count(UPLOADS[upload], "POST") == 1
    drain(user.app)
    assert_all_sent(user, directory, ids)


@BOTH
@pytest.mark.parametrize(
    ("status", "body"),
    [
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
    ],
)
def test_QUE_20_no_such_answer_is_the_items_fault(
    sign_in: MakeUser,
    directory: DirectoryFixtures,
    upload: str,
    status: int,
    body: Any,  # noqa: ANN401
) -> None:
    # Given a server that gives such an answer again and again, and then recovers
    user = user_of(sign_in, upload)
    user.app.go_offline()
    ids = [add(user.app) for _ in range(9)]
    directory.control.respond(UPLOADS[upload], status, body=body, times=5, method="POST")
    user.app.go_online()
    drain(user.app)
    # Then nothing was parked, and everything is sent
    assert_all_sent(user, directory, ids)


@BOTH
def test_QUE_20_the_database_stops(
    sign_in: MakeUser, directory: DirectoryFixtures, upload: str
) -> None:
    user = user_of(sign_in, upload)
    user.app.go_offline()
    ids = [add(user.app) for _ in range(5)]
    directory.control.stop_database()
    try:
        user.app.go_online()
        user.app.settle()
        user.phone.pass_time(300)
        user.app.settle()
        assert user.app.queue_list()["counts"]["parked"] == 0
    finally:
        directory.control.start_database()
    drain(user.app)
    assert_all_sent(user, directory, ids)


@BOTH
def test_QUE_20_a_request_that_never_ends_and_an_answer_after_the_time_out(
    sign_in: MakeUser, directory: DirectoryFixtures, upload: str
) -> None:
    # Given an upload that the server has stored, and whose answer does not come
    user = user_of(sign_in, upload)
    user.app.go_offline()
    ids = [add(user.app) for _ in range(3)]
    user.app.go_online()
    late: list[tuple[HttpRequest, Answer]] = []
    for _ in range(5):
        for request in user.app.poll()["requests"]:
            answer = user.phone.network(request)
            if request["purpose"] == "upload":
                late.append((request, answer))
            else:
                user.app.complete({"id": request["id"], **answer})
    [(request, answer)] = late
    assert {item["state"] for item in user.app.queue_list()["items"]} == {"sending"}
    # When its time-out and 5 s have passed
    user.phone.pass_time(request["timeout_ms"] / 1000 + 5)
    assert drain(user.app)["sent"] == 3
    # Then the batch was sent again, and the late answer is ignored
    assert user.app.complete({"id": request["id"], **answer})["accepted"] is False
    assert_all_sent(user, directory, ids)


def test_one_item_that_the_way_there_cannot_take_blocks_nobody(
    sign_in: MakeUser, directory: DirectoryFixtures
) -> None:
    # Given an item at which a firewall on the way hangs up, every time, first in the queue
    user = sign_in()
    user.app.go_offline()
    poison = add(user.app, note="drop table")
    ids = [add(user.app, note="well") for _ in range(20)] + [add(user.app) for _ in range(20)]

    def hang_up(request: HttpRequest) -> Answer:
        if poison in (request["body"] or ""):
            return {"error": "offline"}
        return user.phone.network(request)

    user.app.runner.transport = hang_up
    user.app.go_online()
    for _ in range(60):
        if len(stored(directory, user.person)) == len(ids):
            break
        user.app.settle()
        user.phone.pass_time(max(user.app.poll()["wake_in_ms"] or 1, 1) / 1000)
    # Then all others go through, and it stays, unblamed
    assert stored(directory, user.person) == sorted(ids)
    assert item_of(user.app, poison)["state"] in {"pending", "waiting"}
    # and later items are not held up by it either
    more = add(user.app)
    for _ in range(6):
        user.app.settle()
        user.phone.pass_time(max(user.app.poll()["wake_in_ms"] or 1, 1) / 1000)
    assert more in stored(directory, user.person)


def test_a_table_that_is_not_there_yet_blocks_no_other_kind(
    sign_in: MakeUser, directory: DirectoryFixtures
) -> None:
    # Given a kind whose table the server does not know, and others
    kinds = {
        "visit": {"table": "visits_of_next_year", "columns": ["name"]},
        "activity": {
            "table": "activities",
            "columns": ["type", "minutes", "occurred_at", "user_id"],
        },
    }
    user = sign_in(tables={"queue": kinds})
    user.app.go_offline()
    early = user.app.queue_add({"kind": "visit", "payload": {"name": "x"}})["id"]
    ids = [add(user.app) for _ in range(5)]
    user.app.go_online()
    user.app.settle()
    # Then the others go at once, and it waits
    assert stored(directory, user.person) == sorted(ids)
    assert item_of(user.app, early)["state"] == "waiting"
    directory.control.clear_requests()
    for _ in range(40):
        user.phone.pass_time(30)
        user.app.settle()
    # at a growing distance
    assert 3 <= directory.control.count("/rest/v1/visits_of_next_year", "POST") <= 20
    assert user.app.queue_list()["counts"]["parked"] == 0


def test_a_summary_that_fails_does_not_hold_uploads_up(
    sign_in: MakeUser, directory: DirectoryFixtures
) -> None:
    user = sign_in()
    body = {"code": "PGRST202", "message": "Could not find the function"}
    directory.control.respond("/rest/v1/rpc/activity_summary", 404, body=body, times=-1)
    ids: list[str] = []
    for _ in range(5):
        ids += [add(user.app) for _ in range(10)]
        user.app.settle()
    assert stored(directory, user.person) == sorted(ids)


@BOTH
def test_QUE_5_a_token_that_is_refused_however_new_it_is(
    sign_in: MakeUser, directory: DirectoryFixtures, upload: str
) -> None:
    # Given a data service that accepts no token at all
    user = user_of(sign_in, upload)
    user.app.go_offline()
    ids = [add(user.app) for _ in range(3)]
    body = {"code": "PGRST301", "message": "No suitable key"}
    fault = directory.control.respond("/rest/v1/", 401, body=body, times=-1)
    before = directory.refreshes()
    user.app.go_online()
    for _ in range(20):
        user.app.settle()
        user.phone.pass_time(30)
    # Then there is no storm of refreshes, no item is charged, and nobody is signed out
    assert directory.refreshes() - before <= 20
    assert {item["attempts"] for item in user.app.queue_list()["items"]} == {0}
    assert user.app.screen["screen"] == "home"
    directory.control.clear_faults(fault)
    drain(user.app)
    assert_all_sent(user, directory, ids)


@BOTH
@pytest.mark.parametrize("form", ["retry_after_s", "retry_after_date_s"])
def test_QUE_7_retry_after_is_kept_over_a_restart(
    sign_in: MakeUser, directory: DirectoryFixtures, upload: str, form: str
) -> None:
    # Given a server that asks for ten minutes of patience
    user = user_of(sign_in, upload)
    user.app.go_offline()
    ids = [add(user.app) for _ in range(3)]
    asked: Any = {form: 600}
    directory.control.respond(UPLOADS[upload], 429, method="POST", **asked)
    user.app.go_online()
    user.app.settle()
    # When the app is started again
    app = user.restart()
    app.settle()
    user.phone.pass_time(590)
    app.settle()
    assert directory.control.count(UPLOADS[upload], "POST") == 1
    # Then it comes back within five minutes of that, woken by `wake_in_ms`
    assert 0 < (app.poll()["wake_in_ms"] or 0) <= 312_000
    drain(app)
    assert_all_sent(user, directory, ids)


def test_QUE_7_full_jitter_and_no_request_while_offline(
    sign_in: MakeUser, directory: DirectoryFixtures
) -> None:
    # Given a server that is away for long
    user = sign_in()
    app = user.app
    add(app)
    directory.control.respond("/rest/v1/", 503, times=-1)
    app.settle()
    pauses: list[int] = []
    for _ in range(14):
        until = app.sync_status()["not_before_ms"]
        assert until is not None
        pauses.append(until - user.phone.now_ms)
        # When nothing asks, nothing is sent before the pause is over
        directory.control.clear_requests()
        user.phone.pass_time((pauses[-1] - 1) / 1000)
        app.settle()
        assert directory.control.count("/rest/v1/") == 0
        user.phone.pass_time(0.001)
        app.settle()
        assert directory.control.count("/rest/v1/") >= 1
    # Then the pauses are 2 s to 5 min, spread over a growing step
    assert all(2000 <= pause <= 300_000 for pause in pauses)
    assert all(pause <= 2000 * 2 ** (n + 1) for n, pause in enumerate(pauses))
    assert max(pauses) > 30_000
    assert len(set(pauses)) > 10
    # and offline nothing is sent at all
    app.go_offline()
    directory.control.clear_faults()
    user.phone.network.forget()
    user.phone.pass_time(3600)
    app.settle()
    assert user.phone.network.sent == []


@BOTH
def test_QUE_6_stored_before_the_membership_ended_is_held_and_never_parked(
    sign_in: MakeUser, directory: DirectoryFixtures, upload: str
) -> None:
    # Given a batch that was stored, whose answer was lost, and whose membership ended meanwhile
    user = user_of(sign_in, upload)
    app = user.app
    app.go_offline()
    ids = [add(app) for _ in range(4)]
    directory.control.drop_after(UPLOADS[upload], method="POST")
    app.go_online()
    app.settle()
    assert stored(directory, user.person) == sorted(ids)
    directory.control.set_membership(user.person.id, user.org.id, status="ended")
    # When it is sent again
    for _ in range(6):
        user.phone.pass_time(60)
        app.settle()
    # Then it is held with the reason, not parked, and not taken as stored
    assert app.queue_list()["counts"] == {**EMPTY, "waiting": 4}
    assert {code_of(app, item) for item in ids} == {"waiting_organisation"}
    # and goes when the membership returns, which `wake_in_ms` alone finds out
    directory.control.set_membership(user.person.id, user.org.id, status="active")
    drain(app)
    assert_all_sent(user, directory, ids)


def test_QUE_6_a_membership_that_ends_twice_parks_nothing(
    sign_in: MakeUser, directory: DirectoryFixtures
) -> None:
    user = sign_in()
    app = user.app
    directory.control.set_membership(user.person.id, user.org.id, status="ended")
    item = add(app)
    app.settle()
    assert code_of(app, item) == "waiting_organisation"
    # Restored, and ended again between the guard's answer and the upload
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
def test_a_policy_that_denies_one_item_parks_it_alone(
    sign_in: MakeUser, directory: DirectoryFixtures, upload: str
) -> None:
    # Given a policy of the organisation's own about one item, while the membership is fine
    directory.control.sql(
        "create policy no_secrets on activities as restrictive for insert to authenticated"
        " with check (note is distinct from 'secret')"
    )
    try:
        user = user_of(sign_in, upload)
        app = user.app
        app.go_offline()
        ids = new_ids(20)
        for number, item in enumerate(ids):
            add(app, item, note="secret" if number == 7 else "open")
        directory.control.clear_requests()
        app.go_online()
        done = drain(app)
        # Then it alone is parked, after the guard has said that the membership is fine
        assert (done["sent"], done["parked"]) == (19, 1)
        assert stored(directory, user.person) == sorted(set(ids) - {ids[7]})
        assert item_of(app, ids[7])["reason"]["sqlstate"] == "42501"
        sent = directory.control.count(UPLOADS[upload], "POST")
        assert sent - 1 <= (2 * 5 + 2 if upload == "table" else 1)
    finally:
        directory.control.sql("drop policy no_secrets on activities")


@BOTH
def test_QUE_10_a_taken_id_among_good_ones(
    sign_in: MakeUser, directory: DirectoryFixtures, upload: str
) -> None:
    # Given an id that another tenant has already
    other = sign_in()
    taken = add(other.app)
    drain(other.app)
    user = user_of(sign_in, upload)
    app = user.app
    app.go_offline()
    ids = [add(app) for _ in range(5)]
    add(app, taken)
    app.go_online()
    done = drain(app)
    # Then it is parked as a conflict, and the others are stored
    assert (done["sent"], done["parked"]) == (5, 1)
    assert code_of(app, taken) == "conflict"
    assert stored(directory, user.person) == sorted(ids)
    assert stored(directory, other.person) == [taken]


def test_logout_while_a_batch_is_unconfirmed_asks_with_nobody_elses_token(
    sign_in: MakeUser, directory: DirectoryFixtures
) -> None:
    # Given a batch whose answer names no row, so that the ids would be read back
    user = sign_in()
    app = user.app
    app.go_offline()
    ids = [add(app) for _ in range(3)]
    directory.control.truncate_rows("/rest/v1/activities", keep=0, method="POST")
    app.go_online()
    pending: list[HttpRequest] = []
    while not pending:
        pending = [r for r in app.poll()["requests"] if r["purpose"] == "upload"]
    # When the user logs out before the answer comes, and another signs in
    assert app.session_logout()["unsent"] == 3
    answer = user.phone.network(pending[0])
    app.complete({"id": pending[0]["id"], **answer})
    other = directory.person(directory.organisation())
    app.sign_in(other)
    user.phone.network.forget()
    for _ in range(3):
        user.phone.pass_time(100)
        app.settle()
    # Then nothing of the first user's is asked for or sent
    assert "upload" not in user.phone.network.purposes()
    app.session_logout()
    # and the owner's sign-in confirms it
    app.sign_in(user.person)
    drain(app)
    assert stored(directory, user.person) == sorted(ids)
    assert app.queue_list()["counts"] == EMPTY
    assert app.of_type("item_parked") == []


def test_logout_while_ids_are_read_back_leaves_nothing_in_flight(
    sign_in: MakeUser, directory: DirectoryFixtures
) -> None:
    user = sign_in()
    app = user.app
    app.go_offline()
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


@BOTH
def test_an_edit_after_an_attempt_is_never_lost(
    sign_in: MakeUser, directory: DirectoryFixtures, upload: str
) -> None:
    # Given an item that was stored without our knowing, and is then edited
    user = user_of(sign_in, upload)
    app = user.app
    item = add(app, minutes=30)
    directory.control.drop_after(UPLOADS[upload], method="POST")
    app.settle()
    assert app.queue_edit({"id": item, "payload": {"type": "visit", "minutes": 45}})
    # When it is sent
    done = drain(app)
    # Then the user learns that the server has something, and both bodies are still there
    assert (done["sent"], done["parked"]) == (0, 1)
    assert code_of(app, item) == "unknown_outcome"
    assert item_of(app, item)["payload"]["minutes"] == 45
    # while one that was not stored goes with its new body, as if nothing had happened
    other = add(app, minutes=30)
    directory.control.drop_before(UPLOADS[upload], method="POST")
    app.settle()
    app.queue_edit({"id": other, "payload": {"type": "visit", "minutes": 46}})
    drain(app)
    rows = {str(row["id"]): row["minutes"] for row in directory.activities(user.person)}
    assert rows == {item: 30, other: 46}


def test_a_bad_item_stays_parked_over_restarts_and_is_sent_when_the_server_changes_its_mind(
    sign_in: MakeUser, directory: DirectoryFixtures
) -> None:
    user = sign_in()
    item = add(user.app, minutes=BAD_MINUTES)
    drain(user.app)
    app = user.restart()
    app.settle()
    assert item_of(app, item)["state"] == "parked"
    assert app.queue_retry()["retried"] == 1
    assert item_of(app, item)["state"] == "pending"
    app.settle()
    assert item_of(app, item)["state"] == "parked"
    assert app.queue_retry({"id": item})["retried"] == 1
