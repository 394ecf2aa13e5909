"""How a mutant injects its violation: it patches a reply, a request, a file or a stored row."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any
from unittest import mock

from holdfast import HoldfastError

from ..invariants import InvariantChecker, is_terminal
from ..process import Process
from ..world import World

Json = dict[str, Any]
Mutant = AbstractContextManager[object]
NOBODY = "00000000-0000-4000-8000-000000000000"

MUTANTS: dict[str, list[Callable[[], Mutant]]] = {}
#: The step from one seed to the next: only one seed of this many can show the mutant.
STEPS: dict[Callable[[], Mutant], int] = {}


def violates(rule: str, step: int = 1) -> Callable[[Callable[[], Mutant]], Callable[[], Mutant]]:
    """Register a mutant of a rule; only seeds that are multiples of `step` are tried."""

    def register(make: Callable[[], Mutant]) -> Callable[[], Mutant]:
        MUTANTS.setdefault(rule, []).append(make)
        STEPS[make] = step
        return make

    return register


def change_reply(name: str, change: Callable[[Process, Json], object]) -> Mutant:
    """Change every reply to these calls before the host and the checker see it."""
    original = Process._decode

    def decode(self: Process, called: str, status: int, reply: bytes | None) -> Json:
        value = original(self, called, status, reply)
        if called in name.split() and hasattr(self, "opened"):
            change(self, value)
        return value

    return mock.patch.object(Process, "_decode", decode)


def change_round(change: Callable[[Process, Json], object]) -> Mutant:
    """Change what a host was given in a round: `requests`, `events`, `wake_in_ms`."""
    original = Process.collect

    def collect(self: Process) -> Json:
        polled = original(self)
        change(self, polled)
        return polled

    return mock.patch.object(Process, "collect", collect)


def fail_call(name: str, code: str, when: Callable[[Process], bool]) -> Mutant:
    """Make the call, then report that it failed."""

    def refuse(process: Process, _: Json) -> None:
        if when(process):
            raise HoldfastError.of(2, {
                "error": {
                    "code": code, "message": "", "field": None, "retryable": True, "detail": None,
                }
            })  # fmt: skip

    return change_reply(name, refuse)


def change_decision(change: Callable[[Process, Json], object]) -> Mutant:
    """Change every screen that was not asked for."""

    def change_decisions(process: Process, reply: Json) -> None:
        for event in reply["events"]:
            if event["type"] == "screen":
                change(process, event["screen"])

    return change_round(change_decisions)


def add_event(event: Json, when: Callable[[Process], bool] = lambda _: True) -> Mutant:
    """Add an event to every round."""

    def add(process: Process, reply: Json) -> None:
        if when(process):
            reply["events"].append(dict(event))

    return change_round(add)


def change_request(change: Callable[[Process, Json], object], purpose: str = "") -> Mutant:
    """Change every request of this purpose."""

    def change_requests(process: Process, reply: Json) -> None:
        for request in reply["requests"]:
            if request["purpose"] == purpose or not purpose:
                change(process, request)

    return change_round(change_requests)


def repeat_request(when: Callable[[Process, Json], bool], **changes: str) -> Mutant:
    """Repeat earlier requests at a time when they are forbidden."""
    seen: dict[str, Json] = {}

    def poll(process: Process, reply: Json) -> None:
        device = process.device
        for request in seen.values():
            if request["device"] == id(device) and when(process, request):
                reply["requests"].append({**request, "id": 900_000, **changes})
        for request in reply["requests"]:
            seen[request["purpose"]] = {**request, "device": id(device)}

    return change_round(poll)


def change_file(statement: str, every: int = 7, name: str = "queue_get next") -> Mutant:
    """Change the device's database without the library."""
    count = 0

    def change(process: Process, _: Json) -> None:
        nonlocal count
        count += 1
        if count % every == 0:
            with sqlite3.connect(process.device.folder / "holdfast.db") as database:
                database.execute(statement)
            database.close()

    return change_reply(name, change)


def run_before(place: type, name: str, first: Callable[..., object]) -> Mutant:
    """Run `first` just before a method is called."""
    original = getattr(place, name)

    def both(self: object, *arguments: object, **named: object) -> object:
        first(self, *arguments)
        return original(self, *arguments, **named)

    return mock.patch.object(place, name, both)


def change_row(change: Callable[[World, Json], object]) -> Mutant:
    """Change every new row at the server before the checker sees it."""

    def look(checker: InvariantChecker) -> None:
        for row in list(checker.world.server.database.stored.values())[checker.seen_rows :]:
            change(checker.world, row)

    return run_before(InvariantChecker, "row_check", look)


def is_healthy(process: Process) -> bool:
    return process.world.healed


def change_at_terminal_answer(change: Callable[[Process], object]) -> Mutant:
    """Change the device's state when an answer arrives that ends its session."""

    def hand(process: Process, sent: Any, answer: Json) -> None:  # noqa: ANN401
        if is_terminal(sent.request, answer) and process.device.session is not None:
            change(process)

    return run_before(Process, "hand_over", hand)
