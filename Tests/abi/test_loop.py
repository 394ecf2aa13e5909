"""The host's loop: waiting, waking, logging, and the runner's thread."""

from __future__ import annotations

import time
from queue import Queue

from holdfast import Runner
from holdfast.types import Event

from support import scan
from support.directory_fixtures import DirectoryFixtures
from support.phone import TOKEN_S
from support.users import MakeUser
from support.waking import HANG_S, Waiting, readable


def test_the_descriptor_is_readable_while_there_is_something_to_poll(sign_in: MakeUser) -> None:
    # Given an app that has nothing to do
    user = sign_in()
    app = user.app
    app.settle()
    descriptor = app.wake_fd()
    assert descriptor >= 0
    assert not readable(descriptor)
    # When work is registered
    app.register()
    # Then the descriptor becomes readable and stays so until the next poll
    assert readable(descriptor)
    assert readable(descriptor)
    app.settle_until("sync_completed")
    app.settle()
    assert not readable(descriptor)
    # and offline items do not raise it
    app.go_offline()
    app.settle()
    app.register()
    assert not readable(descriptor)
    app.go_online()
    assert readable(descriptor)


def test_wait_returns_when_another_thread_adds_an_item(sign_in: MakeUser) -> None:
    user = sign_in()
    app = user.app
    app.settle()
    waiting = Waiting(app)
    app.register()
    assert waiting.ends()
    assert waiting.answers == [True]


def test_wait_returns_at_its_timeout(sign_in: MakeUser) -> None:
    app = sign_in().app
    app.settle()
    began = time.monotonic()
    assert app.wait(150)
    assert time.monotonic() - began > 0.1


def test_the_runner_s_thread_sends_items_and_reports_events(
    sign_in: MakeUser, directory: DirectoryFixtures
) -> None:
    # Given a runner on its own thread, with the real clock
    user = sign_in(clock="system")
    events: Queue[Event] = Queue()
    with Runner(user.app, events.put):
        # When activities are registered
        ids = [user.app.register(minutes=5 + number) for number in range(3)]
        # Then they reach the server, and the event arrives
        sent = 0
        while sent < 3:
            event = events.get(timeout=HANG_S)
            sent += event["sent"] if event["type"] == "sync_completed" else 0
    assert sorted(str(row["id"]) for row in directory.activities(user.person)) == sorted(ids)


def test_SES_12_log_lines_hold_no_secrets(sign_in: MakeUser, directory: DirectoryFixtures) -> None:
    # Given the log at its most verbose level
    lines: list[tuple[int, str]] = []
    user = sign_in(contacts=2)
    library = user.phone.library
    bodies: list[str] = []

    def note(request: object, answer: dict[str, object]) -> dict[str, object]:
        bodies.append(str(answer.get("body")))
        return answer

    user.phone.network.alter.append(note)
    library.set_log(3, lambda level, line: lines.append((level, line)))
    try:
        # When a user registers, meets failures, refreshes and logs out
        user.phone.pass_time(TOKEN_S + 60)
        app = user.restart()
        app.session_unlock({"outcome": "failed"})
        app = user.restart()
        app.touch()
        app.settle()
        item = app.register(note="en fortrolig samtale", minutes=99_999)
        app.settle_until("item_parked")
        directory.control.respond("/rest/v1/activities", 500, body="<html>Kari Prøvesen</html>")
        app.queue_edit({"id": item, "payload": {"type": "visit", "minutes": 5}})
        app.settle_until("sync_completed")
        app.session_logout()
        app.settle()
    finally:
        library.set_log(0, None)
    # Then the log has lines, and none of them holds a secret
    assert lines
    assert {level for level, _ in lines} <= {0, 1, 2, 3}
    text = "\n".join(line for _, line in lines).encode()
    token = next(body for body in bodies if "refresh_token" in body)
    secrets = [
        "eyJhbGciOi",
        token.split('"refresh_token"')[1].split('"')[1],
        user.person.id,
        user.person.email,
        user.org.id,
        user.org.name,
        item,
        "en fortrolig samtale",
        "Prøvesen",
    ]
    for secret in secrets:
        assert scan.find(text, secret) == [], secret
