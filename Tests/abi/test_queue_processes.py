"""Several processes on one folder, and processes killed at any moment."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from typing import Any, cast

import pytest
from holdfast import HoldfastError
from patience import eventually

from support import children
from support.directory_fixtures import DirectoryFixtures
from support.held import answer, taken
from support.phone import App, Phone
from support.queue import EMPTY, UPLOADS, add, add_offline, drain, stored, user_of
from support.sizes import crossed, sized
from support.users import MakeUser, SignedIn
from support.workers import finish_worker, start_worker

ROUNDS = sized(5, 12)


def rows_sent(directory: DirectoryFixtures, upload: str) -> int:
    """The number of rows in all uploads that reached the server."""
    return sum(
        entry["rows_in"] or 0 for entry in directory.control.requests(UPLOADS[upload], "POST")
    )


def test_QUE_1_processes_killed_while_adding_and_sending_lose_nothing(
    user: SignedIn, directory: DirectoryFixtures
) -> None:
    user.phone.close()
    chance = random.Random(20_261_121)
    acknowledged: dict[str, int] = {}
    for number in range(ROUNDS):
        worker = start_worker(user.phone, 400, number + 1)
        assert worker.stdout is not None
        assert worker.stdout.readline() == "ready\n"
        for _ in range(chance.randrange(60)):
            acknowledged[worker.stdout.readline().strip()] = number + 1
        worker.kill()
        for item in finish_worker(worker):
            acknowledged[item] = number + 1
        assert worker.returncode == -9
    assert len(acknowledged) > 5 * ROUNDS
    app = user.restart()
    drain(app)
    rows = {str(row["id"]): row["minutes"] for row in directory.activities(user.person)}
    assert acknowledged.items() <= rows.items()
    assert len(rows) <= len(acknowledged) + ROUNDS
    assert app.queue_list()["counts"] == EMPTY
    assert app.of_type("item_parked") == []


@pytest.mark.parametrize("upload", crossed(UPLOADS, fast=lambda upload: upload == "table"))
def test_QUE_15_each_item_is_sent_by_one_of_several_processes(
    sign_in: MakeUser, directory: DirectoryFixtures, upload: str
) -> None:
    user = user_of(sign_in, upload)
    user.phone.close()
    directory.control.clear_requests()
    workers = [start_worker(user.phone, 40, minutes) for minutes in (1, 2, 3)]
    added = [item for worker in workers for item in finish_worker(worker)]
    assert [worker.returncode for worker in workers] == [0, 0, 0]
    assert len(added) == 120
    assert rows_sent(directory, upload) == 120
    assert stored(directory, user.person) == sorted(added)
    app = user.restart()
    app.settle()
    assert app.queue_list()["counts"] == EMPTY


def test_QUE_15_the_items_of_a_killed_process_are_taken_over_at_once(
    user: SignedIn, directory: DirectoryFixtures
) -> None:
    ids = add_offline(user, 30)
    user.phone.close()
    user.phone.network.up = True
    hanging = directory.control.hang("/rest/v1/activities", method="POST")
    worker = start_worker(user.phone, 0, 1)
    eventually(lambda: directory.control.faults()[0]["hits"], what="the batch is under way")
    assert worker.poll() is None
    worker.kill()
    finish_worker(worker)
    directory.control.clear_faults(hanging)
    before = user.phone.now_ms
    app = user.restart()
    drain(app)
    assert user.phone.now_ms == before
    assert stored(directory, user.person) == sorted(ids)


def test_QUE_15_the_items_of_a_living_process_stay_leased(
    user: SignedIn, directory: DirectoryFixtures
) -> None:
    first = user.app
    ids = [add(first) for _ in range(5)]
    flying = taken(user, "upload")
    second = user.phone.another()
    try:
        second.settle()
        user.phone.pass_time(60)
        second.settle()
        assert stored(directory, user.person) == []
        user.phone.pass_time(20)
        second.settle()
        assert stored(directory, user.person) == sorted(ids)
        first.complete({"id": flying["id"], "status": 400, "body": '{"code":"23514"}'})
        assert second.queue_list()["counts"] == EMPTY
        assert first.of_type("item_parked") == second.of_type("item_parked") == []
    finally:
        first.close()


def test_QUE_15_an_answer_after_the_takeover_changes_nothing(
    user: SignedIn, directory: DirectoryFixtures
) -> None:
    first = user.app
    item = add(first)
    flying = taken(user, "upload")
    second = user.app = user.phone.another()
    try:
        user.phone.pass_time(100)
        other = taken(user, "upload")
        late = {"id": flying["id"], "status": 400, "body": '{"code":"23514"}'}
        assert first.complete(cast("Any", late)) == {}
        assert second.queue_get({"id": item})["item"]["state"] == "sending"
        answer(second, other)
        assert stored(directory, user.person) == [item]
        assert second.queue_list()["counts"] == EMPTY
    finally:
        first.close()


# Each call reads one state of the files -----------------------------------------------------------


#: Empties the log of a database; prints 1 if somebody who reads kept it from that.
EMPTY_LOG = """
import sqlite3, sys
with sqlite3.connect(sys.argv[1], timeout=0) as database:
    print(database.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0])
"""


def cancel(app: App, item: str) -> bool:
    """Cancel an item; False: it is being sent, or is sent."""
    try:
        app.queue_cancel({"id": item})
    except HoldfastError as error:
        assert error.code in {"queue.item_busy", "queue.item_not_found"}, error
        return False
    return True


def is_held(phone: Phone, name: str) -> bool:
    """Whether a handle of this process reads the file."""
    done = subprocess.run(
        [sys.executable, "-c", EMPTY_LOG, str(phone.folder / name)],
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.strip() != "0"


def test_QUE_15_a_list_and_its_counts_are_of_one_moment(user: SignedIn) -> None:
    worker = start_worker(user.phone, 150, 1)
    assert worker.stdout is not None
    assert worker.stdout.readline() == "ready\n"
    seen, wrong = [], []
    while worker.poll() is None and len(seen) < 3000:
        page = user.app.queue_list({"limit": 500})
        assert page["next"] is None
        states = [item["state"] for item in page["items"]]
        counts = {state: states.count(state) for state in page["counts"]}
        if counts != page["counts"]:
            wrong.append((counts, page["counts"]))
        seen.append(tuple(counts.values()))
    finish_worker(worker)
    assert len(set(seen)) > 2, "the other process did not change the queue meanwhile"
    assert wrong == []
    user.app.settle()


def test_QUE_15_nothing_is_held_between_calls(user: SignedIn) -> None:
    app = user.app
    app.settle()
    app.go_offline()
    item = add(app)
    calls = [
        ("session_status", {}),
        ("session_resume", {}),
        ("org_list", {}),
        ("queue_list", {}),
        ("queue_list", {"limit": 0}),
        ("queue_get", {"id": item}),
        ("queue_explain", {}),
        ("queue_export", {}),
        ("contact_search", {"query": "a"}),
        ("summary_get", {}),
        ("sync_status", {}),
        ("queue_edit", {"id": item, "payload": {"minutes": "many"}}),
        ("queue_cancel", {"id": item}),
        ("queue_cancel", {"id": item}),
        ("poll", {}),
        ("session_lock", {}),
        ("queue_list", {}),
        ("poll", {}),
    ]
    for name, request in calls:
        user.phone.library.call(name, app._handle, json.dumps(request).encode())
        assert not is_held(user.phone, "holdfast.db"), name
        assert not is_held(user.phone, "cache.db"), name


def test_QUE_15_calls_of_several_processes_are_never_refused(user: SignedIn) -> None:
    # Given two processes that add and send, so that each commits while the other decides
    workers = [start_worker(user.phone, 60, minutes) for minutes in (1, 2)]
    added, cancelled = [], 0
    for number in range(60):
        item = add(user.app, minutes=number + 1)
        if number % 3 > 0 or not cancel(user.app, item):
            added.append(item)
        else:
            cancelled += 1
    for worker in workers:
        added += finish_worker(worker)
    assert [worker.returncode for worker in workers] == [0, 0]
    user.app.settle()
    counts = user.app.queue_list()["counts"]
    assert sum(counts.values()) == 0
    assert len(set(added)) == len(added) == 180 - cancelled


def test_ABI_2_a_fork_without_hooks_gets_forked(phone: Phone) -> None:
    # A child that the system call makes runs no hooks of the C library, as one of another runtime.
    children.run("fork.py", phone.spec(), "raw").check()
