"""A batch that the server refuses, naming no row: what it costs, and what it delays."""

from __future__ import annotations

import json
import random

import pytest
from patience import eventually

from support.directory_fixtures import DirectoryFixtures
from support.queue import (
    BAD_MINUTES,
    EMPTY,
    UPLOADS,
    add,
    drain,
    item_of,
    new_ids,
    stored,
    user_of,
)
from support.sizes import crossed, sized
from support.users import MakeUser, SignedIn
from support.workers import finish_worker, start_worker


def queued(user: SignedIn, count: int, bad: set[int]) -> tuple[list[str], list[str]]:
    """Queue visits offline, and go online; returns the good ids and the bad ones."""
    app = user.app
    app.go_offline()
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
        user.app.runner.step()
    raise AssertionError("nothing is sent")


def test_QUE_3_one_bad_item_in_a_hundred_costs_few_requests_and_the_size_recovers(
    sign_in: MakeUser, directory: DirectoryFixtures
) -> None:
    # Given a thousand items, of which ten are bad
    user = user_of(sign_in, "table")
    bad = {7, 130, 131, 288, 404, 555, 556, 557, 830, 999}
    directory.control.clear_requests()
    good, refused = queued(user, 1000, bad)
    # When they are sent
    done = drain(user.app)
    # Then all others are stored, with fewer requests than halving each batch costs
    assert (done["sent"], done["parked"]) == (990, 10)
    assert stored(directory, user.person) == sorted(good)
    assert {item_of(user.app, item)["state"] for item in refused} == {"parked"}
    sizes = uploads(directory)
    assert len(sizes) <= 100, sizes
    assert sum(sizes) <= 4000, sizes
    # And clean items are soon sent in large batches again
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
    # Given a refused batch, and an app that ends after every few uploads
    user = user_of(sign_in, "table")
    good, refused = queued(user, 70, {0, 33, 34, 69})
    done = {**EMPTY, "parked": len(refused)}
    for _ in range(60):
        for _ in range(uploads_before):
            if user.app.queue_list()["counts"] == done:
                break
            step_until_upload(user, directory)
        app = user.restart()
        if app.screen["screen"] == "unlock":
            app.touch()
        if app.queue_list()["counts"] == done:
            break
    # Then every good item is stored once, and the bad ones are parked
    assert stored(directory, user.person) == sorted(good)
    assert user.app.queue_list()["counts"] == {**EMPTY, "parked": len(refused)}
    assert {item_of(user.app, item)["state"] for item in refused} == {"parked"}


def test_QUE_3_new_items_go_before_the_search(
    sign_in: MakeUser, directory: DirectoryFixtures
) -> None:
    # Given a batch that was refused
    user = user_of(sign_in, "table")
    queued(user, 64, {40})
    step_until_upload(user, directory)
    # When an item is added
    item = add(user.app)
    # Then the next upload is this item
    step_until_upload(user, directory)
    assert stored(directory, user.person) == [item]


def test_QUE_3_without_a_network_nothing_stays_in_hand(
    sign_in: MakeUser, directory: DirectoryFixtures
) -> None:
    # Given a search in the middle
    user = user_of(sign_in, "table")
    good, refused = queued(user, 64, {40})
    for _ in range(3):
        step_until_upload(user, directory)
    assert user.app.queue_list()["counts"]["sending"] > 0
    # When the network goes
    user.app.go_offline()
    user.app.settle()
    # Then what was stored is gone from the queue, and the rest can be edited
    assert user.app.queue_list()["counts"] == {**EMPTY, "pending": 64 - 32}
    # And the search goes on when the network is back
    user.app.go_online()
    drain(user.app)
    assert stored(directory, user.person) == sorted(good)
    assert item_of(user.app, refused[0])["state"] == "parked"


def test_QUE_3_a_pause_that_another_handle_met_keeps_nothing_in_hand(
    sign_in: MakeUser, directory: DirectoryFixtures
) -> None:
    # Given a search of which a half is stored
    user = sign_in()
    queued(user, 8, {5})
    step_until_upload(user, directory)
    step_until_upload(user, directory)
    first = user.app
    assert first.queue_list()["counts"]["sending"] == 8
    user.phone.app = None
    second = user.phone.start()
    try:
        # When the server tells another handle to come again in an hour
        directory.control.respond(UPLOADS["table"], 503, times=-1, retry_after_s=3600)
        item = second.register()
        second.settle()
        # Then the first handle's next poll settles what it knows, and lets go of the rest
        first.poll()
        counts = first.queue_list()["counts"]
        assert (counts["sending"], counts["pending"]) == (0, 5)
        assert first.queue_cancel({"id": item})["state"] is not None
    finally:
        first.close()


def test_QUE_3_processes_killed_in_the_middle_of_a_search_lose_nothing(
    sign_in: MakeUser, directory: DirectoryFixtures
) -> None:
    # Given a queue with bad items, and processes that send it and are killed after some uploads
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
    # When the app is started again
    app = user.restart()
    if app.screen["screen"] == "unlock":
        app.touch()
    app.go_online()
    drain(app)
    # Then every good item is stored once, and the bad ones are parked
    assert stored(directory, user.person) == sorted(good)
    assert app.queue_list()["counts"] == {**EMPTY, "parked": len(refused)}
    assert {item_of(app, item)["state"] for item in refused} == {"parked"}
