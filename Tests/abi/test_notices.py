"""A handle notices what another one changes, in this process or another (ATK-11, B4)."""

from __future__ import annotations

import os
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from holdfast.library import REQUESTS

from support import children
from support.directory_fixtures import DirectoryFixtures
from support.phone import Phone
from support.users import MakePhone, MakeUser, SignedIn
from support.waking import HANG_S, Waiting, another, quiet, readable


@pytest.fixture
def user(sign_in: MakeUser) -> SignedIn:
    """A user whose first app has nothing to do."""
    made = sign_in()
    made.app.settle()
    return made


# ---- one process ---------------------------------------------------------------------------------


def test_ATK_11_a_waiting_thread_notices_another_handle(user: SignedIn) -> None:
    with another(user.phone) as other:
        quiet(user.app, other)
        waiting = Waiting(user.app)
        item = other.register()
        assert waiting.ends()
        request = waiting.answers[0]["request"]
        assert request["purpose"] == "upload"
        assert item in (request["body"] or "")


def test_ATK_11_the_descriptor_shows_what_another_handle_did(
    phone: Phone, directory: DirectoryFixtures
) -> None:
    first, second = directory.organisation(), directory.organisation()
    person = directory.person(first, second)
    app = phone.start()
    with another(phone) as other:
        quiet(app, other)
        other.sign_in(person)
        assert readable(app.wake_fd(), HANG_S)
        app.settle()
        assert app.screen["screen"] == "select_org"
        quiet(app, other)
        # The same for a chosen organisation,
        other.org_select({"org_id": second.id})
        assert readable(app.wake_fd(), HANG_S)
        app.settle()
        assert (app.screen["screen"], (app.screen["org"] or {}).get("id")) == ("home", second.id)
        quiet(app, other)
        # an item,
        other.register()
        assert readable(app.wake_fd(), HANG_S)
        app.settle()
        assert len(directory.activities(person)) == 1
        quiet(app, other)
        other.session_logout()
        assert readable(app.wake_fd(), HANG_S)
        app.settle()
        assert app.screen["screen"] == "sign_in"
        quiet(app, other)


def test_ATK_11_a_call_between_does_not_hide_another_decision(
    phone: Phone, directory: DirectoryFixtures
) -> None:
    first, second = directory.organisation(), directory.organisation()
    person = directory.person(first, second)
    app = phone.start()
    with another(phone) as other:
        app.sign_in(person)
        app.settle()
        app.org_select({"org_id": first.id})
        quiet(app, other)
        other.org_select({"org_id": second.id})
        assert readable(app.wake_fd(), HANG_S)
        app.queue_list()
        app.session_status()
        # Then it is still to poll: only a poll tells of the decision
        assert readable(app.wake_fd())
        app.settle()
        assert (app.screen["org"] or {}).get("id") == second.id
        assert not readable(app.wake_fd())


def test_ATK_11_a_notice_of_another_handle_wakes(user: SignedIn) -> None:
    app = user.app
    app.network_report({"online": False})
    with another(user.phone) as other:
        quiet(app, other)
        item = other.register(minutes=100_000)
        while other.queue_get({"id": item})["item"]["state"] != "parked":
            for request in other.take(REQUESTS).requests:
                other.answer(request, user.phone.network(request))
        assert readable(app.wake_fd(), HANG_S)
        app.settle()
        assert [notice["id"] for notice in app.of_type("item_parked")] == [item]


def test_ATK_11_calls_that_change_nothing_wake_nobody(user: SignedIn) -> None:
    with another(user.phone) as other:
        quiet(user.app, other)
        calls = ("session_status", "org_list", "queue_list", "queue_explain", "sync_status", "poll")
        for call in calls:
            getattr(other, call)()
            assert not readable(user.app.wake_fd()), call
            assert not readable(other.wake_fd()), call


def test_ATK_11_another_folder_wakes_nobody(user: SignedIn, phones: MakePhone) -> None:
    apart = phones().start()
    apart.settle()
    quiet(user.app, apart)
    user.app.register()
    assert readable(user.app.wake_fd())
    user.app.settle()
    # The descriptor may be readable until its handle has looked; then it is not.
    apart.session_status()
    assert not readable(apart.wake_fd())


@pytest.mark.realtime
def test_ATK_11_handles_that_wait_do_not_wake_without_a_change(sign_in: MakeUser) -> None:
    user = sign_in(clock="system")
    user.app.settle()
    with another(user.phone) as other:
        quiet(user.app, other)
        threads = [Waiting(user.app), Waiting(other)]
        before = [thread.wake_ups() for thread in threads]
        time.sleep(3)
        assert [thread.wake_ups() for thread in threads] == before
        user.phone.close()
        other.close()
        assert all(thread.ends() for thread in threads)


def test_a_duplicate_of_the_descriptor_is_readable_after_the_close(user: SignedIn) -> None:
    """A host may duplicate the descriptor, and must learn of the close from it."""
    duplicate = os.dup(user.app.wake_fd())
    assert not readable(duplicate)
    user.phone.close()
    assert readable(duplicate)
    os.close(duplicate)


# ---- two processes -------------------------------------------------------------------------------


@contextmanager
def waiting_process(phone: Phone, how: str) -> Iterator[subprocess.Popen[str]]:
    """A process that waits on the phone's folder; see children/wait_for_change.py."""
    process = subprocess.Popen(
        children.command("wait_for_change.py", phone.spec(), how),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=children.environment(),
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait()
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.close()
        process.stdout.close()


def line(process: subprocess.Popen[str]) -> str:
    """The next line of the process; "" when it says nothing for too long."""
    assert process.stdout is not None
    said: list[str] = []

    def read() -> None:
        assert process.stdout is not None
        said.append(process.stdout.readline())

    reader = threading.Thread(target=read)
    reader.start()
    reader.join(HANG_S)
    if reader.is_alive():
        process.kill()
        reader.join()
        return ""
    return said[0].strip()


@pytest.mark.parametrize("how", ["wait", "descriptor"])
def test_ATK_11_another_process_is_woken(user: SignedIn, how: str) -> None:
    with waiting_process(user.phone, how) as process:
        assert line(process) == "waits"
        user.app.settle()
        item = user.app.register()
        assert line(process) == f"upload {item}"


def test_ATK_11_a_forked_child_with_a_handle_of_its_own_is_woken_too(user: SignedIn) -> None:
    with waiting_process(user.phone, "fork") as process:
        assert [line(process), line(process)] == ["waits", "waits"]
        user.app.settle()
        user.app.register()
        assert [line(process), line(process)] == ["woken", "woken"]


@pytest.mark.realtime
def test_ATK_11_other_processes_are_looked_at_once_a_second_and_only_on_the_screen(
    user: SignedIn,
) -> None:
    with (
        waiting_process(user.phone, "count on screen") as front,
        waiting_process(user.phone, "count in background") as back,
    ):
        woken, seconds = line(front).split()
        assert 1 <= int(woken) <= 2 * float(seconds)
        assert line(back).split()[0] == "0"


@pytest.mark.realtime
def test_ATK_11_a_process_alone_on_its_folder_does_not_look(sign_in: MakeUser) -> None:
    user = sign_in()
    user.phone.close()
    with waiting_process(user.phone, "count on screen") as process:
        assert line(process).split()[0] == "0"
