"""One folder on two processors: what arm64 wrote, x86-64 goes on with, and back."""

from __future__ import annotations

import json
import os
import random
import subprocess
from pathlib import Path

import pytest
from patience import eventually

from support import children
from support.directory_fixtures import DirectoryFixtures
from support.paths import BUILDS, ROOT
from support.phone import Phone
from support.queue import EMPTY, add, add_offline, drain, stored
from support.users import SignedIn
from support.workers import finish_worker

#: Starts Python of arm64 under an emulator (mk/arm64.mk).
EMULATED = ROOT / ".build" / "arm64-root" / "usr" / "bin" / "python-emulated"
#: With a compiler for it, named `cc`.
EMULATED_TOOLS = ROOT / ".build" / "arm64"
ROUNDS = 4

pytestmark = pytest.mark.skipif(
    not (EMULATED.exists() and BUILDS["arm64"].exists()),
    reason="no library for arm64: `make test-arm64` builds it and runs these tests",
)


def start(phone: Phone, count: int, minutes: int) -> subprocess.Popen[str]:
    """A process on arm64 that adds items to the phone's folder and sends them."""
    spec = json.dumps({**json.loads(phone.spec()), "library": str(BUILDS["arm64"])})
    script = Path(children.command("queue_worker.py")[-1])
    return subprocess.Popen(
        [str(EMULATED), str(script), spec, str(count), str(minutes)],
        stdout=subprocess.PIPE,
        text=True,
        env=children.environment({"PATH": f"{EMULATED_TOOLS}:{os.environ['PATH']}"}),
    )


def test_a_process_of_the_other_processor_goes_on_after_each_kill(
    user: SignedIn, directory: DirectoryFixtures
) -> None:
    chance = random.Random(20_261_122)
    acknowledged: list[str] = []
    for number in range(ROUNDS):
        user.app.go_offline()
        acknowledged += [add(user.app) for _ in range(5)]
        user.phone.close()
        user.phone.network.up = True
        worker = start(user.phone, 200, number + 1)
        assert worker.stdout is not None
        assert worker.stdout.readline() == "ready\n"
        for _ in range(chance.randrange(40)):
            acknowledged.append(worker.stdout.readline().strip())
        worker.kill()
        acknowledged += finish_worker(worker)
        user.restart(online=False)
    user.phone.network.up = True
    app = user.restart()
    while app.queue_list({"limit": 1})["counts"] != EMPTY:
        # A run of an earlier process may be reported first.
        drain(app)
    rows = stored(directory, user.person)
    assert set(acknowledged) <= set(rows)
    assert len(rows) == len(set(rows)) <= len(acknowledged) + ROUNDS
    assert app.of_type("storage_recovered") == []


def test_items_in_flight_on_one_processor_are_taken_over_on_the_other(
    user: SignedIn, directory: DirectoryFixtures
) -> None:
    waiting = add_offline(user, 30)
    user.phone.close()
    user.phone.network.up = True
    hanging = directory.control.hang("/rest/v1/activities", method="POST")
    worker = start(user.phone, 0, 1)
    eventually(lambda: directory.control.faults()[0]["hits"], 300, "the batch is under way")
    assert worker.poll() is None
    worker.kill()
    assert finish_worker(worker) == []
    directory.control.clear_faults(hanging)
    drain(user.restart())
    assert stored(directory, user.person) == sorted(waiting)


def test_a_lock_on_one_processor_holds_on_the_other(user: SignedIn) -> None:
    user.phone.close()
    worker = start(user.phone, 1, 1)
    assert len(finish_worker(worker)) == 1
    assert worker.returncode == 0
    user.restart().session_lock()
    user.phone.close()
    worker = start(user.phone, 1, 1)
    assert finish_worker(worker) == []
    assert worker.returncode == 1
