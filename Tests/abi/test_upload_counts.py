"""What uploads count: faults in a row, tries of an item, and items that wait for others."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from holdfast.transport import Answer
from holdfast.types import HttpRequest

from support.directory_fixtures import DirectoryFixtures
from support.queue import EMPTY, activity, add, code_of, item_of, new_ids, stored
from support.refusals import (
    HOUR_S,
    WORDS,
    coded,
    has_words,
    is_store,
    items_in,
    live,
    page,
    patient,
)
from support.users import MakeUser, SignedIn

#: The service asks all uploads for a pause.
BUSY: Answer = {
    "status": 503,
    "headers": {"content-type": "application/json", "retry-after": "5"},
    "body": '{"code":"PGRST001","message":"no"}',
}


class Script:
    """Gives the next uploads these answers, and then lets them through."""

    def __init__(
        self, user: SignedIn, answers: list[Answer], meets: Callable[[HttpRequest], bool] = is_store
    ) -> None:
        self.answers = answers
        self.meets = meets
        self.met = 0
        user.phone.network.instead.append(self)

    def __call__(self, request: HttpRequest) -> Answer | None:
        if not self.meets(request) or self.met >= len(self.answers):
            return None
        self.met += 1
        return self.answers[self.met - 1]


def is_question(request: HttpRequest) -> bool:
    """Whether the request asks which items the server has."""
    return request["purpose"] == "upload" and request["method"] == "GET"


# Answers "too large" ------------------------------------------------------------------------------


@pytest.mark.parametrize("in_a_row", [1, 2])
@pytest.mark.parametrize("answer", [page(413), coded(413, "PT413"), coded(500, "57014")])
def test_TST_1_answers_too_large_that_are_not_in_a_row_make_no_upload_smaller(
    sign_in: MakeUser, directory: DirectoryFixtures, answer: Answer, in_a_row: int
) -> None:
    user = patient(sign_in)
    app = user.app
    ids: list[str] = []
    for _ in range(6):
        app.go_offline()
        ids += [add(app) for _ in range(4)]
        script = Script(user, [answer] * in_a_row)
        app.go_online()
        live(user, HOUR_S, lambda ids=ids: stored(directory, user.person) == sorted(ids))
        assert script.met == in_a_row
        assert stored(directory, user.person) == sorted(ids)
    app.go_offline()
    for _ in range(40):
        add(app)
    user.phone.network.forget()
    app.reconnect()
    assert [items_in(request) for request in user.phone.network.sent if is_store(request)] == [40]


# Refused on the way -------------------------------------------------------------------------------


def refusals_until_parked(user: SignedIn, between: list[Answer]) -> int:
    """How often a firewall refuses an item, beside others that are stored, until it is parked.

    After its fourth refusal its next uploads get these answers.
    """
    app = user.app
    refused = 0
    others = list(between)

    def firewall(request: HttpRequest) -> Answer | None:
        nonlocal refused
        if not (is_store(request) and has_words(request)):
            return None
        if refused >= 4 and others:
            return others.pop(0)
        refused += 1
        return page(403)

    user.phone.network.instead.append(firewall)
    add(app)
    app.settle()
    bad = add(app, note=WORDS)
    for _ in range(150):
        live(user, 1_200)
        add(app)
        if app.of_type("item_parked"):
            break
    assert not others
    assert code_of(app, bad) == "blocked"
    return refused


@pytest.mark.parametrize(
    "between",
    [
        [coded(500, "XX000")],
        [coded(500, "40001")] * 2,
        [coded(400, "PGRST204")],
        [page(503)] * 2,
        [BUSY] * 2,
    ],
    ids=["defect", "conflict", "schema", "gateway", "busy"],
)
def test_TST_3_a_count_towards_parking_outlives_another_fault(
    sign_in: MakeUser, between: list[Answer]
) -> None:
    refused = refusals_until_parked(patient(sign_in), between)
    assert refused <= 9, refused


def test_TST_3_refusals_alone_park_an_item_after_as_many(sign_in: MakeUser) -> None:
    assert refusals_until_parked(patient(sign_in), []) in (7, 8, 9)


@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize("times", [1, 2])
def test_TST_4_an_item_whose_question_is_answered_401_is_charged(
    sign_in: MakeUser, directory: DirectoryFixtures, times: int, count: int
) -> None:
    user = patient(sign_in)
    app, network = user.app, user.phone.network
    app.go_offline()
    ids = [add(app) for _ in range(count)]

    def refused(request: HttpRequest) -> Answer | None:
        if not is_store(request):
            return None
        network._http(request)
        return page(403)

    network.instead.append(refused)
    script = Script(user, [coded(401, "PGRST301")] * times, is_question)
    network.instead.append(
        lambda request: (
            {"error": "timeout"}
            if script.met >= times and request["purpose"] in ("refresh", "upload")
            else None
        )
    )
    app.reconnect()
    assert script.met == times
    assert [item_of(app, item)["attempts"] > 0 for item in ids] == [True] * count
    assert app.queue_cancel({"id": ids[0]})["state"] is not None
    network.instead.clear()
    live(user, HOUR_S, lambda: code_of(app, ids[0]) == "unknown_outcome")
    assert code_of(app, ids[0]) == "unknown_outcome"
    assert stored(directory, user.person) == sorted(ids)


def test_TST_4_an_item_whose_token_the_service_refuses_is_not_charged(sign_in: MakeUser) -> None:
    """The service looks at the token first: the item is not stored."""
    user = patient(sign_in)
    app = user.offline()
    item = add(app)
    asked = 0

    def refuses(request: HttpRequest) -> Answer | None:
        nonlocal asked
        if request["purpose"] != "upload":
            return None
        asked += is_question(request)
        return coded(401, "PGRST301")

    user.phone.network.instead.append(refuses)
    app.go_online()
    live(user, 600)
    assert asked > 0
    assert item_of(app, item)["attempts"] == 0
    assert app.queue_cancel({"id": item})["state"] is None


# Cancelled ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("link", ["one", "chain"])
@pytest.mark.parametrize("question", ["answered", "lost", "refused"])
def test_TST_5_a_cancel_that_the_server_confirms_releases_what_depends_on_the_item(
    sign_in: MakeUser, directory: DirectoryFixtures, link: str, question: str
) -> None:
    user = patient(sign_in)
    app, network = user.app, user.phone.network
    parent, child, grandchild = new_ids(3)
    time = {"occurred_at_ms": user.phone.now_ms}
    app.go_offline()
    app.queue_add({**activity(parent), **time})
    app.queue_add({**activity(child), **time, "depends_on": [parent]})
    children = [child]
    if link == "chain":
        app.queue_add({**activity(grandchild), **time, "depends_on": [parent, child]})
        children.append(grandchild)
    Script(user, [{"error": "timeout"}])
    network.up = True
    app.network_report({"online": True})
    app.settle()
    assert [item_of(app, item)["state"] for item in children] == ["waiting"] * len(children)
    assert app.queue_cancel({"id": parent})["released"] == 0
    first: list[Answer] = {
        "answered": [],
        "lost": [{"error": "timeout"}],
        "refused": [page(403), page(403)],
    }[question]
    script = Script(user, first, is_question)
    live(user, 3 * HOUR_S, lambda: stored(directory, user.person) == sorted(children))
    assert script.met == len(first)
    assert stored(directory, user.person) == sorted(children)
    assert app.queue_get({"id": parent})["state"] == "cancelled"
    assert app.queue_list()["counts"] == EMPTY
    assert app.of_type("item_parked") == []
