"""The Python package's loop with the real library: answers that are refused, and slow requests."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest
from holdfast import Runner

from support.phone import TOKEN_S

if TYPE_CHECKING:
    from holdfast.transport import Answer
    from holdfast.types import HttpRequest

    from support.directory_fixtures import DirectoryFixtures
    from support.users import MakeUser

#: Answers that the library cannot take.
UNUSABLE: dict[str, Any] = {
    "status 600": {"status": 600, "headers": {}, "body": "{}"},
    "status 999": {"status": 999, "headers": {}, "body": "{}"},
    "status 0": {"status": 0, "headers": {}, "body": None},
    "a NUL in the body": {"status": 200, "headers": {}, "body": "[\0]"},
    "a NUL in a header": {"status": 200, "headers": {"date": "a\0b"}, "body": "[]"},
    "a NUL in a header's name": {"status": 200, "headers": {"da\0te": "b"}, "body": "[]"},
    "a number that is none": {"status": float("nan"), "headers": {}, "body": "[]"},
    "a body of bytes": {"status": 200, "headers": {}, "body": b"[]"},
}


def within(condition: Callable[[], object], seconds: float = 10) -> bool:
    """Whether the condition becomes true in this time."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.01)
    return True


@pytest.mark.parametrize("name", UNUSABLE)
def test_B1_an_answer_that_the_library_refuses_is_a_failed_request(
    sign_in: MakeUser, directory: DirectoryFixtures, name: str
) -> None:
    """A status of 600 or more, or a NUL in body or header, ended the Runner for good."""
    user = sign_in()
    user.phone.network.alter.append(
        lambda request, answer: UNUSABLE[name] if request["purpose"] == "upload" else answer
    )
    item = user.app.register()
    user.app.settle()
    assert user.app.queue_get({"id": item})["item"]["state"] == "pending"
    user.phone.network.alter.clear()
    user.app.settle_until("sync_completed")
    assert [str(row["id"]) for row in directory.activities(user.person)] == [item]


def test_B1_a_refresh_is_not_behind_a_slow_upload(sign_in: MakeUser) -> None:
    """Requests were sent one after another: an upload that hangs stopped everything."""
    user = sign_in()
    blocked, release = threading.Event(), threading.Event()
    sent: list[str] = []

    def transport(request: HttpRequest) -> Answer:
        sent.append(request["purpose"])
        if request["purpose"] == "upload":
            blocked.set()
            release.wait(30)
        return user.phone.network(request)

    with Runner(user.app, transport=transport):
        try:
            user.app.register()
            assert blocked.wait(10)
            user.phone.pass_time(TOKEN_S - 30)
            assert within(lambda: "refresh" in sent)
        finally:
            release.set()


def test_B1_a_transport_that_raises_does_not_end_the_runner(
    sign_in: MakeUser, directory: DirectoryFixtures
) -> None:
    """An exception of the transport is a failed request, too."""
    user = sign_in(clock="system")
    failing = True

    def transport(request: HttpRequest) -> Answer:
        if failing:
            raise RuntimeError("a fault of the host")
        return user.phone.network(request)

    runner = Runner(user.app, transport=transport)
    with runner:
        item = user.app.register()
        assert within(lambda: user.app.queue_get({"id": item})["item"]["attempts"] > 0)
        failing = False
        user.app.network_set({"online": False})
        user.app.network_set({"online": True})
        user.app.sync_now()
        assert within(lambda: len(directory.activities(user.person)) == 1, 60)
