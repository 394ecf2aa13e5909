"""Several processes on one folder, and processes that die at any instant."""

from __future__ import annotations

import json
import random
import resource
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any, cast

import pytest

from conftest import MakeUser, SignedIn
from support import children
from support.directory_fixtures import DirectoryFixtures
from support.phone import Phone
from support.queue import EMPTY, UPLOADS, add, drain, stored, user_of

ROUNDS = 12


def start(phone: Phone, count: int, minutes: int) -> subprocess.Popen[str]:
    """A worker on the phone's folder."""
    return subprocess.Popen(
        children.command("queue_worker.py", phone.spec(), str(count), str(minutes)),
        stdout=subprocess.PIPE,
        text=True,
        env=children.environment(),
    )


def finish(worker: subprocess.Popen[str]) -> list[str]:
    """The ids that it acknowledged until it ended or was killed."""
    # readline() may have taken more than its line, and communicate(timeout=) does not see that.
    assert worker.stdout is not None
    hangs = threading.Timer(120 * children.PATIENCE, worker.kill)
    hangs.start()
    with worker.stdout as stream:
        output = stream.read()
    worker.wait()
    hangs.cancel()
    return [line for line in output.split("\n")[:-1] if line not in {"ready", "done"}]


def rows_sent(directory: DirectoryFixtures, upload: str) -> int:
    """The rows of all uploads that arrived."""
    return sum(
        entry["rows_in"] or 0 for entry in directory.control.requests(UPLOADS[upload], "POST")
    )


def test_QUE_1_killed_at_random_instants_of_adding_and_draining(
    sign_in: MakeUser, directory: DirectoryFixtures
) -> None:
    # Given processes that add and drain, and are killed at any instant, one after the other
    user = sign_in()
    user.phone.close()
    chance = random.Random(20_261_121)
    acknowledged: dict[str, int] = {}
    for number in range(ROUNDS):
        worker = start(user.phone, 400, number + 1)
        assert worker.stdout is not None
        assert worker.stdout.readline() == "ready\n"
        time.sleep(chance.random() * 0.4)
        worker.kill()
        for item in finish(worker):
            acknowledged[item] = number + 1
        assert worker.returncode == -9
    assert len(acknowledged) > 5 * ROUNDS
    # When the app starts for the last time
    app = user.restart()
    drain(app)
    # Then every item that was acknowledged is on the server once, whole, and at most the one that
    # was being added at each death besides
    rows = {str(row["id"]): row["minutes"] for row in directory.activities(user.person)}
    assert acknowledged.items() <= rows.items()
    assert len(rows) <= len(acknowledged) + ROUNDS
    assert app.queue_list()["counts"] == EMPTY
    # and each drain that ended was told: nothing is reported as parked
    assert app.of_type("item_parked") == []


@pytest.mark.parametrize("upload", UPLOADS)
def test_QUE_15_each_item_is_sent_by_one_of_several_processes(
    sign_in: MakeUser, directory: DirectoryFixtures, upload: str
) -> None:
    # Given three processes that add to and drain one queue at once
    user = user_of(sign_in, upload)
    user.phone.close()
    directory.control.clear_requests()
    workers = [start(user.phone, 40, minutes) for minutes in (1, 2, 3)]
    added = [item for worker in workers for item in finish(worker)]
    assert [worker.returncode for worker in workers] == [0, 0, 0]
    # Then each item was in one request, counted at the backend, and is stored once
    assert len(added) == 120
    assert rows_sent(directory, upload) == 120
    assert stored(directory, user.person) == sorted(added)
    app = user.restart()
    app.settle()
    assert app.queue_list()["counts"] == EMPTY


def test_QUE_15_a_killed_processs_items_are_taken_over_at_once(
    sign_in: MakeUser, directory: DirectoryFixtures
) -> None:
    # Given a process that is killed while it waits for the answer to a batch
    user = sign_in()
    user.app.go_offline()
    ids = [add(user.app) for _ in range(30)]
    user.phone.close()
    user.phone.network.up = True
    hanging = directory.control.hang("/rest/v1/activities", method="POST")
    worker = start(user.phone, 0, 1)
    while not directory.control.faults()[0]["hits"]:
        time.sleep(0.01)
        assert worker.poll() is None
    worker.kill()
    finish(worker)
    directory.control.clear_faults(hanging)
    # When another one looks, without a second passing by its clock
    before = user.phone.now_ms
    app = user.restart()
    drain(app)
    # Then it sends them
    assert user.phone.now_ms == before
    assert stored(directory, user.person) == sorted(ids)


def test_QUE_15_a_living_processs_items_are_left_alone(
    sign_in: MakeUser, directory: DirectoryFixtures
) -> None:
    # Given a handle that has a batch on its way
    user = sign_in()
    first = user.app
    ids = [add(first) for _ in range(5)]
    flying = []
    while not flying:
        flying = [r for r in first.poll()["requests"] if r["purpose"] == "upload"]
    user.phone.app = None
    second = user.phone.start()
    try:
        # When another one polls, also after most of the lease
        second.settle()
        user.phone.pass_time(60)
        second.settle()
        assert stored(directory, user.person) == []
        # Then it takes over only when the lease has ended, and the first one's late answer is
        # held against what has become of the items
        user.phone.pass_time(20)
        second.settle()
        assert stored(directory, user.person) == sorted(ids)
        first.complete({"id": flying[0]["id"], "status": 400, "body": '{"code":"23514"}'})
        assert second.queue_list()["counts"] == EMPTY
        assert first.of_type("item_parked") == second.of_type("item_parked") == []
    finally:
        first.close()


def test_QUE_15_an_answer_that_comes_after_the_take_over_changes_nothing(
    sign_in: MakeUser, directory: DirectoryFixtures
) -> None:
    # Given a request whose item another process took over, since its clock was set forward
    user = sign_in()
    first = user.app
    item = add(first)
    flying = []
    while not flying:
        flying = [r for r in first.poll()["requests"] if r["purpose"] == "upload"]
    user.phone.app = None
    second = user.phone.start()
    try:
        user.phone.set_wall_clock(100)
        taken = []
        while not taken:
            for request in second.poll()["requests"]:
                if request["purpose"] == "upload":
                    taken.append(request)
                else:
                    second.complete({"id": request["id"], **user.phone.network(request)})
        # When the first one's answer refuses it
        late = {"id": flying[0]["id"], "status": 400, "body": '{"code":"23514"}'}
        assert first.complete(cast(Any, late))["accepted"]
        # Then it stays with the other, whose answer counts
        assert second.queue_get({"id": item})["item"]["state"] == "sending"
        second.complete({"id": taken[0]["id"], **user.phone.network(taken[0])})
        assert stored(directory, user.person) == [item]
        assert second.queue_list()["counts"] == EMPTY
    finally:
        first.close()


# A disk that is full, or cannot be written -------------------------------------------------------

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
    """The command of a process that registers until it is refused three times."""
    return [sys.executable, "-c", FULL, user.phone.spec()]


def test_QUE_17_a_disk_that_is_really_full(
    sign_in: MakeUser, directory: DirectoryFixtures, tmp_path: Path
) -> None:
    # Given a folder on a disk of 1.5 MB
    user = sign_in()
    user.phone.close()
    folder, room = user.phone.folder, tmp_path / "room"
    prepare = (
        f"cp -a {folder} {room} && mount -t tmpfs -o size=1500k,mode=700 tmpfs {folder}"
        f" && cp -a {room}/. {folder}/"
    )
    # When more is registered than fits (what is there then is carried over to an ordinary disk)
    done = children.isolated(register_until_refused(user), prepare, f"cp -a {folder}/. {room}/")
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    # Then it is refused with a clear code, every time
    assert result["codes"] == [[7, "storage.full", True]] * 3
    assert len(result["kept"]) > 20
    # and with room again everything that was accepted is there, and sent
    twin = Phone.from_spec(json.dumps({**json.loads(user.phone.spec()), "folder": str(room)}))
    twin.config = {**user.phone.config, "data_dir": str(room)}
    twin.keychain = user.phone.keychain
    app = twin.start()
    more = add(app)
    drain(app)
    assert stored(directory, user.person) == sorted([*result["kept"], more])
    twin.close()


def test_QUE_17_a_limit_on_the_size_of_files(
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


def test_QUE_17_a_folder_that_cannot_be_written(
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
    # Then nothing can be registered, and it says so
    assert done.stdout.strip() == "6 storage.read_only", (done.stdout, done.stderr)
    # and when it can be written again, all is as it was
    user.phone.network.up = True
    app = user.restart()
    more = add(app)
    drain(app)
    assert stored(directory, user.person) == sorted([*ids, more])
