"""Counts and sums of the queue are kept with its changes: they equal a scan after any changes."""

from __future__ import annotations

import contextlib
import random
import sqlite3
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest
from holdfast import HoldfastError

from support.queue import BAD_MINUTES, EMPTY

if TYPE_CHECKING:
    from holdfast.transport import Answer
    from holdfast.types import HttpRequest

    from support.users import MakeUser, SignedIn

SEEDS = range(4)
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
            if self.user.app.runner.step().idle:
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
        if self.user.app.screen["screen"] == "unlock":
            self.user.app.touch()

    def restart(self) -> None:
        self.user.restart(online=self.chance.random() < 0.5)
        if self.user.app.screen["screen"] == "unlock":
            self.user.app.touch()

    def step(self) -> None:
        """Do one thing."""
        self.chance.choice(
            [
                *[self.add, self.edit, self.cancel, self.retry, self.turn, self.settle] * 2,
                *[self.add_many, self.part, self.refuse, self.wait, self.restart],
            ]
        )()


@pytest.mark.parametrize("seed", SEEDS)
def test_kept_counts_and_sums_are_those_of_a_scan(sign_in: MakeUser, seed: int) -> None:
    """Random changes by the user, the network and the time."""
    user = sign_in()
    world = World(user, random.Random(seed))
    user.app.go_offline()
    for _ in range(20 + 80 * (seed % 2)):
        world.add()
    judge(user)
    for _ in range(STEPS):
        world.step()
        judge(world.user)
