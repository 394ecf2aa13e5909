"""Items that the server may have: an edit or a cancel meets what is stored (findings B5 and B6)."""

from __future__ import annotations

from typing import Any

import pytest
from holdfast.transport import Answer
from holdfast.types import HttpRequest

from conftest import MakeUser, SignedIn
from support.directory_fixtures import DirectoryFixtures
from support.queue import BOTH, EMPTY, UPLOADS, add, code_of, drain, user_of


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


@BOTH
def test_B5_an_answer_with_too_few_rows_and_a_refused_read_back_is_an_attempt(
    sign_in: MakeUser, directory: DirectoryFixtures, upload: str
) -> None:
    # Given an item that the server stored and did not name
    if upload == "rpc":
        pytest.skip("a function's answer names each row; a row without a result is an attempt")
    user = user_of(sign_in, upload)
    app = user.app
    app.go_offline()
    item = add(app, minutes=30)
    directory.control.truncate_rows(UPLOADS[upload], keep=0, method="POST")
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
