"""The queue's main path: each item is stored once on the server."""

from __future__ import annotations

import uuid
from typing import Any

import pytest

from support.directory_fixtures import DirectoryFixtures
from support.queue import BOTH, UPLOADS, user_of
from support.users import MakeUser


@BOTH
@pytest.mark.parametrize("count", [1, 40])
def test_QUE_2_a_lost_answer_after_the_commit_duplicates_nothing(
    sign_in: MakeUser, directory: DirectoryFixtures, upload: str, count: int
) -> None:
    # Given queued items
    user = user_of(sign_in, upload)
    app = user.app
    app.go_offline()
    ids = [app.register(minutes=1 + number) for number in range(count)]
    # When the server stores a batch and its answer is lost
    fault = directory.control.drop_after(UPLOADS[upload], method="POST")
    app.go_online()
    events: list[Any] = app.settle_until("sync_completed")
    # Then no item is duplicated or reported as lost
    [rule] = [each for each in directory.control.faults() if each["id"] == fault]
    assert rule["hits"] == 1
    stored = directory.activities(user.person)
    assert sorted(str(row["id"]) for row in stored) == sorted(ids)
    assert sorted(row["minutes"] for row in stored) == list(range(1, count + 1))
    done = [event for event in events if event["type"] == "sync_completed"]
    assert [(event["sent"], event["parked"], event["waiting"]) for event in done] == [(count, 0, 0)]
    assert app.of_type("item_parked") == []
    assert app.queue_list()["counts"] == {"pending": 0, "sending": 0, "waiting": 0, "parked": 0}


@pytest.mark.parametrize("limit", [1, 2, 6])
def test_QUE_2_a_page_limit_of_the_server_makes_no_conflicts(
    sign_in: MakeUser, directory: DirectoryFixtures, limit: int
) -> None:
    """Seed 5765: the server returns fewer rows than a read-back asks for, without saying so."""
    # Given a batch that the server has stored, whose answer is lost
    user = sign_in()
    app = user.app
    app.settle()
    app.go_offline()
    ids = [app.register(minutes=1 + number) for number in range(7)]
    directory.control.drop_after(UPLOADS["table"], method="POST")
    # When the server returns at most so many rows to the read-back
    directory.control.set(max_rows=limit)
    app.go_online()
    app.settle_until("sync_completed", within_s=7200)
    # Then no stored item is parked as a conflict
    assert app.of_type("item_parked") == []
    assert app.queue_list()["items"] == []
    assert sorted(str(row["id"]) for row in directory.activities(user.person)) == sorted(ids)


@BOTH
def test_QUE_2_a_death_between_commit_and_answer_duplicates_nothing(
    sign_in: MakeUser, directory: DirectoryFixtures, upload: str
) -> None:
    # Given a batch that the server has stored
    user = user_of(sign_in, upload)
    app = user.app
    ids = [app.register(minutes=1 + number) for number in range(10)]
    for _ in range(10):
        requests = app.poll()["requests"]
        uploads = [request for request in requests if request["purpose"] == "upload"]
        for request in uploads:
            assert user.phone.network(request)["status"] in {200, 201}
        if uploads:
            break
    # When the app dies before it gets the answer, and starts again
    app = user.restart()
    app.settle_until("sync_completed")
    # Then each row is stored once, and the queue is empty
    assert sorted(str(row["id"]) for row in directory.activities(user.person)) == sorted(ids)
    assert sum(event["sent"] for event in app.of_type("sync_completed")) == 10
    assert app.queue_list()["items"] == []


def test_QUE_2_the_payload_arrives_as_it_was_registered(
    sign_in: MakeUser, directory: DirectoryFixtures
) -> None:
    user = sign_in()
    contact = directory.contact(user.org, "Kari Prøve")
    item = user.app.queue_add(
        {
            "kind": "activity",
            "payload": {
                "type": "gåtur",
                "minutes": 90,
                "contact_id": contact,
                "note": 'sitat: "æøå" \\ \n\t\U0001f9ad',
            },
            "occurred_at_ms": 1_795_000_000_123,
        }
    )
    follow = user.app.register(follows=item["id"])
    user.app.settle_until("sync_completed")
    rows = {str(row["id"]): row for row in directory.activities(user.person)}
    stored = rows[item["id"]]
    assert (stored["type"], stored["minutes"]) == ("gåtur", 90)
    assert stored["note"] == 'sitat: "æøå" \\ \n\t\U0001f9ad'
    assert str(stored["contact_id"]) == contact
    assert str(stored["org_id"]) == user.org.id
    assert str(stored["occurred_at"]).startswith("2026-11-18 11:06:40.123")
    assert str(rows[follow]["follows"]) == item["id"]


@pytest.mark.parametrize("given", ["nothing", "an id", "a column", "null"])
def test_HST_4_an_item_without_a_time_happens_now(
    sign_in: MakeUser, directory: DirectoryFixtures, given: str
) -> None:
    """Newcomers' finding h: it was accepted, and the server refused it later."""
    user = sign_in()
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
    shown = user.app.queue_get({"id": item})["item"]
    assert shown["occurred_at_ms"] == (now_ms if given == "nothing" else None)
    if given == "an id":
        user.phone.pass_time(60)
        assert user.app.queue_add(request)["id"] == item
    user.app.go_online()
    user.app.settle()
    stored = {str(row["id"]) for row in directory.activities(user.person)}
    assert (item in stored) == (given in {"nothing", "a column"})
    # A kind without the column has no time
    contact = user.app.queue_add({"kind": "contact", "payload": {"name": "Ola"}})["id"]
    assert user.app.queue_get({"id": contact})["item"]["occurred_at_ms"] is None
