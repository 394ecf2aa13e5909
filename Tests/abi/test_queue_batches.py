"""Batches: which items share a request, and what a bad item or a refusal costs."""

from __future__ import annotations

import json
import random
import threading
import urllib.parse
from math import ceil, log2

import pytest
from holdfast import HoldfastError
from patience import eventually, patience

from support.directory_fixtures import DirectoryFixtures, changed
from support.held import unlock
from support.queue import (
    BAD_MINUTES,
    BOTH,
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
from support.sizes import crossed, sized
from support.users import MakeUser, SignedIn
from support.workers import finish_worker, start_worker

#: How many items a batch has, and the place of the bad one.
PLACES = [
    *((2, 0), (2, 1), (3, 0), (3, 1), (3, 2), (7, 6), (17, 16), (64, 0), (65, 64)),
    *((100, 0), (100, 49), (100, 99), (129, 128), (257, 256), (500, 0), (500, 137), (500, 499)),
]
#: Places that represent the others: the ends of small and large batches, and the middle.
FEW_PLACES = [(2, 1), (3, 0), (17, 16), (100, 49), (500, 137)]


@pytest.mark.parametrize(
    ("place", "upload"),
    crossed(
        PLACES,
        UPLOADS,
        fast=lambda place, upload: (
            place in FEW_PLACES if upload == "table" else place in [(3, 1), (500, 499)]
        ),
    ),
)
def test_QUE_3_a_bad_item_costs_few_requests(
    sign_in: MakeUser, directory: DirectoryFixtures, place: tuple[int, int], upload: str
) -> None:
    count, bad = place
    user = user_of(sign_in, upload)
    app = user.offline()
    ids = new_ids(count)
    for number, item in enumerate(ids):
        add(app, item, BAD_MINUTES if number == bad else 5)
    directory.control.clear_requests()
    app.go_online()
    done = drain(app)
    # Then all others are stored with at most 2·⌈log2 n⌉+2 requests; with one where the function
    # answers for each row
    assert (done["sent"], done["parked"], done["waiting"]) == (count - 1, 1, 0)
    assert stored(directory, user.person) == sorted(set(ids) - {ids[bad]})
    requests = directory.control.count("/rest/v1/activities")
    requests += directory.control.count(UPLOADS["rpc"])
    assert requests <= (2 * ceil(log2(count)) + 2 if upload == "table" else 1)
    item = item_of(app, ids[bad])
    assert item["state"] == "parked"
    assert item["reason"]["code"] == "server_rule"
    assert item["reason"]["sqlstate"] == "23514"
    assert "activities_minutes_check" in item["reason"]["message"]
    assert item["field"] == "minutes"
    [event] = app.of_type("item_parked")
    assert (event["id"], event["field"]) == (ids[bad], "minutes")


@BOTH
def test_a_batch_holds_500_items_of_one_organisation_kind_and_column_set(
    sign_in: MakeUser, directory: DirectoryFixtures, upload: str
) -> None:
    user = user_of(sign_in, upload)
    app = user.app
    second = directory.organisation()
    directory.control.set_membership(user.person.id, second.id, role="peer_mentor")
    app = user.restart()
    app.settle()
    app.go_offline()
    for number in range(505):
        add(app, note="x") if number % 100 == 0 else add(app)
    app.org_select({"org_id": second.id})
    add(app)
    if upload == "table":
        app.queue_add({"kind": "contact", "payload": {"name": "Ola Prøve", "relation": "x"}})
    user.phone.network.forget()
    app.go_online()
    drain(app)
    sent = [r for r in user.phone.network.sent if r["purpose"] == "upload"]
    counts = []
    for request in sent:
        body = json.loads(request["body"] or "")
        rows = body if isinstance(body, list) else body["items"]
        counts.append(len(rows))
        assert len({row["org_id"] for row in rows}) == 1
        assert len({tuple(sorted(row)) for row in rows}) == 1
        assert [row["id"] for row in rows] == sorted(row["id"] for row in rows)
    assert sorted(counts) == ([1, 1, 6, 499] if upload == "table" else [1, 6, 499])
    assert app.queue_list()["counts"] == EMPTY


def test_a_contact_its_details_and_a_visit_arrive_in_order(
    user: SignedIn, directory: DirectoryFixtures
) -> None:
    app = user.offline()
    contact = app.queue_add({"kind": "contact", "payload": {"name": "Ola Prøve"}})["id"]
    secret = {"phone": "+47 000 47 114", "address": "Prøveveien 47", "national_id": "00000047114"}
    added = app.queue_add({"kind": "contact_details", "payload": {"contact_id": contact, **secret}})
    assert added["state"] == "waiting"
    visit = add(app, contact_id=contact)
    with pytest.raises(HoldfastError):
        app.queue_add({"kind": "contact", "payload": {"name": "Ola Prøve", "phone": "1"}})
    user.phone.network.forget()
    app.go_online()
    drain(app)
    sent = [r["url"] for r in user.phone.network.sent if r["purpose"] == "upload"]
    tables = [urllib.parse.urlsplit(url).path.rpartition("/")[2] for url in sent]
    assert tables[0] == "contacts"
    assert sorted(tables) == ["activities", "contact_details", "contacts"]
    assert app.queue_list()["counts"] == EMPTY
    query = "select * from contact_details where contact_id = %s"
    [row] = directory.control.sql(query, contact)
    assert {name: row[name] for name in secret} == secret
    assert (str(row["id"]), str(row["created_by"])) == (added["id"], user.person.id)
    assert stored(directory, user.person) == [visit]


def test_batches_hold_one_megabyte_at_most(sign_in: MakeUser, directory: DirectoryFixtures) -> None:
    # Given items of up to 256 kB (the server refuses such notes; the test counts request sizes)
    drop = "alter table activities drop constraint activities_note_check"
    back = """delete from activities where char_length(note) > 4000;
      alter table activities add constraint activities_note_check check (char_length(note) <= 4000)
    """
    with changed(directory, drop, back):
        user = sign_in()
        app = user.offline()
        ids = [add(app, note="æ" * 120_000) for _ in range(9)] + [add(app, note="y")]
        user.phone.network.forget()
        app.go_online()
        drain(app)
        sent = [r["body"] for r in user.phone.network.sent if r["purpose"] == "upload"]
        bodies = [len((body or "").encode()) for body in sent]
        assert max(bodies) <= 1_000_000
        assert len(bodies) == 3
        assert stored(directory, user.person) == sorted(ids)


@BOTH
def test_413_halves_the_batch_until_it_fits(
    sign_in: MakeUser, directory: DirectoryFixtures, upload: str
) -> None:
    user = user_of(sign_in, upload)
    app = user.offline()
    ids = [add(app, note="y" * 900) for _ in range(60)]
    large = add(app, note="z" * 30_000)
    directory.control.set(max_body_bytes=20_000)
    app.go_online()
    done = drain(app)
    # A single item that is too large is parked as too large; all others are sent
    assert (done["sent"], done["parked"]) == (60, 1)
    assert stored(directory, user.person) == sorted(ids)
    assert code_of(app, large) == "too_long"


def test_one_probe_precedes_a_large_sync_run(user: SignedIn, directory: DirectoryFixtures) -> None:
    app = user.offline()
    ids = [add(app) for _ in range(40)]
    directory.control.respond("/rest/v1/activities", 503, times=2, method="POST")
    app.go_online()
    drain(app)
    sent = [e["rows_in"] for e in directory.control.requests("/rest/v1/activities", "POST")]
    assert sent == [40, 1, 1, 39]
    assert stored(directory, user.person) == sorted(ids)


@BOTH
def test_QUE_19_opposite_orders_do_not_deadlock(
    sign_in: MakeUser, directory: DirectoryFixtures, upload: str
) -> None:
    user = user_of(sign_in, upload)
    first = user.app
    first.go_offline()
    twin = user_of(sign_in, upload).phone
    second = twin.start()
    second.session_logout()
    second.sign_in(user.person)
    second.go_offline()
    ids = new_ids(300)
    for item in ids:
        add(first, item)
    twin.now_ms = user.phone.now_ms
    for item in reversed(ids):
        add(second, item)
    directory.control.clear_requests()
    first.go_online()
    second.go_online()
    # (Each app has its own network, since settling is not thread-safe.)
    threads = [threading.Thread(target=drain, args=(app,)) for app in (first, second)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(patience(300))
    answers = directory.control.requests(UPLOADS[upload], "POST")
    assert {entry["status"] for entry in answers} <= {200, 201}
    assert stored(directory, user.person) == ids
    assert first.queue_list()["counts"] == second.queue_list()["counts"] == EMPTY


# A refused batch ----------------------------------------------------------------------------------


def queued(user: SignedIn, count: int, bad: set[int]) -> tuple[list[str], list[str]]:
    """Queue visits offline, and go online; returns the good ids and the bad ones."""
    app = user.offline()
    ids = new_ids(count)
    for number, item in enumerate(ids):
        add(app, item, BAD_MINUTES if number in bad else 5)
    app.go_online()
    good = [item for number, item in enumerate(ids) if number not in bad]
    return good, [ids[number] for number in sorted(bad)]


def uploads(directory: DirectoryFixtures) -> list[int]:
    """How many items each upload had."""
    sent = directory.control.requests(UPLOADS["table"], "POST")
    return [len(json.loads(one["body"])) if one.get("body") else one["rows_in"] for one in sent]


def step_until_upload(user: SignedIn, directory: DirectoryFixtures) -> None:
    """Run the host's loop until one more upload was answered."""
    before = len(uploads(directory))
    for _ in range(50):
        if len(uploads(directory)) > before:
            return
        user.app.step()
    raise AssertionError("nothing is sent")


def test_QUE_3_one_bad_item_in_a_hundred_costs_few_requests_and_the_size_recovers(
    sign_in: MakeUser, directory: DirectoryFixtures
) -> None:
    user = user_of(sign_in, "table")
    bad = {7, 130, 131, 288, 404, 555, 556, 557, 830, 999}
    directory.control.clear_requests()
    good, refused = queued(user, 1000, bad)
    done = drain(user.app)
    assert (done["sent"], done["parked"]) == (990, 10)
    assert stored(directory, user.person) == sorted(good)
    assert {item_of(user.app, item)["state"] for item in refused} == {"parked"}
    sizes = uploads(directory)
    assert len(sizes) <= 100, sizes
    assert sum(sizes) <= 4000, sizes
    directory.control.clear_requests()
    count = sized(1500, 3000)
    queued(user, count, set())
    assert drain(user.app)["sent"] == count
    assert len(uploads(directory)) <= 20
    assert max(uploads(directory)) >= 250


def test_QUE_3_many_bad_items_cost_hardly_more_than_one_request_each(
    sign_in: MakeUser, directory: DirectoryFixtures
) -> None:
    user = user_of(sign_in, "table")
    directory.control.clear_requests()
    queued(user, 120, set(range(120)))
    done = drain(user.app)
    assert (done["sent"], done["parked"]) == (0, 120)
    assert len(uploads(directory)) <= 120 + 50


@pytest.mark.parametrize(
    "uploads_before", crossed([1, 2, 3, 5], fast=lambda uploads: uploads in (1, 3))
)
def test_QUE_3_the_search_goes_on_after_restarts(
    sign_in: MakeUser, directory: DirectoryFixtures, uploads_before: int
) -> None:
    user = user_of(sign_in, "table")
    good, refused = queued(user, 70, {0, 33, 34, 69})
    done = {**EMPTY, "parked": len(refused)}
    for _ in range(60):
        for _ in range(uploads_before):
            if user.app.queue_list()["counts"] == done:
                break
            step_until_upload(user, directory)
        app = user.restart()
        unlock(user)
        if app.queue_list()["counts"] == done:
            break
    assert stored(directory, user.person) == sorted(good)
    assert user.app.queue_list()["counts"] == {**EMPTY, "parked": len(refused)}
    assert {item_of(user.app, item)["state"] for item in refused} == {"parked"}


def test_QUE_3_new_items_go_before_the_search(
    sign_in: MakeUser, directory: DirectoryFixtures
) -> None:
    user = user_of(sign_in, "table")
    queued(user, 64, {40})
    step_until_upload(user, directory)
    item = add(user.app)
    step_until_upload(user, directory)
    assert stored(directory, user.person) == [item]


def test_QUE_3_without_a_network_the_rest_of_a_search_can_be_edited(
    sign_in: MakeUser, directory: DirectoryFixtures
) -> None:
    user = user_of(sign_in, "table")
    good, refused = queued(user, 64, {40})
    for _ in range(2):
        step_until_upload(user, directory)
    user.app.go_offline()
    user.app.settle()
    counts = user.app.queue_list()["counts"]
    assert counts == {**EMPTY, "pending": 64 - len(stored(directory, user.person))}
    assert 0 < counts["pending"] < 64
    user.app.go_online()
    drain(user.app)
    assert stored(directory, user.person) == sorted(good)
    assert item_of(user.app, refused[0])["state"] == "parked"


def test_QUE_3_a_pause_that_another_handle_met_lets_go_of_the_search(
    user: SignedIn, directory: DirectoryFixtures
) -> None:
    queued(user, 8, {5})
    step_until_upload(user, directory)
    step_until_upload(user, directory)
    first = user.app
    assert len(stored(directory, user.person)) == 4
    second = user.phone.another()
    try:
        directory.control.respond(UPLOADS["table"], 503, times=-1, retry_after_s=3600)
        item = second.register()
        second.settle()
        first.settle()
        counts = first.queue_list()["counts"]
        assert (counts["sending"], counts["pending"]) == (0, 5)
        assert first.queue_cancel({"id": item})["state"] is not None
    finally:
        first.close()


def test_QUE_3_processes_killed_in_the_middle_of_a_search_lose_nothing(
    sign_in: MakeUser, directory: DirectoryFixtures
) -> None:
    user = user_of(sign_in, "table")
    good, refused = queued(user, 300, {5, 77, 78, 150, 222, 299})
    user.phone.close()
    chance = random.Random(20_261_125)
    for _ in range(sized(4, 12)):
        worker = start_worker(user.phone, 0, 5)
        wanted = len(uploads(directory)) + chance.randrange(4)
        eventually(
            lambda worker=worker, wanted=wanted: (
                len(uploads(directory)) >= wanted or worker.poll() is not None
            ),
            what="the process sends",
        )
        worker.kill()
        finish_worker(worker)
    app = user.restart()
    if app.screen["screen"] == "unlock":
        app.touch()
    app.go_online()
    drain(app)
    assert stored(directory, user.person) == sorted(good)
    assert app.queue_list()["counts"] == {**EMPTY, "parked": len(refused)}
    assert {item_of(app, item)["state"] for item in refused} == {"parked"}
