"""An item whose upload fails as if all uploads did delays no other."""

from __future__ import annotations

import json
import math
import random
from typing import Any

import pytest
from holdfast.transport import Answer

from support.directory_fixtures import DirectoryFixtures
from support.held import unlock
from support.queue import BOTH, EMPTY, UPLOADS, add, add_offline, code_of, item_of, stored
from support.refusals import HOUR_S, Fault, coded, holding, is_store, items_in, live, page, patient
from support.sizes import crossed, sampled, sized
from support.users import MakeUser, SignedIn

#: The service answers, and refuses the whole request with a code that blames no item.
OWN: dict[str, Answer] = {
    "57014": coded(500, "57014"),
    "XX000": coded(500, "XX000"),
    "PGRST204": coded(400, "PGRST204"),
    "42P01": coded(404, "42P01"),
    "40001": coded(500, "40001"),
    "PGRST001": coded(503, "PGRST001"),
}
JSON = {"content-type": "application/json"}
#: Something else answers, or nothing.
OTHERS: dict[str, Answer] = {
    "200": page(200),
    "302": page(302),
    "500": page(500),
    "503": page(503),
    "408": page(408),
    "425": page(425),
    "429": page(429),
    "json": {"status": 503, "headers": JSON, "body": '{"message":"blocked"}'},
    "cut": {"error": "offline"},
}
#: The failures that may be one item's fault.
FAILURES = {**OWN, **OTHERS}
#: One of each kind: the service itself, a defect of it, a gateway, and no answer at all.
FEW = ("57014", "XX000", "503", "cut")
#: How long items are added beside one at fault.
HOURS = sized(4, 24)
#: How many items wait while a gateway refuses all uploads.
ITEMS = sized(80, 200)


def visits(
    user: SignedIn, directory: DirectoryFixtures, hours: int, every_s: int = HOUR_S
) -> list[float]:
    """Add an item every hour or so, for this time; returns how long each took to be stored."""
    waits: list[float] = []
    for _ in range(hours * HOUR_S // every_s):
        live(user, every_s - 177)
        at = user.phone.now_ms
        item = add(user.app)
        live(user, HOUR_S, lambda item=item: item in stored(directory, user.person))
        waits.append((user.phone.now_ms - at) / 1000)
    return waits


@pytest.mark.parametrize(
    ("failure", "upload"),
    crossed(FAILURES, UPLOADS, fast=lambda failure, upload: failure in FEW and upload == "rpc"),
)
def test_an_item_that_fails_whenever_it_is_sent_delays_no_other(
    sign_in: MakeUser, directory: DirectoryFixtures, failure: str, upload: str
) -> None:
    user = patient(sign_in, upload)
    app = user.offline()
    bad = add(app)
    ids = [add(app) for _ in range(29)]
    fault = Fault(user, FAILURES[failure], holding(bad))
    app.go_online()
    took = live(user, HOUR_S, lambda: stored(directory, user.person) == sorted(ids))
    assert stored(directory, user.person) == sorted(ids)
    assert took < 60
    assert len(fault.met) <= math.ceil(math.log2(30)) + 4
    live(user, 60)
    [told] = app.of_type("sync_completed")
    assert (told["sent"], told["parked"], told["waiting"]) == (29, 0, 1)
    shown = item_of(app, bad)
    own = {"waiting_time", "schema_not_ready"}
    assert shown["state"] == "waiting"
    assert shown["reason"]["code"] in (own if failure in OWN else {"waiting_blocked"})
    assert max(visits(user, directory, HOURS)) < 10
    assert all(items_in(request) == 1 for request in fault.met[-5:])
    assert len(fault.met) < HOURS * 30
    parked = app.of_type("item_parked")
    assert [event["reason"] for event in parked] == (["blocked"] if parked else [])
    assert not (parked and failure in OWN)
    fault.end()
    if parked:
        app.queue_retry({"id": bad})
    live(user, 24 * HOUR_S, lambda: bad in stored(directory, user.person))
    assert bad in stored(directory, user.person)
    assert app.queue_list()["counts"] == EMPTY


@pytest.mark.parametrize(
    ("failure", "count", "upload"),
    crossed(
        ["57014", "XX000", "PGRST204", "503", "200"],
        [2, 3],
        UPLOADS,
        fast=lambda failure, count, upload: (
            (count, upload) == ((3, "rpc") if failure in ("XX000", "200") else (2, "table"))
        ),
    ),
)
def test_of_a_few_items_the_healthy_ones_are_stored_after_a_few_failures(
    sign_in: MakeUser, directory: DirectoryFixtures, failure: str, count: int, upload: str
) -> None:
    user = patient(sign_in, upload)
    app = user.offline()
    bad = add(app)
    ids = [add(app) for _ in range(count - 1)]
    fault = Fault(user, FAILURES[failure], holding(bad))
    app.go_online()
    live(user, HOUR_S, lambda: stored(directory, user.person) == sorted(ids))
    assert stored(directory, user.person) == sorted(ids)
    assert len(fault.met) <= 6


@pytest.mark.parametrize("failure", crossed(FEW, fast=lambda failure: failure == "57014"))
def test_many_items_at_fault_delay_no_other(
    sign_in: MakeUser, directory: DirectoryFixtures, failure: str
) -> None:
    user = patient(sign_in)
    app = user.offline()
    ids = [add(app) for _ in range(60)]
    bad = ids[::5]
    fault = Fault(user, FAILURES[failure], holding(*bad))
    app.go_online()
    healthy = sorted(set(ids) - set(bad))
    live(user, 3 * HOUR_S, lambda: stored(directory, user.person) == healthy)
    assert stored(directory, user.person) == healthy
    assert len(fault.met) <= 2 * len(bad) * math.ceil(math.log2(60))
    fault.end()
    live(user, 3 * HOUR_S, lambda: len(stored(directory, user.person)) == 60)
    assert app.queue_list()["counts"] == EMPTY
    assert app.of_type("item_parked") == []


@pytest.mark.parametrize(
    ("failure", "upload", "healthy"),
    crossed(
        ["57014", "XX000", "40001", "503"],
        UPLOADS,
        [True, False],
        fast=lambda *case: case in [("57014", "table", True), ("57014", "rpc", False)],
    ),
)
def test_a_failure_of_all_uploads_causes_no_storm(
    sign_in: MakeUser, directory: DirectoryFixtures, failure: str, upload: str, healthy: bool
) -> None:
    user = patient(sign_in, upload)
    app = user.app
    if healthy:
        add(app)
        app.settle()
    app.go_offline()
    for _ in range(200):
        add(app)
    fault = Fault(user, FAILURES[failure], lambda _: True)
    user.phone.network.forget()
    app.reconnect()
    assert len(fault.met) <= 2 * math.ceil(math.log2(200)) + 2
    for _ in range(sized(2, 4)):
        before = len(fault.met)
        live(user, HOUR_S)
        assert len(fault.met) - before <= 120
    assert user.phone.network.count("upload") <= 2 * len(fault.met)
    assert app.of_type("item_parked") == []
    # When the fault ends, then all are stored soon, and many in one request: with an item stored
    # before, about a hundred that timed out alone are sent alone (89 to 105 in 19 runs)
    fault.end()
    user.phone.network.forget()
    count = 200 + healthy
    took = live(user, 2 * HOUR_S, lambda: len(stored(directory, user.person)) == count)
    assert len(stored(directory, user.person)) == count
    assert took <= 20 * 60
    sent = [request for request in user.phone.network.sent if is_store(request)]
    assert len(sent) <= 200 * 2 // 3


@pytest.mark.parametrize(
    "failure", crossed(["200", "503", "cut"], fast=lambda failure: failure == "503")
)
def test_an_item_is_not_parked_while_nothing_else_is_judged(
    sign_in: MakeUser, directory: DirectoryFixtures, failure: str
) -> None:
    user = patient(sign_in)
    app = user.app
    add(app)
    app.settle()
    bad = add(app)
    fault = Fault(user, OTHERS[failure], holding(bad))
    live(user, HOURS * HOUR_S)
    # Then nothing shows that it is the item's fault: it is kept, and sent again
    assert app.of_type("item_parked") == []
    assert item_of(app, bad)["state"] in {"pending", "waiting"}
    assert HOURS < len(fault.met) < HOURS * 40
    fault.end()
    live(user, 2 * HOUR_S, lambda: bad in stored(directory, user.person))
    assert bad in stored(directory, user.person)


@pytest.mark.parametrize("failure", crossed(FEW, fast=lambda failure: failure in ("XX000", "503")))
def test_the_suspicion_outlives_restarts(
    sign_in: MakeUser, directory: DirectoryFixtures, failure: str
) -> None:
    user = patient(sign_in)
    app = user.offline()
    bad = add(app)
    ids = [add(app) for _ in range(15)]
    fault = Fault(user, FAILURES[failure], holding(bad))
    app.go_online()
    for _ in range(40):
        met = len(fault.met)
        live(user, 400, lambda met=met: len(fault.met) > met)
        if stored(directory, user.person) == sorted(ids):
            break
        app = user.restart()
        unlock(user)
    assert stored(directory, user.person) == sorted(ids)
    assert len(fault.met) <= 20


def test_a_function_that_fails_for_one_row_and_answers_for_the_others(
    sign_in: MakeUser, directory: DirectoryFixtures
) -> None:
    user = patient(sign_in, "rpc")
    app = user.offline()
    bad = add(app)
    ids = [add(app) for _ in range(9)]
    user.phone.network.alter.append(
        lambda request, answer: without(answer, bad) if is_store(request) else answer
    )
    app.reconnect()
    assert sorted(set(stored(directory, user.person)) - {bad}) == sorted(ids)
    assert max(visits(user, directory, HOURS)) < 10


def without(answer: Answer, item: str) -> Answer:
    """The answer of a function without the result of this item."""
    if "status" not in answer or answer["status"] != 200:
        return answer
    rows = [row for row in json.loads(answer["body"] or "[]") if row["id"] != item]
    return {**answer, "body": json.dumps(rows)}


# Pauses -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("failure", "beside", "upload"),
    crossed(
        ["XX000", "57014", "PGRST204"],
        [True, False],
        UPLOADS,
        fast=lambda failure, beside, upload: failure == "XX000" and upload == "table",
    ),
)
def test_FIX_21_an_item_of_a_server_s_defect_is_tried_ever_more_rarely(
    sign_in: MakeUser, directory: DirectoryFixtures, failure: str, beside: bool, upload: str
) -> None:
    user = patient(sign_in, upload)
    add(user.app)
    user.app.settle()
    bad = add(user.app)
    fault = Fault(user, FAILURES[failure], holding(bad))

    def requests_in(hours: int) -> int:
        before = len(fault.met)
        for _ in range(hours):
            live(user, HOUR_S)
            if beside:
                add(user.app)
        return len(fault.met) - before

    # Then it is tried a few times, and once a day at last; once an hour while nothing shows that it
    # is the item's fault
    assert requests_in(6) <= 25
    assert requests_in(48) <= (12 if beside else 48 * 2)
    assert 1 <= requests_in(48) <= (4 if beside else 48 * 2)
    assert user.app.of_type("item_parked") == []
    fault.end()
    user.app.sync()
    assert bad in stored(directory, user.person)


def test_FIX_21_a_try_that_the_user_asks_for_lengthens_no_wait(
    sign_in: MakeUser, directory: DirectoryFixtures
) -> None:
    user = patient(sign_in, "table")
    add(user.app)
    user.app.settle()
    bad = add(user.app)
    fault = Fault(user, FAILURES["XX000"], holding(bad))
    ends = 0
    # Given an item that waits for more than five hours
    while ends - user.phone.now_ms < 5 * HOUR_S * 1000:
        live(user, HOUR_S)
        add(user.app)
        user.app.settle()
        ends = item_of(user.app, bad)["not_before_ms"] or 0
    tries = len(fault.met)
    for number in range(3):
        user.app.sync()
        assert len(fault.met) == tries + number + 1
        assert item_of(user.app, bad)["not_before_ms"] == ends


def test_FIX_21_many_items_of_a_server_s_defect_cost_few_requests(
    sign_in: MakeUser, directory: DirectoryFixtures
) -> None:
    user = patient(sign_in)
    ids = add_offline(user, 20)
    bad = ids[::2]
    fault = Fault(user, FAILURES["XX000"], holding(*bad))
    user.app.go_online()
    for _ in range(sized(12, 48)):
        live(user, HOUR_S)
        add(user.app)
    assert set(ids) - set(stored(directory, user.person)) == set(bad)
    assert len(fault.met) <= 45 * len(bad)


class Weather:
    """A gateway that loses, drops and answers 502 by chance for a minute, then is well."""

    def __init__(self, user: SignedIn, seed: int) -> None:
        self.user = user
        self.chance = random.Random(seed)
        self.end_ms = user.phone.now_ms + 60_000
        user.phone.network.instead.append(self)

    @property
    def is_over(self) -> bool:
        return self.user.phone.now_ms >= self.end_ms

    def __call__(self, request: Any) -> Answer | None:  # noqa: ANN401
        self.user.phone.pass_time(0.3)
        if self.is_over or request["purpose"] != "upload":
            return None
        what = self.chance.random()
        if what < 0.25:
            return page(502)
        if what < 0.5:
            return {"error": "timeout"}
        if what < 0.7:
            self.user.phone.network._http(request)
            return {"error": "offline"}
        return None


@pytest.mark.parametrize("seed", sampled(range(sized(6, 24)), 2))
def test_FIX_25_after_an_outage_no_healthy_item_waits_longer_than_uploads_do(
    sign_in: MakeUser, directory: DirectoryFixtures, seed: int
) -> None:
    user = patient(sign_in)
    app = user.app
    weather = Weather(user, seed)
    items = []
    while not weather.is_over:
        items += [add(app) for _ in range(3)]
        live(user, 1)
    pause_ms = max((app.sync_status()["not_before_ms"] or 0) - user.phone.now_ms, 0)
    took = live(user, HOUR_S, lambda: stored(directory, user.person) == sorted(items))
    assert stored(directory, user.person) == sorted(items)
    assert took * 1000 <= pause_ms + 64_000
    assert app.of_type("item_parked") == []


#: What a gateway that fails now and then answers.
OF_A_GATEWAY: dict[str, Answer] = {
    "502": page(502),
    "lost": {"error": "timeout"},
    "cut": {"error": "offline"},
}


def failing(user: SignedIn, answer: Answer, times: int) -> str:
    """A healthy item whose first uploads fail so often, while others are stored."""
    item = add(user.app)
    fault = Fault(user, answer, holding(item))
    while (met := len(fault.met)) < times:
        add(user.app)
        live(user, 400, lambda met=met: len(fault.met) > met)
    # (the service is asked whether it has the item)
    user.app.settle()
    fault.end()
    return item


@pytest.mark.parametrize("times", [5, 7])
@pytest.mark.parametrize("answer", OF_A_GATEWAY)
def test_FIX_25_an_item_that_an_outage_hits_waits_no_longer_than_uploads_do(
    sign_in: MakeUser, directory: DirectoryFixtures, answer: str, times: int
) -> None:
    user = patient(sign_in)
    item = failing(user, OF_A_GATEWAY[answer], times)
    took = live(user, HOUR_S, lambda: item in stored(directory, user.person))
    assert item in stored(directory, user.person)
    assert took <= min(2 * 2**times, 300)
    assert user.app.of_type("item_parked") == []


@pytest.mark.parametrize("answer", OF_A_GATEWAY)
def test_FIX_25_items_that_an_outage_hit_go_with_the_first_upload_that_passes(
    sign_in: MakeUser, directory: DirectoryFixtures, answer: str
) -> None:
    # Given a healthy item that waits for itself, because a gateway hit it several times
    user = patient(sign_in)
    app, phone = user.app, user.phone
    until = 0
    while until < phone.now_ms + 10_000:
        item = failing(user, OF_A_GATEWAY[answer], 9)
        until = item_of(app, item)["not_before_ms"]
    fault = Fault(user, OF_A_GATEWAY[answer], lambda _: True)
    other = add(app)
    live(user, 10, lambda: bool(fault.met))
    fault.end()
    live(user, 10, lambda: other in stored(directory, user.person))
    assert other in stored(directory, user.person)
    app.settle()
    assert item in stored(directory, user.person)
    assert phone.now_ms < until


# 413 ----------------------------------------------------------------------------------------------


@BOTH
def test_a_small_item_that_a_gateway_calls_too_large_is_refused_on_the_way(
    sign_in: MakeUser, directory: DirectoryFixtures, upload: str
) -> None:
    user = patient(sign_in, upload)
    app = user.offline()
    ids = [add(app) for _ in range(9)]
    bad = add(app)
    ids += [add(app) for _ in range(10)]
    fault = Fault(user, page(413), holding(bad))
    app.reconnect()
    assert stored(directory, user.person) == sorted(ids)
    assert app.of_type("item_parked") == []
    assert code_of(app, bad) == "waiting_blocked"
    fault.end()
    live(user, HOUR_S, lambda: bad in stored(directory, user.person))
    assert bad in stored(directory, user.person)


def test_a_gateway_that_calls_everything_too_large_parks_nothing_soon(
    sign_in: MakeUser, directory: DirectoryFixtures
) -> None:
    user = patient(sign_in)
    app = user.offline()
    for _ in range(ITEMS):
        add(app)
    fault = Fault(user, page(413), lambda _: True)
    app.reconnect()
    assert len(fault.met) <= 2 * math.ceil(math.log2(ITEMS)) + 2
    hours = sized(2, 6)
    live(user, hours * HOUR_S)
    assert app.of_type("item_parked") == []
    assert len(fault.met) <= hours * 60
    fault.end()
    live(user, 3 * HOUR_S, lambda: len(stored(directory, user.person)) == ITEMS)
    assert len(stored(directory, user.person)) == ITEMS


@pytest.mark.parametrize(("answer", "length"), [(page(413), 20_000), (coded(413, "PT413"), 10)])
def test_an_item_that_is_too_large_is_parked_as_that(
    sign_in: MakeUser, answer: Answer, length: int
) -> None:
    user = patient(sign_in)
    app = user.app
    bad = add(app, note="x" * length)
    more: Any = Fault(user, answer, holding(bad))
    app.settle()
    assert len(more.met) == 1
    assert code_of(app, bad) == "too_long"
