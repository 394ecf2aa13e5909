"""What became of an item: its fate as told, and items that the server may have."""

from __future__ import annotations

import uuid
from typing import Any

import pytest
from holdfast import HoldfastError
from holdfast.transport import Answer
from holdfast.types import HttpRequest
from patience import eventually

from support.directory_fixtures import DirectoryFixtures
from support.errors import error_of
from support.held import answer, taken
from support.queue import (
    BAD_MINUTES,
    BOTH,
    EMPTY,
    UPLOADS,
    add,
    ask_until_believed,
    code_of,
    drain,
    edit,
    in_doubt,
    item_of,
    new_ids,
    only_the_user_can_tell,
    stored,
    user_of,
)
from support.refusals import coded, is_store
from support.sizes import crossed, sampled
from support.users import MakeUser, SignedIn
from support.workers import finish_worker, start_worker

# The fate of an item ------------------------------------------------------------------------------


DAY_S = 86_400


def fate(app: Any, item: str) -> str:  # noqa: ANN401
    """The state that queue_get tells; "unknown" for an item that it does not know."""
    try:
        return str(app.queue_get({"id": item})["state"])
    except HoldfastError as error:
        assert (error.code, error.field, error.status) == ("queue.not_found", "/id", 3)
        return "unknown"


def store(user: SignedIn) -> str:
    """Add an item, and let the server store it."""
    item = add(user.app)
    drain(user.app)
    assert fate(user.app, item) == "stored"
    return item


@pytest.mark.parametrize("restarted", [False, True])
def test_HST_6_stored_cancelled_and_unknown_items_have_three_answers(
    sign_in: MakeUser, restarted: bool
) -> None:
    user = sign_in(policy={"biometric": "off"})
    app = user.app
    before = user.phone.now_ms
    sent = store(user)
    app.go_offline()
    cancelled, waits = add(app), add(app)
    app.queue_cancel({"id": cancelled})
    after = user.phone.now_ms
    if restarted:
        app = user.restart(online=False)
    first = app.queue_get({"id": sent})
    assert first == {"state": "stored", "stored_ms": first["stored_ms"]}
    assert before - 1000 <= first["stored_ms"] <= after + 1000
    second = app.queue_get({"id": cancelled})
    assert second == {"state": "cancelled", "cancelled_ms": second["cancelled_ms"]}
    assert before - 1000 <= second["cancelled_ms"] <= after + 1000
    third = app.queue_get({"id": waits})
    assert (third["state"], third["item"]["id"]) == ("pending", waits)
    assert set(third) == {"state", "item"}
    assert fate(app, str(uuid.uuid4())) == "unknown"
    for item, said in ((sent, "stored"), (cancelled, "cancelled")):
        with pytest.raises(HoldfastError, match=said) as caught:
            app.queue_edit({"id": item, "payload": {"type": "call", "minutes": 1}})
        assert caught.value.code == "queue.not_found"


def test_HST_6_an_item_that_is_cancelled_after_the_server_was_asked_is_known(
    user: SignedIn, directory: DirectoryFixtures
) -> None:
    user.phone.network.up = False
    item = add(user.app)
    user.app.settle()
    assert user.app.queue_cancel({"id": item})["state"] is not None
    assert fate(user.app, item) in {"pending", "waiting"}
    user.phone.network.up = True
    user.app.go_online()
    ask_until_believed(user.app)
    assert fate(user.app, item) == "cancelled"
    assert stored(directory, user.person) == []


def test_HST_6_an_item_that_is_added_again_is_queued(user: SignedIn) -> None:
    user.app.go_offline()
    [item] = new_ids(1)
    add(user.app, item)
    user.app.queue_cancel({"id": item})
    assert fate(user.app, item) == "cancelled"
    add(user.app, item)
    assert fate(user.app, item) == "pending"
    user.app.go_online()
    drain(user.app)
    assert fate(user.app, item) == "stored"


def test_HST_6_the_memory_is_bounded_by_a_number(sign_in: MakeUser) -> None:
    user = sign_in(policy={"stored_items": 3})
    items = [store(user) for _ in range(2)]
    user.app.go_offline()
    items += [add(user.app) for _ in range(2)]
    for item in items[2:]:
        user.app.queue_cancel({"id": item})
    assert [fate(user.app, item) for item in items] == ["unknown", "stored"] + ["cancelled"] * 2


def test_HST_6_the_memory_is_bounded_by_a_time(sign_in: MakeUser) -> None:
    user = sign_in(policy={"stored_items_s": 3600, "session_window_s": 10 * DAY_S})
    item = store(user)
    user.phone.pass_time(3500)
    assert fate(user.app, item) == "stored"
    user.phone.pass_time(200)
    assert fate(user.app, item) == "unknown"


def test_HST_6_a_clock_that_is_set_forward_empties_no_memory(sign_in: MakeUser) -> None:
    user = sign_in(policy={"session_window_s": 1000 * DAY_S, "offline_limit_s": 1000 * DAY_S})
    ahead = user.phone.ahead_ms()
    user.phone.network.ahead_ms = lambda: ahead
    item = store(user)
    user.phone.set_wall_clock(400 * DAY_S)
    user.app.go_offline()
    user.app.queue_cancel({"id": add(user.app)})
    user.app.reconnect()
    other = store(user)
    reply = user.app.queue_get({"id": item})
    assert reply["state"] == "stored"
    later = user.app.queue_get({"id": other})
    assert abs(later["stored_ms"] - reply["stored_ms"]) < 3_600_000


def test_HST_6_another_user_learns_nothing(user: SignedIn, directory: DirectoryFixtures) -> None:
    item = store(user)
    user.app.session_logout()
    user.app.sign_in(directory.person(user.org))
    assert fate(user.app, item) == "unknown"


@pytest.mark.parametrize("restarted", [False, True])
@pytest.mark.parametrize("how", ["twice", "by force", "after a refused edit"])
def test_HST_6_a_cancelled_item_that_the_server_may_have_is_no_cancelled_one(
    sign_in: MakeUser, directory: DirectoryFixtures, how: str, restarted: bool
) -> None:
    user = sign_in(policy={"biometric": "off"})
    app = user.app
    item = in_doubt(user, directory)
    if how != "by force":
        edit(app, item, 45 if how == "twice" else BAD_MINUTES)
        user.phone.pass_time(60)
        app.go_online()
        drain(app)
        assert code_of(app, item) == ("unknown_outcome" if how == "twice" else "server_rule")
    app.queue_cancel({"id": item, "force": how != "twice"})
    if restarted:
        app = user.restart(online=False)
    assert app.queue_list()["items"] == []
    reply = app.queue_get({"id": item})
    assert reply == {"state": "unknown_outcome", "cancelled_ms": reply["cancelled_ms"]}
    with pytest.raises(HoldfastError, match="the server may have stored it") as caught:
        app.queue_cancel({"id": item})
    assert (caught.value.code, caught.value.field) == ("queue.not_found", "/id")


def test_HST_6_an_item_that_the_server_refused_is_cancelled(user: SignedIn) -> None:
    item = add(user.app, minutes=BAD_MINUTES)
    drain(user.app)
    user.app.queue_cancel({"id": item})
    assert fate(user.app, item) == "cancelled"


# Items that the server may have -------------------------------------------------------------------


def is_read_back(request: HttpRequest) -> bool:
    """Whether the request asks which items are stored."""
    return request["purpose"] == "upload" and request["method"] == "GET"


def stop_at_the_read_back(user: SignedIn, instead: Answer) -> None:
    """The next read-back gets this answer, and nothing after it gets through."""
    network = user.phone.network

    def stop(request: HttpRequest, given: Answer) -> Answer:
        if not is_read_back(request):
            return given
        network.alter.remove(stop)
        user.app.go_offline()
        return instead

    network.alter.append(stop)


def test_a_read_back_that_another_session_may_not_send_is_an_attempt(
    user: SignedIn, directory: DirectoryFixtures
) -> None:
    app = user.offline()
    item = add(app, minutes=30)
    directory.control.truncate_rows(UPLOADS["table"], keep=0, method="POST")
    app.go_online()
    # and a lock while the upload is under way, so that its session is another one
    flying = taken(user, "upload")
    app.session_lock()
    answer(app, flying)
    app.go_offline()
    app.touch()
    edit(app, item, 45)
    app.go_online()
    only_the_user_can_tell(app, item)
    assert [row["minutes"] for row in directory.activities(user.person)] == [30]


def test_an_item_that_is_not_visible_before_the_memberships_are_known_is_an_attempt(
    user: SignedIn, directory: DirectoryFixtures
) -> None:
    app = user.offline()
    item = add(app, minutes=30)
    directory.control.truncate_rows(UPLOADS["table"], keep=0, method="POST")
    read_backs: list[HttpRequest] = []

    def nothing(request: HttpRequest) -> Answer | None:
        if not is_read_back(request):
            return None
        read_backs.append(request)
        headers = {"content-type": "application/json"}
        return {"status": 200, "headers": headers, "body": "[]"}

    user.phone.network.instead += [
        nothing,
        lambda request: {"error": "offline"} if request["purpose"] == "guard" else None,
    ]
    app.go_online()
    app.settle()
    assert len(read_backs) == 1
    user.phone.network.instead.clear()
    assert app.queue_list()["counts"] == {**EMPTY, "waiting": 1}
    edit(app, item, 45)
    only_the_user_can_tell(app, item)
    assert [row["minutes"] for row in directory.activities(user.person)] == [30]


@pytest.mark.parametrize("restarted", [False, True])
def test_ATK_12_a_cancel_after_a_lost_answer_asks_the_server_first(
    sign_in: MakeUser, directory: DirectoryFixtures, restarted: bool
) -> None:
    user = sign_in(policy={"biometric": "off"})
    item = in_doubt(user, directory)
    for _ in range(2):
        reply = user.app.queue_cancel({"id": item})
        assert reply == {"id": item, "released": 0, "state": "pending"}
    assert code_of(user.app, item) == "unknown_outcome"
    if restarted:
        user.restart(online=False)
    app = user.app
    user.phone.pass_time(60)
    app.go_online()
    only_the_user_can_tell(app, item)
    [event] = app.of_type("item_parked")
    assert (event["id"], event["reason"]) == (item, "unknown_outcome")
    assert app.queue_cancel({"id": item})["state"] is None
    assert app.queue_list()["counts"] == EMPTY
    assert stored(directory, user.person) == [item]


#: Successes that say nothing about the items.
WITHOUT_A_BODY: dict[str, Answer] = {
    "204": {"status": 204, "headers": {}},
    "201": {"status": 201, "headers": {}, "body": ""},
    "200": {"status": 200, "headers": {"content-type": "application/json"}, "body": ""},
}


@pytest.mark.parametrize("count", [1, 3])
@pytest.mark.parametrize("form", WITHOUT_A_BODY)
@BOTH
def test_a_success_without_a_body_is_read_back_and_not_sent_again(
    sign_in: MakeUser, directory: DirectoryFixtures, upload: str, form: str, count: int
) -> None:
    user = user_of(sign_in, upload)
    app, network = user.app, user.phone.network
    network.alter.append(lambda request, real: WITHOUT_A_BODY[form] if is_store(request) else real)
    app.go_offline()
    ids = [add(app) for _ in range(count)]
    network.forget()
    app.go_online()
    done = drain(app)
    assert (done["sent"], done["parked"], done["waiting"]) == (count, 0, 0)
    assert stored(directory, user.person) == sorted(ids)
    assert app.queue_list()["counts"] == EMPTY
    assert len([request for request in network.sent if is_store(request)]) == 1
    assert len([request for request in network.sent if is_read_back(request)]) == 1


@pytest.mark.parametrize("form", WITHOUT_A_BODY)
@BOTH
def test_an_item_that_a_success_without_a_body_has_not_stored_is_sent_again(
    sign_in: MakeUser, directory: DirectoryFixtures, upload: str, form: str
) -> None:
    user = user_of(sign_in, upload)
    app, network = user.app, user.phone.network
    answers = [WITHOUT_A_BODY[form]] * 2
    network.instead.append(lambda request: answers.pop() if answers and is_store(request) else None)
    item = add(app)
    app.settle()
    assert item_of(app, item)["attempts"] > 0
    assert app.of_type("item_parked") == []
    done = drain(app)
    assert (done["sent"], done["parked"], done["waiting"]) == (1, 0, 0)
    assert stored(directory, user.person) == [item]


@pytest.mark.parametrize("wish", ["edit", "cancel"])
@pytest.mark.parametrize("trouble", ["lost", "too short", "followed by 401"])
def test_ATK_12_a_wish_after_a_doubtful_answer_is_neither_lost_nor_stored_in_silence(
    user: SignedIn, directory: DirectoryFixtures, trouble: str, wish: str
) -> None:
    app = user.app
    if trouble == "lost":
        item = in_doubt(user, directory, minutes=30)
    else:
        app.go_offline()
        item = add(app, minutes=30)
        directory.control.truncate_rows(UPLOADS["table"], keep=0, method="POST")
        unread: Answer = {"error": "timeout"}
        stop_at_the_read_back(user, coded(401, "PGRST301") if "401" in trouble else unread)
        app.reconnect()
    assert stored(directory, user.person) == [item]
    if wish == "edit":
        edit(app, item, 45)
    else:
        assert app.queue_cancel({"id": item})["state"] == "pending"
    app.go_online()
    only_the_user_can_tell(app, item)
    # What its user wrote is there.
    [left] = app.queue_list()["items"]
    assert left["payload"]["minutes"] == (45 if wish == "edit" else 30)
    assert [row["minutes"] for row in directory.activities(user.person)] == [30]


@pytest.mark.parametrize(
    ("code", "wish"),
    crossed(
        ["57014", "XX000", "PGRST204", "42P01"],
        ["edit", "cancel"],
        fast=lambda code, wish: (wish == "edit") == (code in ("57014", "PGRST204")),
    ),
)
def test_ATK_12_a_batch_that_is_split_after_a_doubtful_answer_may_be_stored(
    user: SignedIn, directory: DirectoryFixtures, code: str, wish: str
) -> None:
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
        return coded(500, code)

    network.alter.append(lie)
    app.reconnect()
    assert set(stored(directory, user.person)) > {item, *others}
    if wish == "edit":
        edit(app, item, 45)
    else:
        assert app.queue_cancel({"id": item})["state"] == "pending"
    user.phone.pass_time(600)
    app.go_online()
    done = drain(app)
    # That item is parked, since only the user can tell; the others are stored.
    assert (done["sent"], done["parked"]) == (3, 1)
    assert code_of(app, item) == "unknown_outcome"
    assert 45 not in [row["minutes"] for row in directory.activities(user.person)]


def test_ATK_12_a_cancelled_item_that_the_server_does_not_have_goes(
    user: SignedIn, directory: DirectoryFixtures
) -> None:
    app = user.app
    item = in_doubt(user, directory, arrives=False)
    child, other = add(app, depends_on=[item]), add(app)
    assert app.queue_cancel({"id": item})["state"] == "pending"
    app.go_online()
    drain(app)
    app.settle()
    assert stored(directory, user.person) == sorted([child, other])
    assert app.queue_list()["counts"] == EMPTY
    assert app.of_type("item_parked") == []


def test_ATK_12_a_forced_cancel_removes_the_item_at_once(
    user: SignedIn, directory: DirectoryFixtures
) -> None:
    item = in_doubt(user, directory)
    assert user.app.queue_cancel({"id": item})["state"] == "pending"
    assert user.app.queue_cancel({"id": item, "force": True})["state"] is None
    assert error_of(user.app.queue_cancel, {"id": item, "force": True}).code == "queue.not_found"


@pytest.mark.parametrize("back", ["add", "edit", "retry"])
def test_ATK_12_a_cancel_is_taken_back(
    user: SignedIn, directory: DirectoryFixtures, back: str
) -> None:
    app = user.app
    item = in_doubt(user, directory, arrives=False)
    [exported] = app.queue_export()["items"]
    assert app.queue_cancel({"id": item})["state"] == "pending"
    if back == "add":
        app.queue_add(exported)  # type: ignore[arg-type]
    elif back == "edit":
        edit(app, item, 6)
    else:
        assert app.queue_retry({"id": item})["retried"] == 1
    app.go_online()
    assert drain(app)["sent"] == 1
    assert stored(directory, user.person) == [item]


@pytest.mark.parametrize("question", [1, 2])
def test_ATK_12_an_item_that_is_added_again_while_the_server_is_asked_is_sent(
    user: SignedIn, directory: DirectoryFixtures, question: int
) -> None:
    app = user.app
    item = in_doubt(user, directory, arrives=False)
    [exported] = app.queue_export()["items"]
    app.queue_cancel({"id": item})
    asked: list[str] = []

    def add_again(request: HttpRequest, answer: Answer) -> Answer:
        if request["purpose"] == "upload" and request["method"] == "GET":
            asked.append(request["url"])
            if len(asked) == question:
                app.queue_add(exported)  # type: ignore[arg-type]
        return answer

    user.phone.network.alter.append(add_again)
    app.go_online()
    drain(app)
    assert len(asked) >= question
    assert stored(directory, user.person) == [item]
    assert app.queue_get({"id": item})["state"] == "stored"


def test_ATK_12_cancelling_a_refused_edit_of_a_stored_item_asks_the_server_first(
    user: SignedIn, directory: DirectoryFixtures
) -> None:
    app = user.app
    item = in_doubt(user, directory)
    edit(app, item, BAD_MINUTES)
    user.phone.pass_time(60)
    app.go_online()
    drain(app)
    assert code_of(app, item) == "server_rule"
    assert app.queue_cancel({"id": item})["state"] == "pending"
    app.settle()
    assert code_of(app, item) == "unknown_outcome"


@BOTH
@pytest.mark.parametrize("end", sampled(["killed", "closed"], 2))
def test_an_upload_whose_process_ended_counts_as_an_attempt(
    sign_in: MakeUser, directory: DirectoryFixtures, upload: str, end: str
) -> None:
    user = user_of(sign_in, upload)
    item = add(user.offline(), minutes=30)
    if end == "killed":
        user.phone.close()
        directory.control.delay(UPLOADS[upload], after_ms=60_000, method="POST")
        worker = start_worker(user.phone, 0, 1)
        eventually(lambda: stored(directory, user.person), what="the item is stored")
        assert worker.poll() is None
        worker.kill()
        finish_worker(worker)
        directory.control.clear_faults()
    else:
        user.app.go_online()
        user.phone.network(taken(user, "upload"))
        user.phone.close()
    assert stored(directory, user.person) == [item]
    app = user.restart(online=False)
    assert item_of(app, item)["attempts"] == 1
    edit(app, item, 45)
    app.go_online()
    only_the_user_can_tell(app, item)
    assert [row["minutes"] for row in directory.activities(user.person)] == [30]
