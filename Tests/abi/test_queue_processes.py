"""Several processes on one folder, and processes killed at any moment."""

from __future__ import annotations

import json
import random
import resource
import subprocess
import sys
from pathlib import Path
from typing import Any, cast

import pytest
from patience import eventually

from support import children
from support.directory_fixtures import DirectoryFixtures
from support.phone import Phone
from support.queue import EMPTY, UPLOADS, add, drain, stored, user_of
from support.sizes import sized
from support.users import MakeUser, SignedIn
from support.workers import finish_worker, start_worker

ROUNDS = sized(5, 12)


def rows_sent(directory: DirectoryFixtures, upload: str) -> int:
    """The number of rows in all uploads that reached the server."""
    return sum(
        entry["rows_in"] or 0 for entry in directory.control.requests(UPLOADS[upload], "POST")
    )


def test_QUE_1_processes_killed_while_adding_and_sending_lose_nothing(
    sign_in: MakeUser, directory: DirectoryFixtures
) -> None:
    # Given processes that add and send, killed one after the other after any number of items
    user = sign_in()
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
    # When the app starts for the last time
    app = user.restart()
    drain(app)
    # Then every acknowledged item is on the server once and complete, plus at most one
    # unacknowledged item per kill
    rows = {str(row["id"]): row["minutes"] for row in directory.activities(user.person)}
    assert acknowledged.items() <= rows.items()
    assert len(rows) <= len(acknowledged) + ROUNDS
    assert app.queue_list()["counts"] == EMPTY
    # and each finished sync run was reported, without parked items
    assert app.of_type("item_parked") == []


@pytest.mark.parametrize("upload", UPLOADS)
def test_QUE_15_each_item_is_sent_by_one_of_several_processes(
    sign_in: MakeUser, directory: DirectoryFixtures, upload: str
) -> None:
    # Given three processes that add to one queue and send it at once
    user = user_of(sign_in, upload)
    user.phone.close()
    directory.control.clear_requests()
    workers = [start_worker(user.phone, 40, minutes) for minutes in (1, 2, 3)]
    added = [item for worker in workers for item in finish_worker(worker)]
    assert [worker.returncode for worker in workers] == [0, 0, 0]
    # Then each item was in one request, as the backend counts, and is stored once
    assert len(added) == 120
    assert rows_sent(directory, upload) == 120
    assert stored(directory, user.person) == sorted(added)
    app = user.restart()
    app.settle()
    assert app.queue_list()["counts"] == EMPTY


def test_QUE_15_the_items_of_a_killed_process_are_taken_over_at_once(
    sign_in: MakeUser, directory: DirectoryFixtures
) -> None:
    # Given a process that is killed while it waits for the answer to a batch
    user = sign_in()
    user.app.go_offline()
    ids = [add(user.app) for _ in range(30)]
    user.phone.close()
    user.phone.network.up = True
    hanging = directory.control.hang("/rest/v1/activities", method="POST")
    worker = start_worker(user.phone, 0, 1)
    eventually(lambda: directory.control.faults()[0]["hits"], what="the batch is under way")
    assert worker.poll() is None
    worker.kill()
    finish_worker(worker)
    directory.control.clear_faults(hanging)
    # When another process polls, with no time passed on its clock
    before = user.phone.now_ms
    app = user.restart()
    drain(app)
    # Then it sends the items
    assert user.phone.now_ms == before
    assert stored(directory, user.person) == sorted(ids)


def test_QUE_15_the_items_of_a_living_process_stay_leased(
    sign_in: MakeUser, directory: DirectoryFixtures
) -> None:
    # Given a handle with a batch in flight
    user = sign_in()
    first = user.app
    ids = [add(first) for _ in range(5)]
    flying = []
    while not flying:
        flying = [r for r in first.poll()["requests"] if r["purpose"] == "upload"]
    user.phone.app = None
    second = user.phone.start()
    try:
        # When another handle polls, also after most of the lease
        second.settle()
        user.phone.pass_time(60)
        second.settle()
        assert stored(directory, user.person) == []
        # Then it takes over only after the lease has ended, and the first handle's late answer
        # applies only to unchanged items
        user.phone.pass_time(20)
        second.settle()
        assert stored(directory, user.person) == sorted(ids)
        first.complete({"id": flying[0]["id"], "status": 400, "body": '{"code":"23514"}'})
        assert second.queue_list()["counts"] == EMPTY
        assert first.of_type("item_parked") == second.of_type("item_parked") == []
    finally:
        first.close()


def test_QUE_15_an_answer_after_the_takeover_changes_nothing(
    sign_in: MakeUser, directory: DirectoryFixtures
) -> None:
    # Given a request whose item another process took over, and a first process that stood still
    user = sign_in()
    first = user.app
    item = add(first)
    flying = []
    while not flying:
        flying = [r for r in first.poll()["requests"] if r["purpose"] == "upload"]
    user.phone.app = None
    second = user.phone.start()
    try:
        user.phone.pass_time(100)
        taken = []
        while not taken:
            for request in second.poll()["requests"]:
                if request["purpose"] == "upload":
                    taken.append(request)
                else:
                    second.complete({"id": request["id"], **user.phone.network(request)})
        # When the first request's answer is a refusal
        late = {"id": flying[0]["id"], "status": 400, "body": '{"code":"23514"}'}
        assert first.complete(cast("Any", late))["accepted"]
        # Then the item stays with the other process, whose answer counts
        assert second.queue_get({"id": item})["item"]["state"] == "sending"
        second.complete({"id": taken[0]["id"], **user.phone.network(taken[0])})
        assert stored(directory, user.person) == [item]
        assert second.queue_list()["counts"] == EMPTY
    finally:
        first.close()


# Full and read-only disks ------------------------------------------------------------------------

FULL = """
import json, os, resource, sys
from holdfast import HoldfastError
from support.phone import Phone
phone = Phone.from_spec(sys.argv[1])
app = phone.start(online=False)
assert app.screen["screen"] == "home", app.screen
kept, codes = [], []
for number in range(4000):
    try:
        kept.append(app.register(minutes=1 + number % 9, note="x" * 3000))
    except HoldfastError as error:
        codes.append([error.status, error.code, error.retryable])
        if len(codes) == 3:
            break
seen = []
page = app.queue_list({"limit": 500})
while True:
    seen += [item["id"] for item in page["items"]]
    if page["next"] is None:
        break
    page = app.queue_list({"limit": 500, "after": page["next"]})
assert seen == kept, (len(seen), len(kept))
print(json.dumps({"kept": kept, "codes": codes}))
phone.close()
"""


def register_until_refused(user: SignedIn) -> list[str]:
    """The command of a process that registers until three refusals."""
    return [sys.executable, "-c", FULL, user.phone.spec()]


def test_QUE_17_a_real_full_disk_refuses_items_and_loses_none(
    sign_in: MakeUser, directory: DirectoryFixtures, tmp_path: Path
) -> None:
    # Given a folder on a disk of 2.5 MB, of which 1 MiB is kept in reserve
    user = sign_in()
    user.phone.close()
    folder, room = user.phone.folder, tmp_path / "room"
    prepare = (
        f"cp -a {folder} {room} && mount -t tmpfs -o size=2500k,mode=700 tmpfs {folder}"
        f" && cp -a {room}/. {folder}/"
    )
    # When more is registered than fits (the folder is then copied to a normal disk)
    done = children.isolated(register_until_refused(user), prepare, f"cp -a {folder}/. {room}/")
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    # Then each further item is refused with storage.full
    assert result["codes"] == [[7, "storage.full", True]] * 3
    assert len(result["kept"]) > 20
    # and with room again every accepted item is there and is sent
    twin = Phone.from_spec(json.dumps({**json.loads(user.phone.spec()), "folder": str(room)}))
    twin.config = {**user.phone.config, "data_dir": str(room)}
    twin.keychain = user.phone.keychain
    app = twin.start()
    more = add(app)
    drain(app)
    assert stored(directory, user.person) == sorted([*result["kept"], more])
    twin.close()


def test_QUE_17_a_file_size_limit_refuses_items_and_loses_none(
    sign_in: MakeUser, directory: DirectoryFixtures
) -> None:
    # Given a process that may not let files grow beyond 400 kB
    user = sign_in()
    user.phone.close()

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (400_000, 400_000))

    done = subprocess.run(
        [sys.executable, "-c", IGNORE + FULL, user.phone.spec()],
        capture_output=True,
        text=True,
        env=children.environment(),
        preexec_fn=limit,
        timeout=120 * children.PATIENCE,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert len(result["codes"]) == 3
    assert {status for status, _, _ in result["codes"]} <= {6, 7}
    app = user.restart()
    drain(app)
    assert stored(directory, user.person) == sorted(result["kept"])


IGNORE = "import signal; signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
READ_ONLY = """
import sys
from holdfast import HoldfastError
from support.phone import Phone
phone = Phone.from_spec(sys.argv[1])
try:
    app = phone.start(online=False)
    app.register()
    print("accepted")
except HoldfastError as error:
    print(error.status, error.code)
"""


def test_QUE_17_a_read_only_folder_refuses_items_and_loses_none(
    sign_in: MakeUser, directory: DirectoryFixtures
) -> None:
    # Given items, and a folder that is mounted read-only
    user = sign_in()
    user.app.go_offline()
    ids = [add(user.app) for _ in range(3)]
    user.phone.close()
    folder = user.phone.folder
    prepare = f"mount --bind {folder} {folder} && mount -o remount,ro,bind {folder}"
    done = children.isolated([sys.executable, "-c", READ_ONLY, user.phone.spec()], prepare)
    # Then queue_add is refused with a clear code
    assert done.stdout.strip() == "6 storage.read_only", (done.stdout, done.stderr)
    # and when it is writable again, the items are unchanged
    user.phone.network.up = True
    app = user.restart()
    more = add(app)
    drain(app)
    assert stored(directory, user.person) == sorted([*ids, more])
