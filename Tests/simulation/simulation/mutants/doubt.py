"""Mutants of the invariants about refused and doubtful items, numbers, and notices."""

from __future__ import annotations

import decimal
import random
from collections.abc import Iterator
from contextlib import contextmanager
from unittest import mock

from holdfast import HoldfastError

from .. import end_state
from ..process import Process
from ..world import World
from .injection import Json, Mutant, change_reply, change_round, change_row, violates

# What a firewall refuses --------------------------------------------------------------------------


@violates("an item is blocked after many refusals")
def _blocked_at_once() -> Mutant:
    def blame(_: Process, reply: Json) -> None:
        for event in reply["events"]:
            if event["type"] == "item_parked":
                event["reason"] = "blocked"

    return change_round(blame)


@violates("an item is parked for a true reason")
def _untrue_block() -> Mutant:
    def blame(_: Process, reply: Json) -> None:
        for item in reply["items"]:
            if item["state"] == "parked":
                item["reason"]["code"] = "blocked"

    return change_reply("queue_list", blame)


@violates("a refused item holds up nothing else", step=end_state.FIREWALL_STAYS)
@contextmanager
def _held_up_by_a_refused_one() -> Iterator[None]:
    waiting: list[World] = []
    wait, serve = end_state._wait_for_the_firewall, World.serve

    def wait_for_it(world: World, process: Process, user: str, chance: random.Random) -> None:
        waiting.append(world)
        wait(world, process, user, chance)
        waiting.clear()

    def fail(self: World, request: Json, online: bool = True) -> Json:
        if waiting and request.get("purpose") == "upload":
            return {"status": 503, "headers": {}, "body": ""}
        return serve(self, request, online)

    with (
        mock.patch.object(end_state, "_wait_for_the_firewall", wait_for_it),
        mock.patch.object(World, "serve", fail),
    ):
        yield


@violates("a run ends without what is refused", step=end_state.FIREWALL_STAYS)
def _never_completed() -> Mutant:
    def swallow(_: Process, reply: Json) -> None:
        reply["events"] = [one for one in reply["events"] if one["type"] != "sync_completed"]

    return change_round(swallow)


@violates("a refused item is parked in the end", step=end_state.FIREWALL_STAYS)
def _never_parked() -> Mutant:
    def wait(_: Process, reply: Json) -> None:
        for item in reply["items"]:
            if item["state"] == "parked" and item["reason"]["code"] == "blocked":
                item["state"], item["reason"]["code"] = "waiting", "waiting_blocked"

    return change_reply("queue_list", wait)


# Doubtful items -----------------------------------------------------------------------------------


@violates("a cancel asks when the server may have the item")
def _gone_at_once() -> Mutant:
    return change_reply("queue_cancel", lambda _, reply: reply.update(state=None))


# Numbers ------------------------------------------------------------------------------------------


@violates("a number is stored as the host wrote it")
def _another_number() -> Mutant:
    def change(_: World, row: Json) -> None:
        if row["exact"] is not None:
            row["exact"] += decimal.Decimal("0.0000001")

    return change_row(change)


@violates("a number is shown as the host wrote it")
def _another_number_shown() -> Mutant:
    def change(_: Process, reply: Json) -> None:
        for item in reply["items"]:
            if "exact" in item["payload"]:
                item["payload"]["exact"] = 7.25

    return change_reply("queue_list", change)


@violates("a number that no double holds is refused")
@contextmanager
def _rounded() -> Iterator[None]:
    original = Process._decode

    def decode(self: Process, name: str, status: int, reply: bytes | None) -> Json:
        try:
            return original(self, name, status, reply)
        except HoldfastError as error:
            if error.code == "queue.invalid_payload":
                return {"id": "", "state": "pending"}
            raise

    with mock.patch.object(Process, "_decode", decode):
        yield


# Notices ------------------------------------------------------------------------------------------


@violates("a change wakes the other handles")
def _not_woken() -> Mutant:
    return mock.patch.object(Process, "is_signalled", lambda _: False)
