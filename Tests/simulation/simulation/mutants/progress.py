"""Mutants of the invariants about the host's loop and about the end of a run."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from unittest import mock

from ..device import Device
from ..process import Process
from ..world import World
from .injection import (
    Json,
    Mutant,
    change_decision,
    change_reply,
    change_round,
    fail_call,
    is_healthy,
    run_before,
    violates,
)

# The loop -----------------------------------------------------------------------------------------


@violates("every wait is resolved")
def _never_told() -> Mutant:
    return change_round(
        lambda _, reply: reply.update(
            events=[event for event in reply["events"] if event["type"] != "screen"]
        ),
    )


@violates("wake_in_ms is never in the past")
def _in_the_past() -> Mutant:
    return change_round(lambda _, reply: reply.update(wake_in_ms=-1))


@violates("wake_in_ms is never in the past")
def _always_now() -> Mutant:
    return change_round(lambda _, reply: reply.update(wake_in_ms=0))


@violates("no busy loop")
def _always_soon() -> Mutant:
    return change_round(lambda _, reply: reply.update(wake_in_ms=1))


@violates("no refresh storm")
def _storm() -> Mutant:
    def poll(_: Process, reply: Json) -> None:
        for request in list(reply["requests"]):
            if request["purpose"] == "refresh":
                reply["requests"] += [request] * 15

    return change_round(poll)


@violates("two processes never do the same work")
def _both_at_once() -> Mutant:
    def poll(process: Process, reply: Json) -> None:
        for other in process.device.alive:
            for sent in other.in_flight:
                if sent.request["purpose"] == "refresh" and other is not process:
                    reply["requests"].append(sent.request)

    return change_round(poll)


@violates("every live read is answered")
def _never_answered() -> Mutant:
    def swallow(_: Process, reply: Json) -> None:
        reply["events"] = [event for event in reply["events"] if event["type"] != "contact"]

    return change_round(swallow)


@violates("a failing read holds up nothing else")
@contextmanager
def _held_up() -> Iterator[None]:
    original = World.serve

    def serve(self: World, request: Json, online: bool = True) -> Json:
        if request.get("purpose") == "upload" and self.healed and self.outages:
            return {"status": 503, "headers": {}, "body": ""}
        return original(self, request, online)

    with mock.patch.object(World, "serve", serve):
        yield


# The end ------------------------------------------------------------------------------------------


@violates("a healthy device opens its files")
@contextmanager
def _does_not_open() -> Iterator[None]:
    original = Device.start

    def start(self: Device) -> Process | None:
        return None if self.world.healed else original(self)

    with mock.patch.object(Device, "start", start):
        yield


@violates("a healthy user signs in")
def _kept_out() -> Mutant:
    return fail_call("session_adopt", "keystore.failed", is_healthy)


@violates("a healthy member has an organisation")
def _no_organisation() -> Mutant:
    def revoke(process: Process, decision: Json) -> None:
        for org in decision["orgs"]:
            org["status"] = "revoked"

    return change_decision(revoke)


@violates("a healthy user reaches home")
def _sent_away() -> Mutant:
    def away(process: Process, decision: Json) -> None:
        if process.world.healed:
            decision.update(screen="sign_in")

    return change_decision(away)


@violates("a healthy user stays")
def _sent_away_later() -> Mutant:
    def away(world: World, duration_ms: int) -> None:
        for process in world.processes():
            if world.healed and process.shown is not None:
                process.shown["org"] = None

    return run_before(World, "sleep", away)


@violates("everything drains")
@contextmanager
def _out_of_order() -> Iterator[None]:
    original = World.serve

    def serve(self: World, request: Json, online: bool = True) -> Json:
        if request.get("purpose") == "upload":
            return {"status": 503, "headers": {}, "body": ""}
        return original(self, request, online)

    with mock.patch.object(World, "serve", serve):
        yield


@violates("no secret is in the files")
def _written_down() -> Mutant:
    def write(process: Process, _: Json) -> None:
        secrets = json.dumps([*process.world.orgs, *process.world.invariants.secrets])
        (process.device.folder / "log.txt").write_text(secrets)

    return change_reply("session_resume", write)


@violates("every handle and reply is freed")
@contextmanager
def _left_open() -> Iterator[None]:
    kept: list[Process] = []

    def close(process: Process) -> None:
        kept.append(process)

    with mock.patch.object(Process, "give_back", close):
        yield
    for process in kept:
        process.give_back()
