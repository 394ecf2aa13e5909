"""Items that the server may have: an edit or a cancel meets what is stored (findings B5 and B6)."""

from __future__ import annotations

import json
from typing import Any

import pytest
from holdfast import HoldfastError
from holdfast.transport import Answer
from holdfast.types import HttpRequest

from support.directory_fixtures import DirectoryFixtures
from support.queue import (
    BAD_MINUTES,
    EMPTY,
    UPLOADS,
    add,
    code_of,
    drain,
    stored,
    user_of,
)
from support.users import MakeUser, SignedIn


def is_read_back(request: HttpRequest) -> bool:
    """Whether the request asks which items are stored."""
    return request["purpose"] == "upload" and request["method"] == "GET"


def stop_at_the_read_back(user: SignedIn, answer: Answer) -> None:
    """The next read-back gets this answer, and nothing after it gets through."""
    network = user.phone.network

    def stop(request: HttpRequest, given: Answer) -> Answer:
        if not is_read_back(request):
            return given
        network.alter.remove(stop)
        user.app.go_offline()
        return answer

    network.alter.append(stop)


def edited_is_not_lost(user: SignedIn, directory: DirectoryFixtures, item: str) -> None:
    """Edit an item that the server has; the edit must not be counted as sent."""
    app = user.app
    edit: Any = {"id": item, "payload": {"type": "visit", "minutes": 45}}
    app.queue_edit(edit)
    app.go_online()
    done = drain(app)
    [row] = [row for row in directory.activities(user.person) if row["id"] == item]
    if row["minutes"] == 45:
        return
    assert (done["sent"], done["parked"]) == (0, 1)
    assert code_of(app, item) == "unknown_outcome"


REFUSED: Answer = {
    "status": 401,
    "headers": {"content-type": "application/json"},
    "body": '{"code":"PGRST301","message":"JWSError"}',
}


def test_B5_an_answer_with_too_few_rows_and_a_refused_read_back_is_an_attempt(
    sign_in: MakeUser, directory: DirectoryFixtures
) -> None:
    """ATK-12."""
    # Given an item that the server stored and did not name
    # (a function's answer names each row; a row without a result is an attempt)
    user = user_of(sign_in, "table")
    app = user.app
    app.go_offline()
    item = add(app, minutes=30)
    directory.control.truncate_rows(UPLOADS["table"], keep=0, method="POST")
    # and a read-back that is refused with 401
    stop_at_the_read_back(user, REFUSED)
    app.go_online()
    app.settle()
    assert app.queue_list()["counts"] == {**EMPTY, "pending": 1}
    # When the user edits it, then the edit is not lost
    edited_is_not_lost(user, directory, item)


def test_B5_a_read_back_that_another_session_may_not_send_is_an_attempt(
    sign_in: MakeUser, directory: DirectoryFixtures
) -> None:
    # Given an item that the server stored and did not name
    user = sign_in()
    app = user.app
    app.go_offline()
    item = add(app, minutes=30)
    directory.control.truncate_rows(UPLOADS["table"], keep=0, method="POST")
    app.go_online()
    # and a lock while the upload is under way, so that its session is another one
    flying: list[Any] = []
    while not flying:
        for request in app.poll()["requests"]:
            if request["purpose"] == "upload":
                flying.append(request)
            else:
                app.complete({"id": request["id"], **user.phone.network(request)})
    app.session_lock()
    app.complete({"id": flying[0]["id"], **user.phone.network(flying[0])})
    user.app.go_offline()
    app.touch()
    # When the user edits it, then the edit is not lost
    edited_is_not_lost(user, directory, item)


def test_B5_an_item_that_is_not_visible_before_the_memberships_are_known_is_an_attempt(
    sign_in: MakeUser, directory: DirectoryFixtures
) -> None:
    # Given an item that the server stored and did not name, while the memberships are being asked
    user = sign_in()
    app = user.app
    app.go_offline()
    item = add(app, minutes=30)
    directory.control.truncate_rows(UPLOADS["table"], keep=0, method="POST")
    app.go_online()
    checks: list[Any] = []
    read_backs = 0
    for _ in range(8):
        for request in app.poll()["requests"]:
            if request["purpose"] == "guard":
                checks.append(request)
            elif is_read_back(request):
                # and that the read-back does not show
                read_backs += 1
                body = {"content-type": "application/json"}
                app.complete({"id": request["id"], "status": 200, "headers": body, "body": "[]"})
            else:
                app.complete({"id": request["id"], **user.phone.network(request)})
    assert read_backs == 1
    assert app.queue_list()["counts"] == {**EMPTY, "waiting": 1}
    # When the user edits it, then the edit is not lost
    edit: Any = {"id": item, "payload": {"type": "visit", "minutes": 45}}
    app.queue_edit(edit)
    for request in checks:
        app.complete({"id": request["id"], **user.phone.network(request)})
    done = drain(app)
    assert [row["minutes"] for row in directory.activities(user.person)] == [30]
    assert (done["sent"], done["parked"]) == (0, 1)
    assert code_of(app, item) == "unknown_outcome"


def lost_answer(user: SignedIn, directory: DirectoryFixtures, item: str) -> None:
    """The server stores the item, and its answer is lost; the network goes."""
    app = user.app
    directory.control.drop_after(UPLOADS["table"], method="POST", times=1)
    app.go_online()
    app.settle()
    app.go_offline()
    assert stored(directory, user.person) == [item]
    assert app.queue_list()["counts"] == {**EMPTY, "pending": 1}


@pytest.mark.parametrize("restarted", [False, True])
def test_B6_a_cancel_after_a_lost_answer_asks_the_server_first(
    sign_in: MakeUser, directory: DirectoryFixtures, restarted: bool
) -> None:
    """ATK-12."""
    # Given an item that the server has stored without the app's knowing
    user = sign_in(policy={"biometric": "off"})
    user.app.go_offline()
    item = add(user.app)
    lost_answer(user, directory, item)
    # When the user cancels it, once and again
    for _ in range(2):
        reply = user.app.queue_cancel({"id": item})
        assert reply == {"id": item, "released": 0, "state": "pending"}
    # Then it is not gone here while it is stored there
    assert code_of(user.app, item) == "unknown_outcome"
    if restarted:
        user.restart(online=False)
    app = user.app
    user.phone.pass_time(60)
    app.go_online()
    assert drain(app)["parked"] == 1
    # but parked, so that the user sees it,
    assert code_of(app, item) == "unknown_outcome"
    [event] = app.of_type("item_parked")
    assert (event["id"], event["reason"]["code"]) == (item, "unknown_outcome")
    assert user.phone.network.count("upload") >= 1
    # and cancelling it now removes it here
    assert app.queue_cancel({"id": item})["state"] is None
    assert app.queue_list()["counts"] == EMPTY
    assert stored(directory, user.person) == [item]


@pytest.mark.parametrize("wish", ["edit", "cancel"])
@pytest.mark.parametrize("trouble", ["lost", "too short", "followed by 401"])
def test_ATK_12_a_wish_after_a_doubtful_answer_is_neither_lost_nor_stored_in_silence(
    sign_in: MakeUser, directory: DirectoryFixtures, trouble: str, wish: str
) -> None:
    # Given an item that the server has stored, and no answer that says so
    user = sign_in()
    app = user.app
    app.go_offline()
    item = add(app, minutes=30)
    if trouble == "lost":
        lost_answer(user, directory, item)
    else:
        directory.control.truncate_rows(UPLOADS["table"], keep=0, method="POST")
        unread: Answer = {"error": "timeout"}
        stop_at_the_read_back(user, REFUSED if trouble == "followed by 401" else unread)
        app.go_online()
        app.settle()
    assert stored(directory, user.person) == [item]
    # When the user edits or cancels it, and it is sent
    if wish == "edit":
        app.queue_edit({"id": item, "payload": {"type": "visit", "minutes": 45}})
    else:
        assert app.queue_cancel({"id": item})["state"] == "pending"
    app.go_online()
    done = drain(app)
    # Then it is parked, since only the user can tell; what they wrote is there
    assert (done["sent"], done["parked"]) == (0, 1)
    assert code_of(app, item) == "unknown_outcome"
    [left] = app.queue_list()["items"]
    assert left["payload"]["minutes"] == (45 if wish == "edit" else 30)
    assert [row["minutes"] for row in directory.activities(user.person)] == [30]


@pytest.mark.parametrize("wish", ["edit", "cancel"])
@pytest.mark.parametrize("code", ["57014", "XX000", "PGRST204", "42P01"])
def test_ATK_12_a_batch_that_is_split_after_a_doubtful_answer_may_be_stored(
    sign_in: MakeUser, directory: DirectoryFixtures, code: str, wish: str
) -> None:
    # Given a server that works, and a batch that it has stored while something on the way answers
    # with one of the service's codes that blame no item
    user = sign_in()
    app = user.app
    network = user.phone.network
    add(app)
    drain(app)
    app.go_offline()
    item, *others = [add(app, minutes=30) for _ in range(4)]

    def lie(request: HttpRequest, given: Answer) -> Answer:
        if request["purpose"] != "upload":
            return given
        network.alter.remove(lie)
        app.go_offline()
        return {
            "status": 500,
            "headers": {"content-type": "application/json"},
            "body": json.dumps({"code": code, "message": "no"}),
        }

    network.alter.append(lie)
    app.go_online()
    app.settle()
    assert set(stored(directory, user.person)) > {item, *others}
    # When the user edits or cancels an item of the batch, which was split meanwhile
    if wish == "edit":
        app.queue_edit({"id": item, "payload": {"type": "visit", "minutes": 45}})
    else:
        assert app.queue_cancel({"id": item})["state"] == "pending"
    user.phone.pass_time(600)
    app.go_online()
    done = drain(app)
    # Then that item is parked, since only the user can tell; the others are stored
    assert (done["sent"], done["parked"]) == (3, 1)
    assert code_of(app, item) == "unknown_outcome"
    assert 45 not in [row["minutes"] for row in directory.activities(user.person)]


def test_B6_a_cancelled_item_that_the_server_does_not_have_goes(
    sign_in: MakeUser, directory: DirectoryFixtures
) -> None:
    # Given an item that did not reach the server, one that depends on it, and another
    user = sign_in()
    app = user.app
    app.go_offline()
    item = add(app)
    child_request: Any = {
        "kind": "activity",
        "payload": {"type": "visit", "minutes": 6},
        "depends_on": [item],
        "occurred_at_ms": user.phone.now_ms,
    }
    child = app.queue_add(child_request)["id"]
    directory.control.drop_before(UPLOADS["table"], method="POST", times=1)
    app.go_online()
    app.settle()
    other = add(app, minutes=7)
    # When the user cancels it
    assert app.queue_cancel({"id": item})["state"] == "pending"
    # Then the server is asked, the item goes, and the others are sent
    drain(app)
    app.settle()
    assert stored(directory, user.person) == sorted([child, other])
    assert app.queue_list()["counts"] == EMPTY
    assert app.of_type("item_parked") == []


def test_B6_a_forced_cancel_removes_the_item_at_once(
    sign_in: MakeUser, directory: DirectoryFixtures
) -> None:
    user = sign_in()
    user.app.go_offline()
    item = add(user.app)
    lost_answer(user, directory, item)
    assert user.app.queue_cancel({"id": item})["state"] == "pending"
    assert user.app.queue_cancel({"id": item, "force": True})["state"] is None
    with pytest.raises(HoldfastError) as caught:
        user.app.queue_cancel({"id": item, "force": True})
    assert caught.value.code == "queue.not_found"


@pytest.mark.parametrize("back", ["add", "edit", "retry"])
def test_B6_a_cancel_is_taken_back(
    sign_in: MakeUser, directory: DirectoryFixtures, back: str
) -> None:
    # Given a cancelled item that did not reach the server
    user = sign_in()
    app = user.app
    app.go_offline()
    item = add(app, minutes=5)
    [exported] = app.queue_export()["items"]
    directory.control.drop_before(UPLOADS["table"], method="POST", times=1)
    app.go_online()
    app.settle()
    assert app.queue_cancel({"id": item})["state"] == "pending"
    # When the user wants it after all
    if back == "add":
        app.queue_add(exported)  # type: ignore[arg-type]
    elif back == "edit":
        app.queue_edit({"id": item, "payload": {"type": "visit", "minutes": 6}})
    else:
        assert app.queue_retry({"id": item})["retried"] == 1
    # Then it is sent
    assert drain(app)["sent"] == 1
    assert stored(directory, user.person) == [item]


def test_B6_cancelling_a_refused_edit_of_a_stored_item_asks_the_server_first(
    sign_in: MakeUser, directory: DirectoryFixtures
) -> None:
    # Given an item that the server has, and an edit of it that the server refused
    user = sign_in()
    app = user.app
    app.go_offline()
    item = add(app)
    lost_answer(user, directory, item)
    app.queue_edit({"id": item, "payload": {"type": "visit", "minutes": BAD_MINUTES}})
    user.phone.pass_time(60)
    app.go_online()
    drain(app)
    assert code_of(app, item) == "server_rule"
    # When the user cancels it, then the stored row does not go unnoticed
    assert app.queue_cancel({"id": item})["state"] == "pending"
    app.settle()
    assert code_of(app, item) == "unknown_outcome"
