"""The summary counts every registration once; kept counts and sums equal a scan."""

from __future__ import annotations

import contextlib
import json
import random
import sqlite3
from collections import Counter
from typing import Any

import pytest
from holdfast import HoldfastError
from holdfast.transport import Answer
from holdfast.types import HttpRequest

from support import elsewhere
from support.directory_fixtures import DirectoryFixtures
from support.held import answer, taken, unlock
from support.queue import (
    BAD_MINUTES,
    EMPTY,
    UPLOADS,
    ask_until_believed,
    code_of,
    drain,
    edit,
    in_doubt,
    item_of,
)
from support.refusals import coded, page
from support.sizes import crossed
from support.users import MakeUser, SignedIn

YEAR_MS = 366 * 86_400_000


def total(user: SignedIn) -> tuple[int, int]:
    """The sum of activities and minutes that a screen shows."""
    reply = user.app.summary_get()
    assert reply["summary"] is not None
    parts = [reply["summary"], reply["sent"], reply["queued"]]
    return sum(part["activities"] for part in parts), sum(part["minutes"] for part in parts)


def test_OFF_8_a_sent_item_stays_counted_until_the_figures_include_it(user: SignedIn) -> None:
    before = user.app.summary_get()["summary"]
    user.phone.network.replace("summary", coded(503, "PGRST000"))
    user.app.register(minutes=40)
    assert user.app.summary_get()["queued"] == {"activities": 1, "minutes": 40}
    user.app.settle_until("sync_completed")
    reply = user.app.summary_get()
    assert reply["summary"] == before
    assert reply["queued"] == {"activities": 0, "minutes": 0}
    assert reply["sent"] == {"activities": 1, "minutes": 40}
    assert "queued_not_sent" not in {banner["code"] for banner in reply["banners"]}
    user.restart(online=False)
    assert user.app.summary_get()["sent"] == {"activities": 1, "minutes": 40}
    user.phone.network.alter.clear()
    user.app.go_online()
    user.app.wait(900)
    reply = user.app.summary_get()
    assert reply["summary"] is not None
    assert (reply["summary"]["activities"], reply["summary"]["minutes"]) == (1, 40)
    assert reply["sent"] == reply["queued"] == {"activities": 0, "minutes": 0}


@pytest.mark.parametrize(
    "body",
    [
        '{"status":"login_required"}',
        '[{"status":"login_required","links":["http://portal.example/"]}]',
        '{"online":false,"user":null}',
        *("{}", "[]", "[null]", "[[1]]", "[7]"),
    ],
)
def test_ATK_6_a_portal_s_json_and_invalid_figures_are_no_summary(
    user: SignedIn, body: str
) -> None:
    """Seed 303286 of the simulation: the portal's object was shown as the user's figures."""
    user.app.register(minutes=40)
    user.app.settle_until("sync_completed")
    user.app.wait(900)
    before = user.app.summary_get()
    answer: Answer = {"status": 200, "headers": {"content-type": "application/json"}, "body": body}
    user.phone.network.replace("summary", answer)
    asked = user.phone.network.count("summary")
    user.app.wait(900)
    assert user.phone.network.count("summary") > asked
    after = user.app.summary_get()
    assert (after["summary"], after["as_of_ms"]) == (before["summary"], before["as_of_ms"])
    user.phone.network.alter.clear()
    user.app.wait(900)
    assert total(user) == (1, 40)
    assert user.app.summary_get()["as_of_ms"] != before["as_of_ms"]


def test_OFF_8_last_year_s_queued_visits_are_not_counted(
    user: SignedIn, directory: DirectoryFixtures
) -> None:
    user.app.go_offline()
    payload = {"type": "visit", "minutes": 30}
    long_ago = user.phone.now_ms - 2 * YEAR_MS
    user.app.queue_add({"kind": "activity", "payload": payload, "occurred_at_ms": long_ago})
    user.app.register(minutes=10)
    assert user.app.summary_get()["queued"] == {"activities": 1, "minutes": 10}
    user.app.go_online()
    user.app.settle_until("sync_completed")
    user.app.settle()
    assert len(directory.activities(user.person)) == 2
    assert total(user) == (1, 10)


@pytest.mark.parametrize(("text", "minutes"), [("40", 40), (" 7", 7), ("an hour", 0)])
def test_OFF_8_minutes_in_a_text_count_as_the_server_reads_them(
    user: SignedIn, text: str, minutes: int
) -> None:
    user.app.go_offline()
    payload = {"type": "visit", "minutes": text}
    user.app.queue_add({"kind": "activity", "payload": payload})
    assert user.app.summary_get()["queued"] == {"activities": 1, "minutes": minutes}
    user.app.go_online()
    user.app.settle()
    assert total(user) == ((1, minutes) if minutes else (0, 0))


def test_OFF_8_a_parked_registration_is_not_counted(user: SignedIn) -> None:
    user.app.register(minutes=10)
    user.app.register(minutes=100_000)
    user.app.settle_until("sync_completed")
    user.app.settle()
    assert total(user) == (1, 10)


def test_figures_fetched_during_an_upload_are_fetched_again(user: SignedIn) -> None:
    app = user.app
    app.sync_now()
    request = taken(user, "summary")
    early: Any = {"id": request["id"], **user.phone.network(request)}
    app.register(minutes=25)
    answer(app, taken(user, "upload"))
    assert total(user) == (1, 25)
    app.complete(early)
    assert total(user) == (1, 25)
    app.settle()
    assert total(user) == (1, 25)


def test_figures_that_could_not_be_stored_are_fetched_again(user: SignedIn) -> None:
    app = user.app
    user.phone.pass_time(60)
    asked_ms = user.phone.now_ms
    app.sync_now()
    request = taken(user, "summary")
    holder = elsewhere.holder(user.phone.folder / "cache.db")
    answer(app, request)
    holder.communicate()
    app.wait(120)
    as_of_ms = app.summary_get()["as_of_ms"]
    assert as_of_ms is not None
    assert as_of_ms > asked_ms


def test_OFF_8_the_summary_counts_only_its_own_kind(sign_in: MakeUser) -> None:
    kinds = {"activity": {"table": "activities"}, "travel": {"table": "t", "columns": ["minutes"]}}
    user = sign_in(tables={"queue": kinds})
    user.app.go_offline()
    at = user.phone.now_ms
    user.app.queue_add({"kind": "travel", "payload": {"minutes": 50}, "occurred_at_ms": at})
    user.app.queue_add({"kind": "activity", "payload": {"type": "visit"}, "occurred_at_ms": at})
    user.app.register(minutes=-5)
    user.app.register(minutes=2**53)
    queued = user.app.summary_get()["queued"]
    assert queued == {"activities": 3, "minutes": 1_000_000}


@pytest.mark.parametrize("wish", ["edit", "retry", "retry all"])
def test_OFF_8_an_item_of_unknown_outcome_is_counted_once(
    user: SignedIn, directory: DirectoryFixtures, wish: str
) -> None:
    """Seed 1006416 of the simulation: the server's figures counted it, and so did `queued`."""
    app = user.app
    item = in_doubt(user, directory, minutes=30)
    edit(app, item, 45)
    user.phone.pass_time(60)
    app.go_online()
    app.settle_until("item_parked")
    app.wait(900)
    assert code_of(app, item) == "unknown_outcome"
    assert total(user) == (1, 30)
    app.go_offline()
    if wish == "edit":
        edit(app, item, 50)
    else:
        assert app.queue_retry({"id": item} if wish == "retry" else {})["retried"] == 1
    assert app.queue_list()["counts"]["pending"] == 1
    assert "queued_not_sent" in {banner["code"] for banner in app.summary_get()["banners"]}
    assert total(user) == (1, 30)
    app.reconnect()
    assert total(user) == (1, 30)


def test_OFF_8_a_stored_item_that_was_parked_is_counted_once(
    user: SignedIn, directory: DirectoryFixtures
) -> None:
    app = user.app
    item = in_doubt(user, directory, minutes=30)
    app.queue_cancel({"id": item})
    app.go_online()
    app.settle_until("item_parked")
    app.wait(900)
    assert total(user) == (1, 30)
    user.phone.network.replace("summary", coded(503, "PGRST000"))
    app.queue_retry({"id": item})
    app.settle()
    assert app.queue_get({"id": item})["state"] == "stored"
    assert total(user) == (1, 30)


def test_OFF_8_an_item_about_which_the_server_did_not_answer_is_counted_once(
    user: SignedIn, directory: DirectoryFixtures
) -> None:
    """Seed 1015496 of the simulation: the figures are read while the item waits as refused."""
    app = user.app
    item = in_doubt(user, directory, minutes=30)

    # When something on the way refuses its next upload, and the service does not say if it has it
    def refused(request: HttpRequest, answer: Answer) -> Answer:
        if request["purpose"] != "upload":
            return answer
        return page(403) if request["method"] == "POST" else coded(500, "55P03")

    user.phone.network.alter.append(refused)
    app.go_online()
    app.wait(60)
    assert code_of(app, item) == "waiting_blocked"
    app.wait(900)
    reply = app.summary_get()
    assert reply["summary"] is not None
    assert reply["summary"]["activities"] == 1
    assert total(user) == (1, 30)


def test_an_item_of_the_largest_size_can_be_cancelled(
    sign_in: MakeUser, directory: DirectoryFixtures
) -> None:
    user = sign_in(tables={"queue": {"activity": {"table": "activities"}}})
    app = user.offline()

    def with_note(length: int) -> dict[str, object]:
        payload = {"type": "visit", "minutes": 5, "note": "x" * length}
        occurred = user.phone.now_ms
        return {"kind": "activity", "payload": payload, "occurred_at_ms": occurred}

    with pytest.raises(HoldfastError) as caught:
        app.queue_add(with_note(262_144))  # type: ignore[arg-type]
    size = caught.value.detail["size"]
    item = app.queue_add(with_note(2 * 262_144 - size))["id"]  # type: ignore[arg-type]
    directory.control.drop_before(UPLOADS["table"], method="POST", times=1)
    app.reconnect()
    assert item_of(app, item)["attempts"] == 1
    assert app.queue_cancel({"id": item})["state"] == "pending"
    ask_until_believed(app)
    assert app.queue_get({"id": item})["state"] == "cancelled"


def test_a_summary_of_the_user_before_is_not_shown(
    user: SignedIn, directory: DirectoryFixtures
) -> None:
    user.app.register(minutes=40)
    drain(user.app)
    user.app.settle()
    user.app.sync_now()
    request = taken(user, "summary")
    answer: Any = {"id": request["id"], **user.phone.network(request)}
    assert json.loads(answer["body"])["activities"] == 1
    user.start_as(directory.person(user.org))
    before = user.app.summary_get()
    user.app.complete(answer)
    assert user.app.summary_get() == before
    user.app.settle()
    figures = user.app.summary_get()["summary"]
    assert figures is not None
    assert figures["activities"] == 0


# Kept counts --------------------------------------------------------------------------------------


SEEDS = crossed(range(4), fast=lambda seed: seed == 1)
STEPS = 25
DAY_MS = 86_400_000
STATES = ("pending", "sending", "waiting", "parked")

PLACES = (
    "SELECT hex(owner), state, wait_reason, count(*) FROM queue GROUP BY owner, state, wait_reason"
)
KEPT = "SELECT hex(owner), state, wait_reason, items FROM queue_count WHERE items <> 0"


def read(user: SignedIn, *statements: str) -> list[list[Any]]:
    """What statements read of, or do with, the main file."""
    with contextlib.closing(sqlite3.connect(user.phone.folder / "holdfast.db")) as database:
        found = [sorted(database.execute(one).fetchall()) for one in statements]
        database.commit()
    return found


def pages(app: Any, state: str | None = None) -> list[dict[str, Any]]:  # noqa: ANN401
    """Every item of the list, in pages."""
    found: list[dict[str, Any]] = []
    after = 0
    while True:
        given = {"after": after, "limit": 60, **({"state": state} if state else {})}
        page = app.queue_list(given)
        found += page["items"]
        if page["next"] is None:
            return found
        after = page["next"]


def judge(user: SignedIn) -> None:
    """Compare what is kept with what a scan finds."""
    app = user.app
    kept, places = read(user, KEPT, PLACES)
    assert kept == places
    items = pages(app)
    assert [item["seq"] for item in items] == sorted(item["seq"] for item in items)
    counted = Counter(item["state"] for item in items)
    counts = app.queue_list({"limit": 1})["counts"]
    assert counts == {**EMPTY, **counted}
    assert app.sync_status()["counts"] == counts
    explained = app.queue_explain()
    assert explained["counts"] == counts
    reasons = [reason for reason in explained["reasons"] if reason["code"] != "other_user"]
    assert sum(reason["count"] for reason in reasons) == sum(counts.values())
    for state in STATES[1:]:
        assert pages(app, state) == [item for item in items if item["state"] == state]
    # The sums are those that are made without any that were kept
    summary = app.summary_get()
    read(user, "DELETE FROM queue_block")
    assert app.summary_get() == summary


class World:
    """An app whose user and network do anything."""

    def __init__(self, user: SignedIn, chance: random.Random) -> None:
        self.user = user
        self.chance = chance
        self.fault: Answer | None = None
        self.loses = False
        user.phone.network.alter.append(self.alter)

    def alter(self, request: HttpRequest, answer: Answer) -> Answer:
        """Lose answers to uploads, or refuse them."""
        if request["purpose"] != "upload":
            return answer
        if self.loses and self.chance.random() < 0.5:
            return {"error": "timeout"}
        return self.fault or answer

    def ids(self) -> list[str]:
        return [item["id"] for item in self.user.app.queue_list({"limit": 500})["items"]]

    def add(self) -> None:
        minutes = BAD_MINUTES if self.chance.random() < 0.1 else self.chance.randrange(1, 90)
        occurred = self.user.phone.now_ms - self.chance.choice([0, 1, 30, 500]) * DAY_MS
        request: dict[str, Any] = {
            "kind": "activity",
            "payload": {"type": "visit", "minutes": minutes},
            "occurred_at_ms": occurred,
        }
        if self.chance.random() < 0.2 and (ids := self.ids()):
            request["depends_on"] = [self.chance.choice(ids)]
        self.user.app.queue_add(request)

    def add_many(self) -> None:
        for _ in range(self.chance.randrange(10, 40)):
            self.add()

    def on_some(self, call: str, **more: Any) -> None:  # noqa: ANN401
        if ids := self.ids():
            with contextlib.suppress(HoldfastError):
                getattr(self.user.app, call)({"id": self.chance.choice(ids), **more})

    def edit(self) -> None:
        payload = {"type": "visit", "minutes": self.chance.randrange(1, 90)}
        self.on_some("queue_edit", payload=payload)

    def cancel(self) -> None:
        self.on_some("queue_cancel", force=self.chance.random() < 0.3)

    def retry(self) -> None:
        if self.chance.random() < 0.3:
            self.user.app.queue_retry()
        else:
            self.on_some("queue_retry")

    def turn(self) -> None:
        """Go through one round of the loop, or lose its answers."""
        app = self.user.app
        for request in app.poll()["requests"]:
            if self.chance.random() < 0.7:
                answer = self.user.phone.network(request)
                app.complete({"id": request["id"], **answer})  # type: ignore[typeddict-item]

    def settle(self) -> None:
        self.user.app.go_online()
        for _ in range(30):
            if self.user.app.step().idle:
                return

    def part(self) -> None:
        self.user.app.go_offline()

    def refuse(self) -> None:
        body = '{"code":"23503","message":"x"}'
        refused: list[Answer | None] = [
            None,
            {"status": 503, "headers": {}, "body": ""},
            {"status": 403, "headers": {}, "body": "<html>"},
            {"status": 404, "headers": {}, "body": '{"code":"PGRST205","message":"x"}'},
            {"status": 403, "headers": {}, "body": '{"code":"42501","message":"x"}'},
            {"status": 409, "headers": {}, "body": body},
        ]
        self.fault = self.chance.choice(refused)
        self.loses = self.chance.random() < 0.3

    def wait(self) -> None:
        self.user.phone.pass_time(self.chance.choice([1, 60, 900, 7200]))
        self.user.app.session_resume()
        unlock(self.user)

    def restart(self) -> None:
        self.user.restart(online=self.chance.random() < 0.5)
        unlock(self.user)

    def step(self) -> None:
        """Do one thing."""
        self.chance.choice(
            [
                *[self.add, self.edit, self.cancel, self.retry, self.turn, self.settle] * 2,
                *[self.add_many, self.part, self.refuse, self.wait, self.restart],
            ]
        )()


@pytest.mark.parametrize("seed", SEEDS)
def test_kept_counts_and_sums_are_those_of_a_scan(user: SignedIn, seed: int) -> None:
    world = World(user, random.Random(seed))
    user.app.go_offline()
    for _ in range(20 + 80 * (seed % 2)):
        world.add()
    judge(user)
    for _ in range(STEPS):
        world.step()
        judge(world.user)
