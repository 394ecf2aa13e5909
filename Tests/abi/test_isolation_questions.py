"""An item about which the server does not answer delays no other (issue 14: one bad item).

The library asks the server whether it has an item: one that its user cancelled, or that an answer
did not name. The question can be refused for good: nobody may read the table, the schema has no
such table, or a firewall does not like the request.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from holdfast.transport import Answer
from holdfast.types import HttpRequest

from support.directory_fixtures import DirectoryFixtures
from support.errors import error_of
from support.own_rows import COLUMNS
from support.queue import EMPTY, RPC, UPLOADS, add, code_of, in_doubt, item_of, stored
from support.refusals import HOUR_S, REFUSALS, Firewall, coded, live
from support.sizes import crossed, sized
from support.users import MakeUser, SignedIn

#: How long items of both kinds are added every hour: at least until one that is refused is parked.
HOURS = sized(14, 24)
#: Two kinds. The first one's items are uploaded to the table or through the function.
KINDS: dict[str, Any] = {
    upload: {
        "queue": {
            "activity": RPC["queue"]["activity"]
            if upload == "rpc"
            else {"table": "activities", "columns": COLUMNS},
            "visit": {"table": "activities", "columns": COLUMNS},
        }
    }
    for upload in UPLOADS
}


#: The service's own refusals.
OWN: dict[str, Answer] = {
    "no right": coded(403, "42501", "permission denied for table activities"),
    "a policy": coded(403, "42501", "a policy refuses it"),
    "no table": coded(404, "PGRST205"),
    "a defect": coded(500, "XX000"),
}
#: Those of a firewall that refuses the requests with this id.
OTHERS: dict[str, Answer] = {name: REFUSALS[name] for name in ("html", "json", "unauthorized")}
REFUSED = {**OWN, **OTHERS}


def asks_about(item: str) -> Callable[[HttpRequest], bool]:
    """Whether the request asks for this item."""
    return lambda request: (
        (request["purpose"], request["method"]) == ("upload", "GET") and item in request["url"]
    )


def refuse(user: SignedIn, answer: Answer, meets: Callable[[HttpRequest], bool]) -> Firewall:
    """These requests get this answer."""
    wall = Firewall(user, "html", meets)
    wall.answer = answer
    return wall


def of_kinds(sign_in: MakeUser, upload: str) -> SignedIn:
    """A user of an app with two kinds, which rarely pulls."""
    return sign_in(tables=KINDS[upload], policy={"pull_interval_s": 6 * HOUR_S})


def add_visit(user: SignedIn) -> str:
    """Add an item of the other kind."""
    request: Any = {
        "kind": "visit",
        "payload": {"type": "visit", "minutes": 5},
        "occurred_at_ms": user.phone.now_ms,
    }
    return str(user.app.queue_add(request)["id"])


def day_of_others(user: SignedIn, directory: DirectoryFixtures) -> list[float]:
    """Items of both kinds are added every hour; how long each pair took to be stored."""
    waits: list[float] = []
    for _ in range(HOURS):
        live(user, HOUR_S - 177)
        at = user.phone.now_ms
        pair = {add(user.app), add_visit(user)}
        live(user, HOUR_S, lambda pair=pair: pair <= set(stored(directory, user.person)))
        waits.append((user.phone.now_ms - at) / 1000)
    return waits


@pytest.mark.parametrize(
    ("refusal", "upload"),
    crossed(
        REFUSED,
        UPLOADS,
        fast=lambda *case: (
            case in [("no table", "table"), ("html", "rpc"), ("unauthorized", "table")]
        ),
    ),
)
def test_a_cancelled_item_whose_question_is_refused_for_good_delays_no_other(
    sign_in: MakeUser, directory: DirectoryFixtures, refusal: str, upload: str
) -> None:
    user = of_kinds(sign_in, upload)
    app = user.app
    item = in_doubt(user, directory, upload)
    assert app.queue_cancel({"id": item})["state"] == "pending"
    others = [add(app), add_visit(user), add(app)]
    wall = refuse(user, REFUSED[refusal], asks_about(item))
    app.go_online()
    took = live(user, HOUR_S, lambda: set(others) <= set(stored(directory, user.person)))
    assert took < 10
    live(user, 60)
    assert code_of(app, item) == "waiting_blocked"
    [why] = app.queue_explain()["reasons"]
    assert (why["code"], why["count"]) == ("waiting_blocked", 1)
    assert why["until_ms"] == item_of(app, item)["not_before_ms"] > user.phone.now_ms
    assert app.sync_status()["not_before_ms"] is None
    # Later items are stored at once for a day
    waits = day_of_others(user, directory)
    assert max(waits) < 10, waits
    # The requests are few, and the item is parked at last: its user decides
    # (a token that is refused is refreshed first, so each try takes two requests)
    assert 5 <= len(wall.refused) <= (60 if refusal == "unauthorized" else 30)
    assert code_of(app, item) == "unknown_outcome"
    assert app.queue_list()["counts"] == {**EMPTY, "parked": 1}
    [event] = app.of_type("item_parked")
    assert (event["id"], event["reason"]) == (item, "unknown_outcome")
    # Cancelled again, it goes, and its fate says what is known
    assert app.queue_cancel({"id": item})["state"] is None
    assert app.queue_get({"id": item})["state"] == "unknown_outcome"
    count = len(wall.refused)
    live(user, 24 * HOUR_S)
    assert len(wall.refused) == count


@pytest.mark.parametrize(
    "refusal", crossed(OWN, fast=lambda refusal: refusal in ("no right", "a defect"))
)
def test_a_question_that_is_refused_for_good_is_asked_ever_more_rarely(
    sign_in: MakeUser, directory: DirectoryFixtures, refusal: str
) -> None:
    user = of_kinds(sign_in, "table")
    app = user.app
    item = in_doubt(user, directory)
    app.queue_cancel({"id": item})
    wall = refuse(user, REFUSED[refusal], asks_about(item))
    app.go_online()
    counts: list[int] = []
    for _ in range(4):
        before = len(wall.refused)
        live(user, 3 * HOUR_S)
        counts.append(len(wall.refused) - before)
    assert counts[0] > counts[-1]
    assert sum(counts) <= 30
    other = add(app)
    assert live(user, HOUR_S, lambda: other in stored(directory, user.person)) < 5
    # Once the server answers, the user sees that it has the item
    wall.end()
    live(user, 12 * HOUR_S)
    assert code_of(app, item) == "unknown_outcome"
    assert app.queue_list()["counts"] == {**EMPTY, "parked": 1}


def test_a_cancelled_item_goes_when_the_server_answers_at_last(
    sign_in: MakeUser, directory: DirectoryFixtures
) -> None:
    user = of_kinds(sign_in, "table")
    app = user.app
    item = in_doubt(user, directory, arrives=False)
    app.go_online()
    app.queue_cancel({"id": item})
    wall = refuse(user, OWN["no table"], asks_about(item))
    live(user, HOUR_S)
    assert code_of(app, item) == "waiting_blocked"
    wall.end()
    live(user, 2 * HOUR_S)
    assert app.queue_list()["counts"] == EMPTY
    assert app.of_type("item_parked") == []
    assert app.queue_get({"id": item})["state"] == "cancelled"


@pytest.mark.parametrize("refusal", crossed(OWN, fast=lambda refusal: refusal == "a policy"))
def test_items_that_no_answer_names_and_whose_question_is_refused_delay_no_other(
    sign_in: MakeUser, directory: DirectoryFixtures, refusal: str
) -> None:
    user = of_kinds(sign_in, "table")
    app = user.offline()
    items = [add(app) for _ in range(3)]
    directory.control.drop_after(UPLOADS["table"], method="POST", times=1)
    app.reconnect()
    assert stored(directory, user.person) == sorted(items)
    wall = refuse(user, REFUSED[refusal], lambda get: any(asks_about(one)(get) for one in items))
    waits = day_of_others(user, directory)
    assert max(waits) < 10, waits
    # The requests are few, and nothing is lost: the user decides
    assert len(wall.refused) <= 3 * 30
    assert [code_of(app, one) for one in items] == ["unknown_outcome"] * 3
    assert app.queue_list()["counts"] == {**EMPTY, "parked": 3}


@pytest.mark.parametrize(
    "form", crossed(REFUSALS, fast=lambda form: form in ("json", "unauthorized"))
)
def test_a_portal_parks_no_cancelled_item(
    sign_in: MakeUser, directory: DirectoryFixtures, form: str
) -> None:
    user = of_kinds(sign_in, "table")
    app = user.app
    item = in_doubt(user, directory, arrives=False)
    app.go_online()
    app.queue_cancel({"id": item})
    other = add_visit(user)
    portal = Firewall(user, form, lambda request: "/rest/v1/" in request["url"])
    live(user, sized(5, 24) * HOUR_S)
    assert app.of_type("item_parked") == []
    portal.end()
    took = live(user, HOUR_S, lambda: app.queue_list()["counts"] == EMPTY)
    # The portal's pause, and those between the eight questions after which the item counts as gone:
    # at most 300 s each, because its attempts from before the portal's end lengthen them.
    assert took <= 8 * 300
    assert stored(directory, user.person) == [other]
    assert error_of(app.queue_cancel, {"id": item}).code == "queue.not_found"


@pytest.mark.parametrize(
    ("form", "upload"),
    crossed(
        REFUSALS, UPLOADS, fast=lambda *case: case in [("html", "table"), ("unauthorized", "rpc")]
    ),
)
def test_a_lone_item_that_a_firewall_neither_takes_nor_answers_for_delays_no_later_one(
    sign_in: MakeUser, directory: DirectoryFixtures, form: str, upload: str
) -> None:
    user = of_kinds(sign_in, upload)
    item = add(user.app)
    wall = Firewall(user, form, lambda request: item in request["url"] + (request["body"] or ""))
    live(user, 1800)
    assert code_of(user.app, item) == "waiting_blocked"
    for _ in range(6):
        live(user, 1234)
        other = add(user.app)
        took = live(user, HOUR_S, lambda other=other: other in stored(directory, user.person))
        assert took < 10
    live(user, 12 * HOUR_S)
    assert code_of(user.app, item) == "blocked"
    assert len(wall.refused) <= 60
    wall.end()
    user.app.queue_retry({"id": item})
    live(user, 60)
    assert item in stored(directory, user.person)
    assert user.app.queue_list()["counts"] == EMPTY
