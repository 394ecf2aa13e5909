"""Corrections of what is already sent, on PostgreSQL with its policies (COR-1 to COR-12)."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from typing import Any

import pytest

from support.corrections import (
    KIND,
    edit,
    lose_change,
    row,
    set_elsewhere,
    shown,
    tables,
    user_with_change_ids,
)
from support.directory_fixtures import DirectoryFixtures, Person
from support.errors import error_of
from support.held import answer, taken
from support.own_rows import COLUMNS, pull
from support.phone import App
from support.queue import (
    BAD_MINUTES,
    EMPTY,
    add,
    ask_until_believed,
    code_of,
    item_of,
    new_ids,
)
from support.users import MakePhone, MakeUser, SignedIn, signed_in

#: The path of a table's rows.
ROWS = "/rest/v1/activities"


#: An item that can follow another one.
NEXT: dict[str, Any] = {"kind": "activity", "payload": {"type": "visit", "minutes": 5}}
#: How changes are sent: one request for each, or a function that takes many.
WAYS: dict[str, dict[str, Any]] = {"request": {}, "function": {"function": "change_activities"}}


@pytest.fixture(params=WAYS)
def user(request: pytest.FixtureRequest, sign_in: MakeUser) -> SignedIn:
    """A user whose stored activities are kept."""
    return sign_in(tables=tables(change=WAYS[request.param]))


def rows(directory: DirectoryFixtures, person: Person) -> list[dict[str, Any]]:
    """The user's activities on the server."""
    return directory.activities(person)


def sent(user: SignedIn, minutes: int = 30, **more: Any) -> str:  # noqa: ANN401
    """Register an activity that is stored; returns its id."""
    item = add(user.app, minutes=minutes, **more)
    user.app.settle()
    assert user.app.queue_get({"id": item})["state"] == "stored"
    return item


def correct(app: App, item: str, operation: str) -> None:
    """Change the item's minutes to 90, or take it back."""
    if operation == "change":
        edit(app, item, minutes=90)
    else:
        app.queue_cancel({"id": item})


def is_change(request: Any) -> bool:  # noqa: ANN401
    """Whether a request changes stored rows."""
    return request["method"] in ("PATCH", "DELETE") or "rpc/change_activities" in request["url"]


def is_question(request: Any) -> bool:  # noqa: ANN401
    """Whether a request asks which items, or rows of them, the server has."""
    return request["purpose"] == "upload" and request["method"] == "GET"


def changes(user: SignedIn) -> list[Any]:
    """The requests that change stored rows."""
    return [one for one in user.phone.network.sent if is_change(one)]


def inserts(user: SignedIn) -> list[Any]:
    """The requests that insert rows."""
    return [
        one for one in user.phone.network.sent if one["method"] == "POST" and ROWS in one["url"]
    ]


def test_COR_1_an_edit_while_the_item_waits_is_one_insert(
    user: SignedIn, directory: DirectoryFixtures
) -> None:
    app = user.app
    app.go_offline()
    item = add(app, minutes=30)
    assert edit(app, item, type="visit", minutes=90)["state"] == "pending"
    app.reconnect()
    assert row(directory, item)["minutes"] == 90
    assert (len(inserts(user)), changes(user)) == (1, [])


@pytest.mark.parametrize("outcome", ["stored", "lost", "refused", "bad"])
def test_COR_2_an_edit_in_flight_is_what_the_server_ends_with(
    user: SignedIn, directory: DirectoryFixtures, outcome: str
) -> None:
    app = user.app
    item = add(app, minutes=BAD_MINUTES if outcome == "bad" else 30, note="first")
    request = taken(user, "upload")
    assert edit(app, item, minutes=90, note=None)["state"] == "sending"
    assert item_of(app, item)["payload"]["minutes"] == 90
    if outcome == "refused":
        app.complete({"id": request["id"], "error": "refused"})
    elif outcome == "lost":
        user.phone.network(request)
        app.complete({"id": request["id"], "error": "timeout"})
    else:
        answer(app, request)
    app.settle()
    app.wait(600)
    found = row(directory, item)
    assert (found["minutes"], found["note"]) == (90, None)
    assert app.queue_get({"id": item})["state"] == "stored"
    assert not app.of_type("item_parked")


@pytest.mark.parametrize("outcome", ["stored", "lost", "refused", "bad"])
def test_COR_2_an_item_that_is_taken_back_in_flight_is_gone(
    user: SignedIn, directory: DirectoryFixtures, outcome: str
) -> None:
    app = user.app
    item = add(app, minutes=BAD_MINUTES if outcome == "bad" else 30)
    request = taken(user, "upload")
    assert app.queue_cancel({"id": item})["state"] == "sending"
    if outcome == "refused":
        app.complete({"id": request["id"], "error": "refused"})
    elif outcome == "lost":
        user.phone.network(request)
        app.complete({"id": request["id"], "error": "timeout"})
    else:
        answer(app, request)
    app.settle()
    ask_until_believed(app)
    assert all(one["deleted_at"] for one in rows(directory, user.person))
    assert app.queue_list()["counts"] == EMPTY
    assert not app.of_type("item_parked")


def test_COR_3_a_change_has_the_changed_columns_under_the_values_that_were_seen(
    user: SignedIn, directory: DirectoryFixtures
) -> None:
    app = user.app
    item = sent(user, note="a walk")
    before = row(directory, item)
    assert edit(app, item, type="visit", minutes=90)["state"] == "pending"
    shown = item_of(app, item)
    assert (shown["operation"], shown["payload"]) == ("change", {"minutes": 90})
    app.settle()
    [change] = changes(user)
    if change["method"] == "PATCH":
        assert change["body"] == '{"minutes":90}'
        assert "updated_at=eq.2" in change["url"]
        assert "%2B00%3A00" in change["url"]
    else:
        [one] = json.loads(change["body"])["items"]
        assert (one["operation"], one["columns"]) == ("change", {"minutes": 90})
    after = row(directory, item)
    assert (after["minutes"], after["note"]) == (90, "a walk")
    assert after["updated_at"] > before["updated_at"]
    assert app.queue_get({"id": item})["state"] == "stored"
    # The same values again are no change
    assert edit(app, item, minutes=90)["state"] == "stored"
    # and columns that the kind does not list are refused.
    assert error_of(app.queue_edit, {"id": item, "payload": {"hours": 1}}).field == "/payload/hours"


def test_COR_4_an_edit_offline_arrives_once_after_a_restart(
    user: SignedIn, directory: DirectoryFixtures
) -> None:
    item = sent(user)
    user.app.go_offline()
    edit(user.app, item, minutes=90)
    app = user.restart(online=False)
    app.touch()
    assert item_of(app, item)["payload"] == {"minutes": 90}
    app.reconnect()
    assert row(directory, item)["minutes"] == 90
    assert len(changes(user)) == 1


@pytest.mark.parametrize("arrives", [True, False])
@pytest.mark.parametrize("flying", [True, False])
@pytest.mark.parametrize("way", WAYS)
def test_COR_5_a_change_that_the_server_may_have_is_taken_back_there(
    sign_in: MakeUser, directory: DirectoryFixtures, way: str, flying: bool, arrives: bool
) -> None:
    """Also where the kind's rows cannot be deleted: the cancel is of the change."""
    kind = {"queue": {"activity": {**KIND, "own": {}, "change": WAYS[way]}}}
    user = sign_in(tables=kind)
    app, item = user.app, sent(user, minutes=31)
    edit(app, item, minutes=32)
    request = taken(user, "upload")
    if arrives:
        assert user.phone.network(request)["status"] == 200
        assert row(directory, item)["minutes"] == 32
    if not flying:
        app.complete({"id": request["id"], "error": "timeout"})
    assert app.queue_cancel({"id": item})["state"] is not None
    assert shown(app, item)["payload"]["minutes"] == 31
    if flying:
        app.complete({"id": request["id"], "error": "timeout"})
    app.wait(600)
    assert app.queue_list()["counts"] == EMPTY
    assert row(directory, item)["minutes"] == 31
    assert shown(app, item)["payload"]["minutes"] == 31


def test_COR_5_a_change_whose_answer_is_lost_is_recognised(
    user: SignedIn, directory: DirectoryFixtures
) -> None:
    app = user.app
    item = sent(user)
    edit(app, item, minutes=90, occurred_at="2026-03-01T10:00:00+01:00", note="  Kaffe ")
    lose_change(user)
    stamp = row(directory, item)["updated_at"]
    app.wait(600)
    assert app.queue_get({"id": item})["state"] == "stored"
    assert row(directory, item)["updated_at"] == stamp
    assert not app.of_type("item_parked")


@pytest.mark.parametrize("choice", ["overwrite", "cancel"])
def test_COR_6_two_devices_change_the_same_column(
    user: SignedIn, directory: DirectoryFixtures, choice: str
) -> None:
    app = user.app
    item = sent(user)
    set_elsewhere(directory, item, minutes=60)
    edit(app, item, minutes=90)
    app.settle()
    assert code_of(app, item) == "changed_elsewhere"
    shown = item_of(app, item)
    assert (shown["state"], shown["field"]) == ("parked", "minutes")
    assert shown["conflict"] == {
        "columns": [{"name": "minutes", "base": 30, "theirs": 60, "mine": 90}]
    }
    assert row(directory, item)["minutes"] == 60
    if choice == "overwrite":
        app.queue_retry({"id": item, "overwrite": True})
        app.settle()
        assert row(directory, item)["minutes"] == 90
    else:
        assert app.queue_cancel({"id": item})["state"] == "stored"
        app.settle()
        assert row(directory, item)["minutes"] == 60
    assert app.queue_get({"id": item})["state"] == "stored"


def test_COR_6_an_overwrite_stands_only_on_what_its_user_saw(
    user: SignedIn, directory: DirectoryFixtures
) -> None:
    app = user.app
    item = sent(user)
    set_elsewhere(directory, item, minutes=60)
    edit(app, item, minutes=90)
    app.settle()
    set_elsewhere(directory, item, minutes=61)
    app.queue_retry({"id": item, "overwrite": True})
    app.settle()
    [column] = item_of(app, item)["conflict"]["columns"]
    assert (column["base"], column["theirs"]) == (60, 61)
    other = sent(user)
    edit(app, other, minutes=12)
    error = error_of(app.queue_retry, {"id": other, "overwrite": True})
    assert (error.code, error.field) == ("request.invalid_value", "/overwrite")


def test_COR_7_two_devices_change_different_columns(
    user: SignedIn, directory: DirectoryFixtures
) -> None:
    app = user.app
    item = sent(user)
    set_elsewhere(directory, item, note="theirs")
    edit(app, item, minutes=90)
    app.settle()
    found = row(directory, item)
    assert (found["minutes"], found["note"]) == (90, "theirs")
    assert not app.of_type("item_parked")


def test_COR_7_what_a_pull_has_shown_is_no_conflict(
    user: SignedIn, directory: DirectoryFixtures
) -> None:
    app = user.app
    item = sent(user, note="first")
    edit(app, item, minutes=90)
    user.phone.network.instead.append(
        lambda request: {"error": "timeout"} if request["purpose"] == "upload" else None
    )
    app.settle()
    set_elsewhere(directory, item, note="theirs")
    app.sync()
    [listed] = app.item_list({"kind": "activity"})["items"]
    assert (listed["payload"]["note"], listed["payload"]["minutes"]) == ("theirs", 90)
    edit(app, item, note="mine, having seen theirs")
    user.phone.network.instead.clear()
    app.wait(600)
    found = row(directory, item)
    assert (found["note"], found["minutes"]) == ("mine, having seen theirs", 90)
    assert not app.of_type("item_parked")


def test_COR_8_a_row_that_was_deleted_elsewhere_is_told(
    user: SignedIn, directory: DirectoryFixtures
) -> None:
    app = user.app
    soft, hard = sent(user), sent(user)
    directory.control.sql("update activities set deleted_at = now() where id = %s", soft)
    directory.control.sql("delete from activities where id = %s", hard)
    for item in (soft, hard):
        edit(app, item, minutes=90)
    app.settle()
    assert code_of(app, soft) == "deleted_elsewhere"
    # A row that is not shown is believed to be gone after some minutes
    ask_until_believed(app)
    assert [code_of(app, item) for item in (soft, hard)] == ["deleted_elsewhere"] * 2
    # Until its user drops the change, the list has it; then neither change nor row
    assert {shown(app, item)["state"] for item in (soft, hard)} == {"parked"}
    for item in (soft, hard):
        app.queue_cancel({"id": item})
    assert app.item_list({"kind": "activity"})["items"] == []


def test_COR_8_a_deletion_of_an_item_in_doubt_asks_for_what_others_have_changed(
    user: SignedIn, directory: DirectoryFixtures
) -> None:
    # Given an item that was sent with two notes, and nothing tells which of them is stored
    app = user.app
    item = add(app, minutes=30, note="first")
    request = taken(user, "upload")
    user.phone.network(request)
    app.complete({"id": request["id"], "error": "timeout"})
    edit(app, item, type="visit", minutes=30, note="second")
    user.phone.pass_time(600)
    app.complete({"id": taken(user, "upload")["id"], "error": "timeout"})
    # When its user takes it back, and another device has set a third one
    set_elsewhere(directory, item, note="theirs")
    app.queue_cancel({"id": item})
    for _ in range(3):
        app.wait(600)
    # Then that one is not deleted unseen
    assert code_of(app, item) == "changed_elsewhere"
    assert item_of(app, item)["conflict"]["columns"][0]["theirs"] == "theirs"
    assert row(directory, item)["deleted_at"] is None


@pytest.mark.parametrize("way", ["deleted_at", "row"])
def test_COR_8_deletions_are_done_asked_or_done_already(
    sign_in: MakeUser, directory: DirectoryFixtures, way: str
) -> None:
    user = sign_in(tables=tables(delete=way))
    if way == "row":
        directory.control.sql("grant delete on activities to authenticated")
        directory.control.sql(
            'create policy "delete own" on activities for delete to authenticated '
            "using (user_id = auth.uid())"
        )
    try:
        app = user.app
        plain, changed, gone = sent(user), sent(user), sent(user)
        set_elsewhere(directory, changed, minutes=61)
        directory.control.sql("delete from activities where id = %s", gone)
        for item in (plain, changed, gone):
            assert app.queue_cancel({"id": item})["state"] == "pending"
            assert item_of(app, item)["operation"] == "delete"
        app.settle()
        ask_until_believed(app)
        left = [str(one["id"]) for one in rows(directory, user.person) if not one["deleted_at"]]
        assert left == [changed]
        assert code_of(app, changed) == "changed_elsewhere"
        assert app.queue_get({"id": plain})["state"] == "cancelled"
        # A row that is not shown may be hidden
        assert app.queue_get({"id": gone})["state"] == "unknown_outcome"
        # Nothing can follow a row that its user has taken back
        assert (
            error_of(app.queue_add, {**NEXT, "depends_on": [plain]}).code
            == "queue.unknown_dependency"
        )
        app.queue_retry({"id": changed, "overwrite": True})
        app.settle()
        left = [str(one["id"]) for one in rows(directory, user.person) if not one["deleted_at"]]
        assert left == []
    finally:
        if way == "row":
            directory.control.sql('drop policy "delete own" on activities')
            directory.control.sql("revoke delete on activities from authenticated")


def test_a_deletion_of_a_row_that_others_refer_to_is_parked_and_delays_no_other(
    sign_in: MakeUser, directory: DirectoryFixtures
) -> None:
    user = sign_in(tables=tables(delete="row"))
    app, sql = user.app, directory.control.sql
    sql("grant delete on activities to authenticated")
    sql(
        'create policy "delete own" on activities for delete to authenticated '
        "using (user_id = auth.uid())"
    )
    sql("create table expenses (activity_id uuid references activities (id))")
    try:
        # Given two stored items, of which one has an expense
        items = [sent(user), sent(user)]
        sql("insert into expenses values (%s)", items[0])
        # When their user takes both back
        for item in items:
            app.queue_cancel({"id": item})
        app.settle()
        # Then the one is deleted, and the other needs its user
        assert [str(one["id"]) for one in rows(directory, user.person)] == items[:1]
        assert code_of(app, items[0]) == "server_rule"
        # When the expense is gone
        sql("delete from expenses")
        app.queue_retry({"id": items[0]})
        app.settle()
        assert rows(directory, user.person) == []
    finally:
        sql("drop table expenses")
        sql('drop policy "delete own" on activities')
        sql("revoke delete on activities from authenticated")


def test_COR_8_a_row_that_is_hidden_for_a_moment_is_deleted_all_the_same(
    user: SignedIn, directory: DirectoryFixtures
) -> None:
    app = user.app
    item = sent(user)
    app.queue_cancel({"id": item})
    # When no policy shows the row for a moment, as when one is dropped and made again
    shown = "user_id = auth.uid() and org_id = any (array(select private.active_organizations()))"
    policy = 'alter policy "read own activities" on activities using ({})'
    directory.control.sql(policy.format("false"))
    try:
        app.settle()
        app.wait(10)
        assert row(directory, item)["deleted_at"] is None
    finally:
        directory.control.sql(policy.format(shown))
    app.wait(1000)
    assert row(directory, item)["deleted_at"] is not None
    assert app.queue_get({"id": item})["state"] == "cancelled"


def test_COR_8_a_deletion_of_a_row_that_was_hidden_for_long_is_not_told_as_done(
    user: SignedIn, directory: DirectoryFixtures
) -> None:
    app = user.app
    item = sent(user)
    app.queue_cancel({"id": item})
    # When a policy hides the row, longer than the library asks for it
    with_rows = f'alter policy "read own activities" on activities using ({OWNED})'
    directory.control.sql('alter policy "read own activities" on activities using (false)')
    try:
        ask_until_believed(app)
    finally:
        directory.control.sql(with_rows)
    # Then nobody says that it is deleted
    assert app.queue_list()["counts"] == EMPTY
    assert app.queue_get({"id": item})["state"] == "unknown_outcome"
    assert row(directory, item)["deleted_at"] is None
    # When all rows are read, it is listed again, and can be deleted
    app.wait(86_400)
    app.sync()
    assert shown(app, item)["state"] == "stored"
    app.queue_cancel({"id": item})
    app.settle()
    assert row(directory, item)["deleted_at"] is not None
    assert app.queue_get({"id": item})["state"] == "cancelled"


def test_COR_8_absence_without_a_membership_is_no_deletion(
    user: SignedIn, directory: DirectoryFixtures
) -> None:
    app = user.app
    item = sent(user)
    app.go_offline()
    edit(app, item, minutes=90)
    directory.control.set_membership(user.person.id, user.org.id, status="ended")
    app.reconnect()
    app.wait(60)
    assert not app.of_type("item_parked")
    directory.control.set_membership(user.person.id, user.org.id, status="active")
    app.wait(1000)
    if app.screen["screen"] != "home":
        app.org_select({"org_id": user.org.id})
        app.settle()
    app.wait(1000)
    assert row(directory, item)["minutes"] == 90


def test_many_changes_by_a_function_are_one_request(
    sign_in: MakeUser, directory: DirectoryFixtures
) -> None:
    user = sign_in(tables=tables(change=WAYS["function"]))
    app = user.app
    items = [sent(user) for _ in range(12)]
    app.go_offline()
    for item in items[:8]:
        edit(app, item, minutes=90)
    for item in items[8:10]:
        app.queue_cancel({"id": item})
    edit(app, items[10], minutes=BAD_MINUTES)
    edit(app, items[11], minutes=91)
    set_elsewhere(directory, items[11], minutes=92)
    app.reconnect()
    assert {row(directory, item)["minutes"] for item in items[:8]} == {90}
    assert all(row(directory, item)["deleted_at"] for item in items[8:10])
    assert code_of(app, items[11]) == "changed_elsewhere"
    assert code_of(app, items[10]) == "server_rule"
    assert len(changes(user)) == 1


@pytest.mark.parametrize("operation", ["change", "delete"])
def test_COR_8_a_confirmation_before_the_absence_proves_nothing(
    user: SignedIn, directory: DirectoryFixtures, operation: str
) -> None:
    # Given a correction that has failed alone, while others got through, and a confirmed membership
    app = user.app
    item = sent(user)
    fails: list[Any] = [lambda request: {"error": "timeout"} if is_change(request) else None]
    user.phone.network.instead = fails
    correct(app, item, operation)
    for minutes in range(6):
        add(app, minutes=minutes + 1)
        app.wait(300)
    fails.clear()
    # When the membership ends, so that the row is not shown, and it is sent again
    directory.control.set_membership(user.person.id, user.org.id, status="ended")
    app.wait(400)
    # Then the row is not taken for a deleted one
    assert not app.of_type("item_parked")
    assert app.queue_get({"id": item})["state"] in ("pending", "waiting")
    # and the correction is made when the user is a member again
    directory.control.set_membership(user.person.id, user.org.id, status="active")
    for _ in range(3):
        app.wait(1000)
        if app.screen["screen"] != "home":
            app.org_select({"org_id": user.org.id})
    app.settle()
    found = row(directory, item)
    assert (found["minutes"], found["deleted_at"] is None) == (
        (90, True) if operation == "change" else (30, False)
    )


@pytest.mark.parametrize("operation", ["change", "delete"])
def test_COR_8_a_list_that_was_asked_for_before_the_absence_proves_nothing(
    user: SignedIn, directory: DirectoryFixtures, operation: str
) -> None:
    # Given a list of memberships that is on its way
    app = user.app
    item = sent(user)
    app.sync_now()
    listed = taken(user, "guard")
    active: Any = {"id": listed["id"], **user.phone.network(listed)}
    # When the membership ends, and a correction finds no row
    directory.control.set_membership(user.person.id, user.org.id, status="ended")
    correct(app, item, operation)
    while app.queue_get({"id": item})["state"] != "waiting":
        for request in app.poll()["requests"]:
            answer(app, request)
    # and that list comes
    app.complete(active)
    app.settle()
    # Then the row is not taken for a deleted one
    assert not app.of_type("item_parked")
    assert app.queue_get({"id": item})["state"] in ("pending", "waiting")


@pytest.mark.parametrize("operation", ["plain", "after an edit", "with another conflict"])
def test_COR_8_a_deletion_sees_what_others_set_in_columns_that_the_item_left_out(
    user: SignedIn, directory: DirectoryFixtures, operation: str
) -> None:
    # Given an item without a note, to which somebody adds one
    app = user.app
    item = sent(user)
    app.go_offline()
    other = {"minutes": 61} if operation == "with another conflict" else {}
    set_elsewhere(directory, item, note="the doctor called", **other)
    if operation == "after an edit":
        edit(app, item, minutes=90)
    # When it is taken back
    app.queue_cancel({"id": item})
    app.reconnect()
    # Then its user sees the note before anything is deleted
    assert code_of(app, item) == "changed_elsewhere"
    conflict = {one["name"]: one["theirs"] for one in item_of(app, item)["conflict"]["columns"]}
    assert conflict == {"note": "the doctor called", **other}
    assert row(directory, item)["deleted_at"] is None


def lose_deletion(user: SignedIn, item: str) -> list[Any]:
    """A deletion is made, and its answer is lost, as every later one; returns what loses them."""
    app = user.app
    app.go_offline()
    app.queue_cancel({"id": item})
    app.go_online()
    lose_change(user)
    lost: list[Any] = [lambda _request: {"error": "timeout"}]
    user.phone.network.instead = lost
    app.settle()
    return lost


def test_COR_8_an_edit_after_a_deletion_whose_answer_is_lost_is_not_lost(
    user: SignedIn, directory: DirectoryFixtures
) -> None:
    # Given a deletion that the server carries out, and answers that are lost
    app = user.app
    item = sent(user)
    lost = lose_deletion(user, item)
    # When the user edits it, and puts the old values back
    edit(app, item, note="y")
    state = edit(app, item, note=None)["state"]
    # Then it stays queued, until it is known that the row is gone
    assert state != "stored"
    lost.clear()
    for _ in range(3):
        app.wait(1000)
    assert row(directory, item)["deleted_at"] is not None
    assert code_of(app, item) == "deleted_elsewhere"


@pytest.mark.parametrize("seen", [None, {"minutes": 30}, {}], ids=["no base", "base", "nothing"])
def test_COR_8_a_cancel_that_is_taken_back_is_not_stored_without_proof(
    user: SignedIn, directory: DirectoryFixtures, seen: dict[str, Any] | None
) -> None:
    # Given a deletion that the server has made, and whose answer is lost
    app = user.app
    item = sent(user)
    lost = lose_deletion(user, item)
    # When the user takes it back, with an edit that changes nothing
    base = {} if seen is None else {"base": shown(app, item)["payload"]}
    payload = {"minutes": 30} if seen is None else seen
    state = app.queue_edit({"id": item, "payload": payload, **base})["state"]
    # Then it waits, and its user learns that the row is gone
    assert state != "stored"
    lost.clear()
    app.wait(600)
    assert row(directory, item)["deleted_at"] is not None
    assert code_of(app, item) == "deleted_elsewhere"


@pytest.mark.parametrize("payload", [{"minutes": 45}, {"type": "call"}], ids=["same", "other"])
def test_COR_8_an_edit_that_was_not_stored_comes_back_with_its_item(
    user: SignedIn, directory: DirectoryFixtures, payload: dict[str, Any]
) -> None:
    # Given an edit whose request does not reach the server, the form that shows it, and a cancel
    app = user.app
    item = sent(user)
    user.phone.network.instead.append(
        lambda request: {"error": "timeout"} if is_change(request) else None
    )
    edit(app, item, minutes=45)
    app.settle()
    form = shown(app, item)["payload"]
    app.go_offline()
    app.queue_cancel({"id": item})
    # When its user saves the form
    assert app.queue_edit({"id": item, "base": form, "payload": payload})["state"] != "stored"
    user.phone.network.instead.clear()
    app.go_online()
    app.wait(600)
    # Then all of it is stored
    stored = row(directory, item)
    assert {name: stored[name] for name in ("type", "minutes")} == {
        "type": "visit",
        "minutes": 45,
        **payload,
    }
    assert stored["deleted_at"] is None


def test_COR_8_a_form_that_changes_nothing_overwrites_nothing_after_a_cancel(
    user: SignedIn, directory: DirectoryFixtures
) -> None:
    # Given a form, what others have set since, and a cancel that is not sent
    app = user.app
    item = sent(user)
    form = shown(app, item)["payload"]
    set_elsewhere(directory, item, type="call")
    pull(user)
    app.go_offline()
    app.queue_cancel({"id": item})
    # When its user saves the form as it was
    app.queue_edit({"id": item, "base": form, "payload": {"type": "visit"}})
    app.reconnect()
    app.wait(600)
    # Then the row is as the others have set it
    stored = row(directory, item)
    assert (stored["type"], stored["deleted_at"]) == ("call", None)
    assert changes(user) == []


def test_COR_8_a_cancel_that_is_taken_back_before_it_is_sent_changes_nothing(
    user: SignedIn, directory: DirectoryFixtures
) -> None:
    app = user.app
    item = sent(user)
    app.go_offline()
    app.queue_cancel({"id": item})
    edit = {"id": item, "payload": {"minutes": 30}, "base": shown(app, item)["payload"]}
    assert app.queue_edit(edit)["state"] == "stored"
    app.reconnect()
    assert row(directory, item)["deleted_at"] is None
    assert changes(user) == []


def test_COR_8_an_edit_after_a_cancel_has_no_column_that_its_user_left_out(
    user: SignedIn, directory: DirectoryFixtures
) -> None:
    # Given an item whose insert is in doubt, an edit of it that is not sent, and a cancel
    app = user.app
    user.phone.network.lose["upload"] = 1
    item = add(app, minutes=30)
    app.settle()
    edit(app, item, minutes=45)
    # also of what reads its row
    user.phone.network.instead.append(
        lambda request: (
            {"error": "offline"}
            if is_change(request)
            or request["purpose"] == "pull"
            or (is_question(request) and "minutes" in request["url"])
            else None
        )
    )
    app.wait(600)
    app.queue_cancel({"id": item})
    # When its user edits another column
    edit(app, item, type="call")
    # Then no other one is changed, and nobody is asked about what others have set there
    assert set(item_of(app, item)["payload"]) <= {"type", "minutes"}
    set_elsewhere(directory, item, note="theirs")
    user.phone.network.instead.clear()
    app.wait(600)
    stored = row(directory, item)
    assert (stored["type"], stored["note"]) == ("call", "theirs")
    assert app.queue_get({"id": item})["state"] == "stored"


def same(app: App, item: str) -> Any:  # noqa: ANN401
    """A request of queue_add with the item as its user's list shows it."""
    return {"kind": "activity", "id": item, "payload": shown(app, item)["payload"]}


def test_a_stored_item_that_is_added_again_stays_as_it_is(
    user: SignedIn, directory: DirectoryFixtures
) -> None:
    # Given a stored item
    app = user.app
    item = sent(user)
    before = len(inserts(user))
    # When it is added again
    app.go_offline()
    again = same(app, item)
    assert app.queue_add(again) == {"id": item, "state": "stored"}
    # Then nothing is queued, and a cancel deletes the row
    assert app.queue_list()["counts"] == EMPTY
    assert shown(app, item)["state"] == "stored"
    app.queue_cancel({"id": item})
    app.reconnect()
    assert row(directory, item)["deleted_at"] is not None
    assert len(inserts(user)) == before


def test_an_item_that_was_corrected_is_not_added_again(
    user: SignedIn, directory: DirectoryFixtures
) -> None:
    app = user.app
    item = sent(user)
    again = same(app, item)
    edit(app, item, minutes=90)
    app.settle()
    assert error_of(app.queue_add, again).code == "queue.id_taken"
    assert app.queue_list()["counts"] == EMPTY
    assert row(directory, item)["minutes"] == 90


def test_an_item_is_compared_by_all_its_columns_before_it_counts_as_added_again(
    sign_in: MakeUser,
) -> None:
    # Given a kind whose list keeps one column
    user = sign_in(tables=tables(own={"columns": ["type"]}, change={"columns": ["type"]}))
    item = sent(user)
    # When other content is added under the id of a stored item
    add(user.app, item, minutes=60)
    user.app.settle()
    # Then its user learns that it is not stored
    assert code_of(user.app, item) == "conflict"


def test_a_cache_that_cannot_be_read_refuses_no_item(user: SignedIn) -> None:
    app = user.app
    item = sent(user)
    again = same(app, item)
    user.phone.close()
    cache = user.phone.folder / "cache.db"
    cache.unlink()
    cache.mkdir()
    app = user.restart(online=False)
    assert app.queue_add(again)["state"] == "pending"


def test_an_item_of_a_kind_that_deletes_nothing_is_taken_back_at_once_when_it_was_added_again(
    sign_in: MakeUser,
) -> None:
    user = sign_in(tables={"queue": {"activity": KIND}})
    item = sent(user)
    user.app.go_offline()
    add(user.app, item, minutes=30)
    user.app.queue_cancel({"id": item})
    assert user.app.queue_list()["counts"] == EMPTY


def test_a_stored_item_that_no_list_shows_is_taken_back_after_it_was_added_again(
    user: SignedIn, directory: DirectoryFixtures
) -> None:
    # Given a stored item, and a user who has signed in anew, whose list is not read yet
    app = user.app
    item = sent(user)
    again = same(app, item)
    app.session_logout()
    user.phone.network.instead.append(
        lambda request: {"error": "timeout"} if request["purpose"] == "pull" else None
    )
    user.start_as(user.person)
    app.go_offline()
    # When it is added again, and taken back
    assert app.queue_add(again)["state"] == "pending"
    app.queue_cancel({"id": item})
    app.reconnect()
    app.wait(600)
    # Then its row is deleted
    assert row(directory, item)["deleted_at"] is not None


def test_what_a_pull_has_shown_is_not_hidden_by_a_late_proof(
    user: SignedIn, directory: DirectoryFixtures
) -> None:
    # Given an item whose answer is lost; others change its row, and a pull shows that
    app = user.app
    item = add(app, minutes=54)
    request = taken(user, "upload")
    user.phone.network(request)
    app.complete({"id": request["id"], "error": "timeout"})
    uploads: list[Any] = [
        lambda request: {"error": "timeout"} if request["purpose"] == "upload" else None
    ]
    user.phone.network.instead = uploads
    set_elsewhere(directory, item, minutes=6)
    app.sync()
    # When it is proved that it is stored
    uploads.clear()
    app.wait(600)
    # Then the list shows what the server has
    assert app.queue_get({"id": item})["state"] == "stored"
    assert shown(app, item)["payload"]["minutes"] == 6


def test_a_pull_of_a_replica_brings_no_older_value_back(
    user: SignedIn, directory: DirectoryFixtures
) -> None:
    # Given a row, and what a replica has of it
    app = user.app
    item = sent(user)
    old: list[str] = []
    pages = iter(old)

    def replica(request: Any, answer: Any) -> Any:  # noqa: ANN401
        if request["purpose"] != "pull" or f"{ROWS}?" not in request["url"]:
            return answer
        if lags:
            return {**answer, "body": next(pages, "[]")}
        old.append(answer["body"])
        return answer

    user.phone.network.alter.append(replica)
    lags = False
    app.sync()
    assert any(item in page for page in old)
    # When a change is proved, and pulls still bring what the replica has
    lags = True
    edit(app, item, minutes=90)
    app.settle()
    app.sync()
    assert next(pages, None) is None
    # Then the list shows what was proved
    assert shown(app, item)["payload"]["minutes"] == 90
    # and later what the server has
    user.phone.network.alter.clear()
    set_elsewhere(directory, item, minutes=91)
    user.phone.pass_time(86_400)
    app.sync()
    assert shown(app, item)["payload"]["minutes"] == 91


@pytest.fixture
def deletable(directory: DirectoryFixtures) -> Iterator[None]:
    """Users may delete rows of their own."""
    directory.control.sql("grant delete on activities to authenticated")
    directory.control.sql(
        'create policy "delete own" on activities for delete to authenticated '
        "using (user_id = auth.uid())"
    )
    yield
    directory.control.sql('drop policy "delete own" on activities')
    directory.control.sql("revoke delete on activities from authenticated")


@pytest.mark.parametrize("way", ["deleted_at", "row"])
@pytest.mark.parametrize("told", ["by an answer", "by a pull"])
@pytest.mark.usefixtures("deletable")
def test_a_pull_of_a_replica_brings_no_deleted_row_back(
    sign_in: MakeUser, directory: DirectoryFixtures, told: str, way: str
) -> None:
    # Given a row, and what a replica has of it
    user = sign_in(tables=tables(delete=way))
    app = user.app
    item = sent(user)
    old: list[str] = []

    def replica(request: Any, answer: Any) -> Any:  # noqa: ANN401
        is_read = request["purpose"] == "pull" and f"{ROWS}?select=id,updated_at," in request["url"]
        if not is_read:
            return answer
        if lags:
            return {**answer, "body": pages.pop(0) if pages else "[]"}
        old.append(answer["body"])
        return answer

    user.phone.network.alter.append(replica)
    lags = False
    app.sync()
    pages = [page for page in old if item in page]
    assert pages
    # When it is deleted, and pulls still bring what the replica has
    if told == "by an answer":
        app.queue_cancel({"id": item})
    elif way == "deleted_at":
        set_elsewhere(directory, item, deleted_at="2026-01-01")
    else:
        pytest.skip("a pull shows no row that is deleted")
    app.settle()
    app.sync()
    assert app.item_list({"kind": "activity"})["items"] == []
    lags = True
    app.sync()
    assert pages == []
    # Then the list does not have it again, before and after a reconcile
    assert app.item_list({"kind": "activity"})["items"] == []
    user.phone.pass_time(86_400)
    app.sync()
    assert app.item_list({"kind": "activity"})["items"] == []


@pytest.mark.parametrize("restored", [True, False])
def test_a_row_that_is_there_after_all_is_listed_after_the_reconcile(
    user: SignedIn, directory: DirectoryFixtures, restored: bool
) -> None:
    # Given a row that its user has taken back
    app = user.app
    item = sent(user)
    app.sync()
    if restored:
        app.queue_cancel({"id": item})
        app.settle()
        set_elsewhere(directory, item, deleted_at=None)
    else:
        # and of which only the answer says that it is deleted
        version = row(directory, item)["updated_at"]
        deleted = json.dumps([{"id": item, "updated_at": str(version)}])
        user.phone.network.instead.append(
            lambda request: (
                {"status": 200, "headers": {}, "body": deleted} if is_change(request) else None
            )
        )
        if app.phone.config["backend"]["queue"]["activity"]["change"]:
            pytest.skip("the function answers in another form")
        app.queue_cancel({"id": item})
        app.settle()
        assert app.item_list({"kind": "activity"})["items"] == []
    # When all rows are read
    user.phone.pass_time(86_400)
    app.sync()
    # Then the list has it
    assert [one["id"] for one in app.item_list({"kind": "activity"})["items"]] == [item]
    assert edit(app, item, minutes=45)["state"] == "pending"


@contextlib.contextmanager
def visits(directory: DirectoryFixtures) -> Iterator[dict[str, Any]]:
    """A table with rows of any size, whose key has the organisation; the mapping of a kind."""
    sql = directory.control.sql
    sql(
        "create table visits (id uuid, org_id uuid, user_id uuid default auth.uid(), minutes int, "
        "note text, updated_at timestamptz default clock_timestamp(), primary key (id, org_id))"
    )
    try:
        sql(
            "create trigger touch before update on visits "
            "for each row execute function private.touch_updated_at()"
        )
        sql("alter table visits enable row level security")
        sql("create policy own on visits to authenticated using (user_id = auth.uid())")
        sql("grant select, insert, update, delete on visits to authenticated")
        directory.control.reload_schema()
        columns = ["user_id", "minutes", "note"]
        kind = {"table": "visits", "columns": columns, "primary_key": "id_and_org_id", "own": {}}
        yield {"queue": {"visit": {**kind, "change": {}, "delete": "row"}}}
    finally:
        sql("drop table visits")
        directory.control.reload_schema()


def visit(app: App, item: str, **payload: Any) -> None:  # noqa: ANN401
    """Register a visit."""
    app.queue_add({"kind": "visit", "id": item, "payload": payload})


def test_a_row_as_large_as_an_item_is_listed_and_corrected(
    sign_in: MakeUser, directory: DirectoryFixtures
) -> None:
    with visits(directory) as kinds:
        user = sign_in(tables=kinds)
        app = user.app
        [item] = new_ids(1)
        note = "x" * 200_000
        visit(app, item, minutes=30, note=note)
        app.settle()
        for _ in range(2):
            [listed] = app.item_list({"kind": "visit"})["items"]
            assert (listed["state"], listed["payload"]["note"]) == ("stored", note)
            app.sync()
        edit(app, item, minutes=90)
        app.settle()
        [found] = directory.control.sql("select minutes from visits where id = %s", item)
        assert found["minutes"] == 90


def test_integers_that_share_a_double_are_not_the_same(
    sign_in: MakeUser, directory: DirectoryFixtures
) -> None:
    """No item has such a number, but the server may."""
    sql = directory.control.sql
    first, second = 2**53, 2**53 + 1
    with visits(directory) as kinds:
        sql("alter table visits alter minutes type bigint")
        user = sign_in(tables=kinds)
        app = user.app
        [item] = new_ids(1)
        visit(app, item, minutes=7, note="")
        app.settle()
        sql("update visits set minutes = %s where id = %s", first, item)
        app.sync()
        # What others have set since is not deleted unseen, before a pull and after one
        app.go_offline()
        sql("update visits set minutes = %s where id = %s", second, item)
        app.queue_cancel({"id": item})
        app.reconnect()
        assert code_of(app, item) == "changed_elsewhere"
        app.queue_cancel({"id": item})
        app.sync()
        seen = {"user_id": user.person.id, "minutes": first, "note": ""}
        failure = error_of(app.queue_cancel, {"id": item, "base": seen})
        assert (failure.code, failure.field) == ("queue.changed", "/base/minutes")
        assert len(sql("select * from visits where id = %s", item)) == 1


def test_a_correction_is_of_the_organisations_own_row_with_this_id(
    sign_in: MakeUser, directory: DirectoryFixtures
) -> None:
    with visits(directory) as kinds:
        # Given rows of two organisations with one id, and a queued correction of one
        user = sign_in(tables=kinds)
        app, other = user.app, directory.organisation("Den andre")
        directory.control.set_membership(user.person.id, other.id, status="active")
        [item] = new_ids(1)
        for org, minutes in ((user.org, 30), (other, 31)):
            directory.control.sql(
                "insert into visits values (%s, %s, %s, %s)",
                item, org.id, user.person.id, minutes,
            )  # fmt: skip
        app.wait(1000)
        app.sync()
        app.go_offline()
        edit(app, item, minutes=90)
        app.go_online()
        user.phone.network.instead.append(
            lambda request: {"error": "timeout"} if request["purpose"] == "upload" else None
        )
        app.org_select({"org_id": other.id})
        app.settle()
        # Then the other one is shown as it is, and is not corrected in its place
        [listed] = app.item_list({"kind": "visit"})["items"]
        assert (listed["state"], listed["payload"]["minutes"]) == ("stored", 31)
        for call in (
            lambda: edit(app, item, minutes=91),
            lambda: app.queue_cancel({"id": item}),
        ):
            failure = error_of(call)
            assert (failure.code, failure.field) == ("queue.id_taken", "/id")


def test_COR_6_a_form_that_was_open_while_others_changed_the_row_overwrites_nothing(
    user: SignedIn, directory: DirectoryFixtures
) -> None:
    # Given a form with what the list has shown, and a pull that brings what others have set
    app = user.app
    item = sent(user)
    base = shown(app, item)["payload"]
    set_elsewhere(directory, item, minutes=99)
    app.sync()
    # When the user saves another value of that column, or takes the item back
    edited = {"id": item, "payload": {**base, "minutes": 45}, "base": base}
    for failure in (
        error_of(app.queue_edit, edited),
        error_of(app.queue_cancel, {"id": item, "base": base}),
    ):
        assert (failure.code, failure.field) == ("queue.changed", "/base/minutes")
    # and a whole form of which they changed another column
    app.queue_edit({"id": item, "payload": {**base, "note": "mine"}, "base": base})
    app.settle()
    # Then only what they changed is changed
    stored = row(directory, item)
    assert (stored["minutes"], stored["note"]) == (99, "mine")
    # and with what they have seen now, they may
    base = shown(app, item)["payload"]
    app.queue_edit({"id": item, "payload": {"minutes": 45}, "base": base})
    app.settle()
    assert row(directory, item)["minutes"] == 45
    app.queue_cancel({"id": item, "base": shown(app, item)["payload"]})
    app.settle()
    assert row(directory, item)["deleted_at"] is not None


@pytest.mark.parametrize("state", ["pending", "sending", "stored"])
def test_an_edit_keeps_the_columns_that_it_leaves_out(
    user: SignedIn, directory: DirectoryFixtures, state: str
) -> None:
    app = user.app
    app.go_offline()
    item = add(app, minutes=30, note="with the daughter")
    if state == "sending":
        app.go_online()
        upload: Any = taken(user, "upload")
        edit(app, item, minutes=45)
        app.complete({"id": upload["id"], **user.phone.network(upload)})
    elif state == "stored":
        app.reconnect()
        edit(app, item, minutes=45)
    else:
        edit(app, item, minutes=45)
    app.reconnect()
    stored = row(directory, item)
    assert (stored["minutes"], stored["note"]) == (45, "with the daughter")


def test_COR_12_an_item_that_is_corrected_after_two_refusals_counts(user: SignedIn) -> None:
    app = user.app
    item = add(app, minutes=BAD_MINUTES)
    app.settle()
    edit(app, item, minutes=BAD_MINUTES + 1)
    app.settle()
    app.go_offline()
    edit(app, item, minutes=45)
    assert total(app) == (1, 45)


def test_an_item_is_not_stored_under_the_id_of_a_deleted_row(sign_in: MakeUser) -> None:
    user = sign_in(tables=tables())
    app = user.app
    item = sent(user)
    app.queue_cancel({"id": item})
    app.settle()
    assert add(app, item, minutes=30) == item
    app.wait(600)
    assert code_of(app, item) == "deleted_elsewhere"


OWNED = "user_id = auth.uid() and org_id = any (array(select private.active_organizations()))"
#: What takes the right away, and what gives it back.
RIGHTS = {
    "a column's grant": (
        "revoke update (minutes, deleted_at) on activities from authenticated",
        "grant update (minutes, deleted_at) on activities to authenticated",
    ),
    "the table's grant": (
        "revoke update on activities from authenticated",
        "grant update (type, occurred_at, minutes, contact_id, follows, note, deleted_at, "
        "change_id) on activities to authenticated",
    ),
    "the policy of the row": (
        'alter policy "change own activities" on activities using (false)',
        f'alter policy "change own activities" on activities using ({OWNED})',
    ),
    "the policy of the new row": (
        'alter policy "change own activities" on activities with check (false)',
        f'alter policy "change own activities" on activities with check ({OWNED})',
    ),
}


@pytest.mark.parametrize("operation", ["change", "delete"])
@pytest.mark.parametrize("how", RIGHTS)
def test_COR_9_without_the_right_a_correction_is_parked(
    user: SignedIn, directory: DirectoryFixtures, how: str, operation: str
) -> None:
    app = user.app
    item = sent(user)
    other = sent(user)
    taken_away, given_back = RIGHTS[how]
    directory.control.sql(taken_away)
    try:
        correct(app, item, operation)
        app.settle()
        app.wait(60)
        assert code_of(app, item) == "not_allowed"
        assert len(changes(user)) <= 4
        # What others may do goes on
        assert app.queue_get({"id": add(app)})["state"] == "pending"
        app.settle()
        assert app.queue_list()["counts"] == {**EMPTY, "parked": 1}
    finally:
        directory.control.sql(given_back)
    app.queue_retry({"id": item})
    app.settle()
    found = row(directory, item)
    assert (found["minutes"], found["deleted_at"] is None) == (
        (90, True) if operation == "change" else (30, False)
    )
    assert row(directory, other)["minutes"] == 30


def test_COR_9_a_row_of_another_user_is_not_the_items_own(
    sign_in: MakeUser, directory: DirectoryFixtures
) -> None:
    # Given a coordinator, who sees the row that a colleague has stored under the item's id
    user = sign_in(role="coordinator", tables=tables())
    app = user.app
    colleague = directory.person(user.org)
    [item] = new_ids(1)
    directory.control.sql(
        "insert into activities (id, org_id, user_id, type, minutes, occurred_at) "
        "values (%s, %s, %s, 'visit', 30, now())",
        item, user.org.id, colleague.id,
    )  # fmt: skip
    # When the item is in doubt, and edited, so that its row would be corrected
    add(app, item, minutes=60)
    app.complete({"id": taken(user, "upload")["id"], "error": "timeout"})
    edit(app, item, type="visit", minutes=90)
    for _ in range(2):
        ask_until_believed(app)
        # Then it is parked, also when its user tries again
        assert code_of(app, item) == "conflict"
        app.queue_retry({"id": item})
    app.settle()
    # and the row stays as it is
    assert changes(user) == []
    assert row(directory, item)["minutes"] == 30


def test_COR_10_many_edits_are_one_change(user: SignedIn, directory: DirectoryFixtures) -> None:
    app = user.app
    item = sent(user)
    app.go_offline()
    for minutes in range(100, 200):
        edit(app, item, minutes=minutes)
    assert app.queue_list()["counts"]["pending"] == 1
    app.reconnect()
    assert row(directory, item)["minutes"] == 199
    assert len(changes(user)) == 1


def test_COR_10_insert_change_and_deletion_keep_their_order(
    user: SignedIn, directory: DirectoryFixtures
) -> None:
    app = user.app
    item = add(app, minutes=30)
    insert = taken(user, "upload")
    edit(app, item, minutes=60, type="visit")
    answer(app, insert)
    change = taken(user, "upload")
    assert is_change(change)
    # Behind the change that is being sent
    edit(app, item, minutes=90)
    app.queue_cancel({"id": item})
    answer(app, change)
    app.settle()
    found = row(directory, item)
    assert found["deleted_at"] is not None
    assert found["minutes"] == 60
    assert app.queue_get({"id": item})["state"] == "cancelled"


def test_COR_10_a_deletion_can_be_taken_back_until_it_is_sent(
    user: SignedIn, directory: DirectoryFixtures
) -> None:
    app = user.app
    item = sent(user)
    app.go_offline()
    app.queue_cancel({"id": item})
    assert edit(app, item, minutes=45)["state"] == "pending"
    app.reconnect()
    assert (row(directory, item)["minutes"], row(directory, item)["deleted_at"]) == (45, None)


def test_COR_10_what_follows_a_deleted_item_is_parked(
    user: SignedIn, directory: DirectoryFixtures
) -> None:
    app = user.app
    parent = add(app)
    request = taken(user, "upload")
    child = add(app, follows=parent)
    assert item_of(app, child)["reason"]["code"] == "dependency_waiting"
    app.queue_cancel({"id": parent})
    answer(app, request)
    app.settle()
    app.wait(60)
    assert row(directory, parent)["deleted_at"] is not None
    assert code_of(app, child) == "parent_deleted"


def test_COR_5_with_a_column_for_its_id_a_change_is_recognised_whatever_others_set(
    sign_in: MakeUser, directory: DirectoryFixtures
) -> None:
    user = user_with_change_ids(sign_in, directory)
    app = user.app
    item = sent(user)
    edit(app, item, minutes=90)
    lose_change(user)
    # Somebody sets the old value back.
    set_elsewhere(directory, item, minutes=30)
    app.wait(600)
    assert app.queue_get({"id": item})["state"] == "stored"
    assert row(directory, item)["minutes"] == 30


@pytest.mark.parametrize("parked", ["change", "deletion"])
@pytest.mark.parametrize("has_base", [True, False])
def test_COR_6_an_edit_of_a_conflict_back_to_the_old_value_is_not_dropped(
    user: SignedIn, directory: DirectoryFixtures, parked: str, *, has_base: bool
) -> None:
    app = user.app
    item = sent(user)
    app.go_offline()
    set_elsewhere(directory, item, minutes=77)
    correct(app, item, parked)
    app.go_online()
    app.wait(600)
    assert code_of(app, item) == "changed_elsewhere"
    # When the user wants the value from before: of a deletion the list shows what others have set
    request = {"id": item, "payload": {"minutes": 30}}
    if has_base:
        request["base"] = shown(app, item)["payload"]
    assert app.queue_edit(request)["state"] != "stored"
    app.wait(600)
    # Then it is stored, or they are asked if the list shows their own value
    if parked == "change":
        assert code_of(app, item) == "changed_elsewhere"
        app.queue_retry({"id": item, "overwrite": True})
        app.wait(600)
    assert app.queue_get({"id": item})["state"] == "stored"
    assert row(directory, item)["minutes"] == 30


def test_COR_8_an_edit_of_a_row_that_was_deleted_elsewhere_is_not_dropped(
    user: SignedIn, directory: DirectoryFixtures
) -> None:
    app = user.app
    item = sent(user)
    app.go_offline()
    set_elsewhere(directory, item, deleted_at="2026-11-20T10:00:00Z")
    edit(app, item, minutes=60)
    app.go_online()
    app.wait(600)
    assert code_of(app, item) == "deleted_elsewhere"
    assert edit(app, item, minutes=30)["state"] != "stored"
    app.wait(600)
    assert code_of(app, item) == "deleted_elsewhere"


def test_COR_2_what_others_set_after_an_edit_and_a_lost_answer_is_no_conflict(
    user: SignedIn, directory: DirectoryFixtures
) -> None:
    app = user.app
    app.go_offline()
    item = add(app, minutes=30, note="mine")
    edit(app, item, type="visit", minutes=45, note="mine")
    user.phone.network.lose["upload"] = 1
    app.go_online()
    app.settle()
    set_elsewhere(directory, item, note="theirs")
    app.wait(600)
    assert app.queue_get({"id": item})["state"] == "stored"
    app.queue_cancel({"id": item})
    app.wait(600)
    stored = row(directory, item)
    assert (stored["minutes"], stored["note"]) == (45, "theirs")


def other_device(user: SignedIn, phones: MakePhone) -> App:
    """Another device of the same user, with the same configuration."""
    tables = {"queue": user.phone.config["backend"]["queue"]}
    return signed_in(phones, user.person, user.org, tables=tables).app


@pytest.mark.parametrize("then", ["waits", "edits the same", "edits another column"])
def test_COR_5_a_value_that_another_device_set_back_is_not_overwritten_unseen(
    sign_in: MakeUser, phones: MakePhone, directory: DirectoryFixtures, then: str
) -> None:
    user = user_with_change_ids(sign_in, directory)
    app = user.app
    item = sent(user)
    # Given a change that is stored, and its answer is lost
    edit(app, item, minutes=90)
    lose_change(user)
    assert row(directory, item)["minutes"] == 90
    # When another device of the user, which sees it, sets the old value again
    other = other_device(user, phones)
    other.settle()
    assert shown(other, item)["payload"]["minutes"] == 90
    edit(other, item, minutes=30)
    other.settle()
    assert row(directory, item)["minutes"] == 30
    if then != "waits":
        app.sync()
        edit(app, item, **({"minutes": 75} if then == "edits the same" else {"note": "mine"}))
    app.wait(600)
    # Then the first one asks
    assert code_of(app, item) == "changed_elsewhere"
    assert row(directory, item)["minutes"] == 30
    app.queue_retry({"id": item, "overwrite": True})
    app.wait(600)
    assert row(directory, item)["minutes"] == (75 if then == "edits the same" else 90)


@pytest.mark.parametrize("arrives", [True, False])
def test_COR_5_with_a_column_for_its_id_a_change_of_another_column_is_no_conflict(
    sign_in: MakeUser, phones: MakePhone, directory: DirectoryFixtures, *, arrives: bool
) -> None:
    user = user_with_change_ids(sign_in, directory)
    app = user.app
    item = sent(user)
    other = other_device(user, phones)
    other.settle()
    # Given an earlier change of each device, so that the row has an id of a change
    edit(other, item, note="first")
    other.settle()
    user.phone.pass_time(600)
    app.sync()
    app.settle()
    assert shown(app, item)["payload"]["note"] == "first"
    edit(app, item, minutes=90)
    if arrives:
        lose_change(user)
    else:
        app.complete({"id": taken(user, "upload")["id"], "error": "timeout"})
    other.sync()
    edit(other, item, note="theirs")
    other.settle()
    app.wait(600)
    assert app.queue_get({"id": item})["state"] == "stored"
    stored = row(directory, item)
    assert (stored["minutes"], stored["note"]) == (90, "theirs")


def test_a_change_waits_while_the_configuration_does_not_keep_its_rows(
    user: SignedIn, directory: DirectoryFixtures
) -> None:
    item = sent(user)
    user.app.go_offline()
    edit(user.app, item, minutes=90)
    queue = user.phone.config["backend"]["queue"]
    user.phone.config["backend"]["queue"] = {"activity": KIND}
    app = user.restart()
    app.touch()
    app.reconnect()
    assert row(directory, item)["minutes"] == 30
    assert item_of(app, item)["state"] == "waiting"
    user.phone.config["backend"]["queue"] = queue
    app = user.restart()
    app.touch()
    app.settle()
    assert row(directory, item)["minutes"] == 90


def test_COR_6_a_column_that_the_app_did_not_keep_before_is_no_conflict(
    sign_in: MakeUser, directory: DirectoryFixtures
) -> None:
    kept = [name for name in COLUMNS if name != "note"]
    user = sign_in(tables=tables(own={"columns": kept}, change={"columns": kept}))
    item = sent(user, note="from the form")
    user.app.go_offline()
    edit(user.app, item, minutes=90)
    set_elsewhere(directory, item, minutes=45)
    user.app.reconnect()
    assert code_of(user.app, item) == "changed_elsewhere"
    user.phone.config["backend"]["queue"] = tables()["queue"]
    app = user.restart()
    app.touch()
    app.sync()
    assert shown(app, item)["payload"]["note"] == "from the form"
    edit(app, item, note="better")
    app.settle()
    conflict = item_of(app, item)["conflict"]
    assert [column["name"] for column in conflict["columns"]] == ["minutes"]


def total(app: App) -> tuple[int, int]:
    """How many activities and minutes the user has registered, as the app shows it."""
    shown: Any = app.summary_get()
    parts = [shown["summary"], shown["sent"], shown["queued"]]
    return sum(p["activities"] for p in parts), sum(p["minutes"] for p in parts)


def test_COR_12_the_total_stands_when_an_answer_is_lost_and_the_item_is_edited_again(
    user: SignedIn,
) -> None:
    app = user.app
    item = sent(user, 30)
    app.settle()
    edit(app, item, minutes=45)
    user.phone.network.lose["upload"] = 1
    app.settle()
    app.go_offline()
    edit(app, item, minutes=31)
    assert total(app) == (1, 31)
    app.queue_cancel({"id": item})
    assert total(app) == (0, 0)
    edit(app, item, minutes=32)
    app.go_online()
    app.wait(600)
    assert total(app) == (1, 32)


@pytest.mark.parametrize("is_cancelled", [False, True])
def test_COR_12_the_total_stands_when_an_insert_was_read_back_and_its_edit_waits(
    user: SignedIn, is_cancelled: bool
) -> None:
    app = user.app
    user.phone.network.lose["upload"] = 1
    item = add(app, minutes=57)
    app.settle()
    edit(app, item, type="visit", minutes=7)
    if is_cancelled:
        app.queue_cancel({"id": item})
    expected = (0, 0) if is_cancelled else (1, 7)
    assert total(app) == expected
    held = {"pull", "summary"}
    user.phone.network.instead.append(
        lambda request: (
            {"error": "timeout"} if request["purpose"] in held or is_change(request) else None
        )
    )
    for _ in range(4):
        app.wait(60)
        assert total(app) == expected
    user.phone.network.instead.clear()
    app.wait(1000)
    assert total(app) == expected


def test_COR_6_what_a_comparison_has_read_is_what_the_list_shows(
    user: SignedIn, directory: DirectoryFixtures
) -> None:
    app = user.app
    item = sent(user)
    set_elsewhere(directory, item, minutes=60, note="urgent")
    user.phone.network.instead.append(
        lambda request: {"error": "timeout"} if request["purpose"] == "pull" else None
    )
    edit(app, item, minutes=90)
    app.settle()
    app.queue_retry({"id": item, "overwrite": True})
    [listed] = app.item_list({"kind": "activity"})["items"]
    assert (listed["payload"]["minutes"], listed["payload"]["note"]) == (90, "urgent")


def test_COR_8_a_deletion_after_a_lost_insert_and_an_edit_sees_what_others_set(
    user: SignedIn, directory: DirectoryFixtures
) -> None:
    app = user.app
    user.phone.network.lose["upload"] = 1
    item = add(app, minutes=42)
    app.settle()
    app.go_offline()
    edit(app, item, type="visit", minutes=43)
    set_elsewhere(directory, item, minutes=7)
    app.queue_cancel({"id": item})
    app.go_online()
    app.wait(600)
    assert code_of(app, item) == "changed_elsewhere"
    assert row(directory, item)["deleted_at"] is None


def test_COR_8_an_edit_of_a_deletion_of_an_item_in_doubt_overwrites_nobody_unseen(
    user: SignedIn, directory: DirectoryFixtures
) -> None:
    # Given an item that was edited before it was sent, and whose answer is lost
    app = user.app
    app.go_offline()
    item = add(app, minutes=30, note="first")
    edit(app, item, type="visit", minutes=45, note="first")
    app.go_online()
    user.phone.network.lose["upload"] = 1
    app.settle()
    seen = item_of(app, item)["payload"]
    # and its deletion, which waits for its user because others have changed the row
    app.queue_cancel({"id": item})
    set_elsewhere(directory, item, note="theirs")
    app.wait(600)
    assert code_of(app, item) == "changed_elsewhere"
    # When they edit another column of what they saw before
    app.queue_edit({"id": item, "base": seen, "payload": {"minutes": 60}})
    app.wait(600)
    # Then both stand
    stored = row(directory, item)
    assert (stored["minutes"], stored["note"]) == (60, "theirs")
    assert stored["deleted_at"] is None


def test_COR_5_a_row_that_was_read_back_has_no_values_of_which_nobody_knows(
    user: SignedIn, directory: DirectoryFixtures
) -> None:
    app = user.app
    user.phone.network.lose["upload"] = 1
    item = add(app, minutes=42)
    app.settle()
    set_elsewhere(directory, item, minutes=785)
    user.phone.network.instead.append(
        lambda request: {"error": "timeout"} if request["purpose"] == "pull" else None
    )
    app.wait(600)
    edit(app, item, minutes=6)
    app.settle()
    assert code_of(app, item) == "changed_elsewhere"
    assert row(directory, item)["minutes"] == 785


def test_COR_12_the_total_is_the_users_before_during_and_after_a_sync(
    user: SignedIn, directory: DirectoryFixtures
) -> None:
    app = user.app
    kept, changed, deleted = sent(user, 10), sent(user, 20), sent(user, 40)
    app.settle()
    assert total(app) == (3, 70)
    app.go_offline()
    edit(app, changed, minutes=25)
    app.queue_cancel({"id": deleted})
    added = add(app, minutes=100)
    assert total(app) == (3, 135)
    app.go_online()
    for _ in range(20):
        step = app.step()
        assert total(app) == (3, 135)
        if step.idle:
            break
    assert total(app) == (3, 135)
    found = {str(one["id"]) for one in rows(directory, user.person) if not one["deleted_at"]}
    assert found == {kept, changed, added}


@pytest.mark.parametrize("hidden", ["a replica lags", "the membership ends"])
def test_COR_2_an_item_that_is_taken_back_in_doubt_is_gone_although_its_row_was_hidden(
    user: SignedIn, directory: DirectoryFixtures, hidden: str
) -> None:
    # Given an item that the server has, whose answer is lost, and that its user takes back
    app = user.app
    item = add(app, minutes=30)
    request = taken(user, "upload")
    user.phone.network(request)
    app.complete({"id": request["id"], "error": "timeout"})
    app.go_offline()
    app.queue_cancel({"id": item})
    # When the question about it shows no row
    if hidden == "a replica lags":
        user.phone.network.alter.append(
            lambda request, real: {**real, "body": "[]"} if is_question(request) else real
        )
    else:
        directory.control.set_membership(user.person.id, user.org.id, status="ended")
    app.go_online()
    app.wait(60)
    assert any(is_question(request) for request in user.phone.network.sent)
    assert app.queue_get({"id": item})["state"] in ("pending", "waiting")
    # and later one does
    user.phone.network.alter.clear()
    directory.control.set_membership(user.person.id, user.org.id, status="active")
    for _ in range(3):
        app.wait(1000)
        if app.screen["screen"] != "home":
            app.org_select({"org_id": user.org.id})
            app.settle()
    # Then it is deleted, as its user wanted
    assert row(directory, item)["deleted_at"] is not None
    assert app.queue_get({"id": item})["state"] == "cancelled"
    assert app.item_list({"kind": "activity"})["items"] == []


# What no insert carried ---------------------------------------------------------------------------


@pytest.fixture
def filled_in(directory: DirectoryFixtures) -> Iterator[None]:
    """The server sets the note of a new row that has none."""
    sql = directory.control.sql
    sql(
        "create function fill_in() returns trigger language plpgsql as "
        "$$ begin new.note := coalesce(new.note, 'by the server'); return new; end $$"
    )
    sql("create trigger filled before insert on activities for each row execute function fill_in()")
    yield
    sql("drop trigger filled on activities")
    sql("drop function fill_in")


@pytest.mark.usefixtures("filled_in")
@pytest.mark.parametrize("wish", ["another column", "that column", "in flight", "deletion"])
def test_a_value_that_the_server_filled_in_is_not_overwritten_unseen(
    user: SignedIn, directory: DirectoryFixtures, wish: str
) -> None:
    # Given an item without a note that is stored with one, and no pull since
    app = user.app
    user.phone.network.instead.append(
        lambda request: {"error": "timeout"} if request["purpose"] == "pull" else None
    )
    if wish == "in flight":
        item = add(app, minutes=30)
        request = taken(user, "upload")
        edit(app, item, note="mine")
        answer(app, request)
        app.settle()
    else:
        item = sent(user)
        if wish == "another column":
            edit(app, item, minutes=45)
        elif wish == "that column":
            edit(app, item, note="mine")
        else:
            app.queue_cancel({"id": item})
        app.settle()
    found = row(directory, item)
    assert found["note"] == "by the server"
    if wish == "another column":
        # Then another column is changed
        assert found["minutes"] == 45
        assert app.queue_get({"id": item})["state"] == "stored"
    elif wish == "deletion":
        assert found["deleted_at"] is not None
    else:
        # and its user sees that note first
        [column] = item_of(app, item)["conflict"]["columns"]
        assert (column["name"], column["theirs"], column["mine"]) == (
            "note", "by the server", "mine",
        )  # fmt: skip
        app.queue_retry({"id": item, "overwrite": True})
        app.settle()
        assert row(directory, item)["note"] == "mine"


def test_a_column_that_the_insert_left_out_is_changed_without_a_question_to_the_user(
    user: SignedIn, directory: DirectoryFixtures
) -> None:
    app = user.app
    user.phone.network.instead.append(
        lambda request: {"error": "timeout"} if request["purpose"] == "pull" else None
    )
    item = sent(user)
    edit(app, item, note="mine")
    app.settle()
    assert row(directory, item)["note"] == "mine"
    assert app.queue_get({"id": item})["state"] == "stored"


# A cancel after a conflict ------------------------------------------------------------------------


@pytest.mark.parametrize("seen", ["before", "now"])
@pytest.mark.parametrize("overwrite", [False, True])
@pytest.mark.parametrize("first", ["edit", "cancel"])
def test_COR_6_a_cancel_after_a_retry_deletes_no_value_unseen(
    user: SignedIn, directory: DirectoryFixtures, first: str, overwrite: bool, seen: str
) -> None:
    # Given a conflict, which its user retries
    app = user.app
    item = sent(user)
    base = shown(app, item)["payload"]
    set_elsewhere(directory, item, minutes=60, note="theirs")
    if first == "edit":
        edit(app, item, minutes=90)
        base = shown(app, item)["payload"]
    else:
        app.queue_cancel({"id": item, "base": base})
    app.settle()
    assert code_of(app, item) == "changed_elsewhere"
    app.queue_retry({"id": item, "overwrite": overwrite})
    # When they take it back with what the list has shown
    now = shown(app, item)["payload"]
    if seen == "now":
        base = now
    set_elsewhere(directory, item, note="unseen", minutes=61)
    unseen = [name for name in now if base.get(name) != now[name]]
    if unseen:
        failure = error_of(app.queue_cancel, {"id": item, "base": base})
        assert failure.code == "queue.changed"
    else:
        app.queue_cancel({"id": item, "base": base})
    app.settle()
    app.wait(600)
    # Then nothing is deleted that others have set since
    found = row(directory, item)
    assert found["deleted_at"] is None
    assert found["note"] == "unseen"
