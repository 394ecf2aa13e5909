"""Low: an item whose id the server has for another item is parked, not erased as sent."""

from __future__ import annotations

import json
from typing import Any

import pytest
from holdfast.transport import Answer
from holdfast.types import HttpRequest

from support.directory_fixtures import DirectoryFixtures, changed
from support.queue import (
    BAD_MINUTES,
    BOTH,
    EMPTY,
    RPC,
    UPLOADS,
    add,
    code_of,
    drain,
    item_of,
    new_ids,
    stored,
    user_of,
)
from support.sizes import crossed
from support.users import MakePhone, MakeUser, SignedIn


def stored_once(user: SignedIn, item: str, **payload: Any) -> None:  # noqa: ANN401
    add(user.app, item, **payload)
    drain(user.app)
    assert user.app.queue_list()["counts"] == EMPTY


def rows(directory: DirectoryFixtures, user: SignedIn) -> dict[str, Any]:
    return {str(row["id"]): row["minutes"] for row in directory.activities(user.person)}


@pytest.mark.parametrize(
    ("change", "upload"),
    crossed(
        [{"minutes": 45}, {"note": "Ny"}, {"note": None, "minutes": 46}, {"type": "call"}],
        UPLOADS,
        fast=lambda change, upload: (upload == "rpc") == ("note" in change),
    ),
)
def test_ATK_18_the_same_id_with_other_content_is_parked_as_a_conflict(
    sign_in: MakeUser, directory: DirectoryFixtures, upload: str, change: dict[str, Any]
) -> None:
    user = user_of(sign_in, upload)
    taken, fresh = new_ids(2)
    stored_once(user, taken, minutes=30, note="Gammel")
    user.app.go_offline()
    payload: dict[str, Any] = {"minutes": 30, "note": "Gammel", **change}
    add(user.app, taken, **payload)
    add(user.app, fresh, **{**payload, "minutes": 7})
    user.app.go_online()
    user.app.settle_until("sync_completed")
    assert rows(directory, user) == {taken: 30, fresh: 7}
    assert code_of(user.app, taken) == "conflict"
    [left] = user.app.queue_list()["items"]
    assert {name: left["payload"][name] for name in payload} == payload
    [parked] = user.app.of_type("item_parked")
    assert (parked["id"], parked["reason"]) == (taken, "conflict")
    done = user.app.of_type("sync_completed")[-1]
    assert (done["sent"], done["parked"]) == (1, 1)


@BOTH
def test_ATK_18_the_same_item_again_is_done(
    sign_in: MakeUser, directory: DirectoryFixtures, upload: str
) -> None:
    user = user_of(sign_in, upload)
    [item] = new_ids(1)
    contact = directory.contact(user.org, "Kari")
    columns: dict[str, Any] = {
        "type": "visit",
        "minutes": 30,
        "note": "  Ringte på torsdag\n",
        "contact_id": contact.upper(),
        "occurred_at": "2026-03-01T12:30:00.5+02:00",
        "follows": None,
    }
    request: Any = {"kind": "activity", "id": item, "payload": columns}
    for _ in range(2):
        user.app.queue_add(request)
        drain(user.app)
        assert user.app.queue_list()["counts"] == EMPTY
        assert rows(directory, user) == {item: 30}
    assert user.app.of_type("item_parked") == []


@BOTH
def test_QUE_2_a_stored_item_that_a_replica_does_not_have_yet_is_no_conflict(
    sign_in: MakeUser, directory: DirectoryFixtures, upload: str
) -> None:
    # Given an item whose answer is lost, and questions that a replica answers
    user = user_of(sign_in, upload)
    app = user.app
    lagging: list[Any] = [
        lambda request: (
            {"status": 200, "headers": {"Content-Type": "application/json"}, "body": "[]"}
            if request["purpose"] == "upload" and request["method"] == "GET"
            else None
        )
    ]
    user.phone.network.instead = lagging
    user.phone.network.lose["upload"] = 1
    item = add(app, minutes=30)
    app.settle()
    # When the replica has it a minute later
    app.wait(60)
    assert not app.of_type("item_parked")
    lagging.clear()
    app.wait(1000)
    # Then it is stored, and nobody was told to register it again
    assert app.queue_get({"id": item})["state"] == "stored"
    assert not app.of_type("item_parked")
    assert rows(directory, user) == {item: 30}


@pytest.mark.parametrize("again", ["retry", "retry all", "edit"])
@BOTH
def test_ATK_18_a_conflict_stays_one_however_often_it_is_sent(
    sign_in: MakeUser, directory: DirectoryFixtures, upload: str, again: str
) -> None:
    user = user_of(sign_in, upload)
    [item] = new_ids(1)
    stored_once(user, item, minutes=30, note="Gammel")
    add(user.app, item, minutes=45, note="Ny")
    drain(user.app)
    assert code_of(user.app, item) == "conflict"
    # When the user sends the item again, or something else under the same id
    minutes = 45
    if again == "edit":
        minutes = 46
        user.app.queue_edit({"id": item, "payload": {"type": "visit", "minutes": minutes}})
    else:
        user.app.queue_retry({"id": item} if again == "retry" else {})
    drain(user.app)
    # Then it is still there, and the row as it was
    assert code_of(user.app, item) == "conflict"
    [left] = user.app.queue_list()["items"]
    assert left["payload"]["minutes"] == minutes
    assert rows(directory, user) == {item: 30}


@BOTH
def test_ATK_18_a_conflict_after_a_refusal_is_one(
    sign_in: MakeUser, phones: MakePhone, directory: DirectoryFixtures, upload: str
) -> None:
    user = user_of(sign_in, upload)
    [item] = new_ids(1)
    add(user.app, item, minutes=BAD_MINUTES)
    drain(user.app)
    assert code_of(user.app, item) == "server_rule"
    # When another device of the user has stored it with other values before the edit arrives
    other = phones(tables=RPC if upload == "rpc" else None).start()
    other.sign_in(user.person)
    add(other, item, minutes=30)
    drain(other)
    user.app.queue_edit({"id": item, "payload": {"type": "visit", "minutes": 45}})
    drain(user.app)
    assert code_of(user.app, item) == "conflict"
    assert rows(directory, user) == {item: 30}


DROPS = """
  create table public.drops(id uuid primary key, org_id uuid, title text, secret text);
  grant insert on public.drops to authenticated;
  grant select (id, title) on public.drops to authenticated
"""


def test_ATK_18_columns_that_the_user_may_not_read_are_not_compared(
    sign_in: MakeUser, directory: DirectoryFixtures
) -> None:
    with changed(directory, DROPS, "drop table public.drops"):
        user = sign_in(
            tables={"queue": {"drop": {"table": "drops", "columns": ["title", "secret"]}}}
        )
        [item] = new_ids(1)
        request: Any = {"kind": "drop", "id": item, "payload": {"title": "a", "secret": "b"}}
        for _ in range(2):
            user.app.queue_add(request)
            drain(user.app)
            assert user.app.queue_list()["counts"] == EMPTY
        assert user.app.of_type("item_parked") == []


TRIM_NOTE = """
  create function public.trim_note() returns trigger language plpgsql as
    $$ begin new.note := 'changed'; return new; end $$;
  create trigger trim_note before insert on public.activities
    for each row execute function public.trim_note()
"""


def test_ATK_18_a_lost_answer_is_no_conflict(user: SignedIn, directory: DirectoryFixtures) -> None:
    with changed(directory, TRIM_NOTE, "drop function public.trim_note cascade"):
        user.phone.network.lose["upload"] = 1
        [item] = new_ids(1)
        add(user.app, item, minutes=30, note="x")
        drain(user.app)
        assert user.app.queue_list()["counts"] == EMPTY
        assert user.app.of_type("item_parked") == []
        assert rows(directory, user) == {item: 30}


@BOTH
def test_ATK_18_an_answer_that_names_too_few_rows_is_no_conflict(
    sign_in: MakeUser, directory: DirectoryFixtures, upload: str
) -> None:
    user = user_of(sign_in, upload)
    emptied: list[str] = []

    def empty(request: HttpRequest, answer: Answer) -> Answer:
        if request["purpose"] == "upload" and request["method"] == "POST" and not emptied:
            emptied.append(request["id"] if isinstance(request["id"], str) else "")
            return {**answer, "body": "[]"}  # type: ignore[typeddict-item]
        return answer

    user.phone.network.alter.append(empty)
    user.app.go_offline()
    ids = [add(user.app, minutes=1 + number, note=f"{number}") for number in range(150)]
    user.app.go_online()
    drain(user.app)
    assert sorted(rows(directory, user)) == sorted(ids)
    assert user.app.of_type("item_parked") == []
    assert user.app.queue_list()["counts"] == EMPTY


def test_ATK_18_a_membership_that_ends_before_the_question_makes_no_conflict(
    sign_in: MakeUser, directory: DirectoryFixtures
) -> None:
    user = user_of(sign_in, "table")
    person, org = user.person.id, user.org.id

    def end(request: HttpRequest, answer: Answer) -> Answer:
        if request["purpose"] == "upload" and request["method"] == "POST" and not ended:
            assert answer["body"] == "[]"  # type: ignore[typeddict-item]
            ended.append(request["id"])
            directory.control.set_membership(person, org, status="ended")
        return answer

    ended: list[int] = []
    user.phone.network.lose["upload"] = 1
    user.phone.network.alter.append(end)
    [item] = new_ids(1)
    add(user.app, item, minutes=30)
    # When the library asks for the item, which the user may not read any more
    user.app.settle()
    user.app.wait(30)
    assert len(ended) == 1
    assert code_of(user.app, item) == "waiting_organisation"
    directory.control.set_membership(person, org, status="active")
    user.app.session_foreground()
    drain(user.app)
    assert user.app.of_type("item_parked") == []
    assert user.app.queue_list()["counts"] == EMPTY
    assert rows(directory, user) == {item: 30}


#: A duplicate key, as the server says it of the id where an upload has another conflict target.
DUPLICATE: Answer = {
    "status": 409,
    "headers": {"content-type": "application/json"},
    "body": json.dumps(
        {
            "code": "23505",
            "message": 'duplicate key value violates unique constraint "activities_pkey"',
        }
    ),
}


def test_QUE_19_a_409_for_ids_that_another_device_sent_costs_no_other_item(
    sign_in: MakeUser, directory: DirectoryFixtures
) -> None:
    user, other = sign_in(), sign_in()
    same, changed, foreign, *fresh = new_ids(7)
    stored_once(user, same, minutes=30, note="Mitt")
    stored_once(user, changed, minutes=30, note="Gammel")
    stored_once(other, foreign, minutes=30, note="Andres")
    taken = {same, changed, foreign}

    def refuse(request: HttpRequest) -> Answer | None:
        is_upload = (request["purpose"], request["method"]) == ("upload", "POST")
        return DUPLICATE if is_upload and any(i in (request["body"] or "") for i in taken) else None

    user.phone.network.instead.append(refuse)
    user.app.go_offline()
    add(user.app, same, minutes=30, note="Mitt")
    add(user.app, changed, minutes=45, note="Ny")
    add(user.app, foreign, minutes=9, note="Min")
    for item in fresh:
        add(user.app, item, minutes=7)
    user.app.go_online()
    drain(user.app)
    assert rows(directory, user) == {same: 30, changed: 30, **dict.fromkeys(fresh, 7)}
    assert user.app.queue_list()["counts"] == {**EMPTY, "parked": 2}
    assert code_of(user.app, changed) == "conflict"
    assert code_of(user.app, foreign) == "duplicate"
    left = {item["id"]: item["payload"]["note"] for item in user.app.queue_list()["items"]}
    assert left == {changed: "Ny", foreign: "Min"}
    assert rows(directory, other) == {foreign: 30}


def answer_rows(user: SignedIn, *statuses: str) -> None:
    """Answer each upload with these results for each of its items, and store nothing."""

    def respond(request: HttpRequest) -> Answer | None:
        if (request["purpose"], request["method"]) != ("upload", "POST"):
            return None
        sent = json.loads(request["body"] or "")["items"]
        results = [{"id": item["id"], "status": status} for item in sent for status in statuses]
        headers = {"content-type": "application/json"}
        return {"status": 200, "headers": headers, "body": json.dumps(results)}

    user.phone.network.instead.append(respond)


def test_QUE_19_a_function_s_duplicate_is_no_proof_after_a_read_back_without_the_row(
    sign_in: MakeUser, directory: DirectoryFixtures
) -> None:
    user = user_of(sign_in, "rpc")
    answer_rows(user, "duplicate")
    item = add(user.app)
    user.app.settle_until("item_parked")
    assert stored(directory, user.person) == []
    assert code_of(user.app, item) == "conflict"


def test_QUE_19_contradictory_results_of_a_function_prove_nothing(
    sign_in: MakeUser, directory: DirectoryFixtures
) -> None:
    user = user_of(sign_in, "rpc")
    answer_rows(user, "stored", "rejected")
    item = add(user.app)
    user.app.settle()
    assert item_of(user.app, item)["state"] == "waiting"
    user.phone.network.instead.clear()
    drain(user.app)
    assert stored(directory, user.person) == [item]


LABELS = """
  create table public.labels(id uuid primary key, org_id uuid, title text unique);
  grant insert, select on public.labels to authenticated
"""


def test_QUE_19_a_409_by_a_unique_column_parks_that_item_alone(
    sign_in: MakeUser, directory: DirectoryFixtures
) -> None:
    with changed(directory, LABELS, "drop table public.labels"):
        tables: Any = {"queue": {"label": {"table": "labels", "columns": ["title"]}}}
        users = [sign_in(tables=tables) for _ in range(2)]
        first, second = (user.app for user in users)
        ids = new_ids(9)
        for app, own in ((first, ids[:6]), (second, ids[3:])):
            app.go_offline()
            for item in own:
                # (the ids overlap; a title is taken by another id)
                title = "taken" if item in (ids[0], ids[8]) else item
                request: Any = {"kind": "label", "id": item, "payload": {"title": title}}
                app.queue_add(request)
        for app in (first, second):
            app.go_online()
            drain(app)
        assert first.queue_list()["counts"] == EMPTY
        assert second.queue_list()["counts"] == {**EMPTY, "parked": 1}
        assert code_of(second, ids[8]) == "duplicate"
        found = directory.control.sql("select id::text as id from public.labels order by id")
        assert [row["id"] for row in found] == ids[:8]
