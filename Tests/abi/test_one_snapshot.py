"""Each call reads one state of the files, and holds nothing between calls."""

from __future__ import annotations

import json
import subprocess
import sys

from holdfast import HoldfastError

from support import children
from support.phone import App, Phone
from support.queue import add
from support.users import MakeUser
from support.workers import finish_worker, start_worker

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


def test_QUE_15_a_list_and_its_counts_are_of_one_moment(sign_in: MakeUser) -> None:
    # Given another process that adds items and sends them
    user = sign_in()
    worker = start_worker(user.phone, 150, 1)
    assert worker.stdout is not None
    assert worker.stdout.readline() == "ready\n"
    # When this one lists the queue again and again
    seen, wrong = 0, []
    while worker.poll() is None and seen < 3000:
        page = user.app.queue_list({"limit": 500})
        assert page["next"] is None
        states = [item["state"] for item in page["items"]]
        counts = {state: states.count(state) for state in page["counts"]}
        if counts != page["counts"]:
            wrong.append((counts, page["counts"]))
        seen += 1
    finish_worker(worker)
    # Then the items of each page are those that the counts of the same reply count
    assert seen > 100
    assert wrong == []
    user.app.settle()


def test_QUE_15_nothing_is_held_between_calls(sign_in: MakeUser) -> None:
    # Given an app with a queue and a cache
    user = sign_in()
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
        # When it has made a call, whether that succeeds or not
        user.phone.library.call(name, app._handle, json.dumps(request).encode())
        # Then another process can empty the log of each file
        assert not is_held(user.phone, "holdfast.db"), name
        assert not is_held(user.phone, "cache.db"), name


def test_QUE_15_calls_of_several_processes_are_never_refused(sign_in: MakeUser) -> None:
    # Given two processes that add and send, so that each commits while the other decides
    user = sign_in()
    workers = [start_worker(user.phone, 60, minutes) for minutes in (1, 2)]
    # When this one adds, edits and cancels
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
    # Then no call of theirs failed, and what was acknowledged arrives
    user.app.settle()
    counts = user.app.queue_list()["counts"]
    assert sum(counts.values()) == 0
    assert len(set(added)) == len(added) == 180 - cancelled


def test_ABI_2_a_fork_without_hooks_gets_forked(phone: Phone) -> None:
    # A child that the system call makes runs no hooks of the C library, as one of another runtime.
    children.run("fork.py", phone.spec(), "raw").check()
