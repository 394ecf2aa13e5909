"""Mutants: for every invariant at least one injected violation that the checker must report.

A mutant falsifies a reply, a file, a stored row or the ledger in the way a defect would.
`python -m simulation.mutants` prints the seed that kills each one.
"""

from __future__ import annotations

import dataclasses
import json
import re
import sqlite3
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any
from unittest import mock

from holdfast import HoldfastError, Library

from memory_supabase.database import SERVICE
from memory_supabase.schema import TABLES

from . import __main__ as program
from . import actions
from .device import Device
from .invariants import ID, InvariantChecker, bearer_of, claims_of, is_terminal
from .ledger import TAKEN_BACK
from .observer import Observer, Stored
from .process import Process
from .run import play
from .world import World

Json = dict[str, Any]
Mutant = AbstractContextManager[object]
#: A mutant that survives this many seeds counts as not killed.
MAX_SEEDS = 80
NOBODY = "00000000-0000-4000-8000-000000000000"

MUTANTS: dict[str, list[Callable[[], Mutant]]] = {}


def violates(rule: str) -> Callable[[Callable[[], Mutant]], Callable[[], Mutant]]:
    def register(make: Callable[[], Mutant]) -> Callable[[], Mutant]:
        MUTANTS.setdefault(rule, []).append(make)
        return make

    return register


# How it is done ----------------------------------------------------------------------------------


def _reply(name: str, change: Callable[[Process, Json], object]) -> Mutant:
    """Every reply to these calls is changed, before anybody has seen it."""
    original = Process._decode

    def decode(self: Process, called: str, status: int, reply: bytes | None) -> Json:
        value = original(self, called, status, reply)
        if called in name.split() and hasattr(self, "opened"):
            change(self, value)
        return value

    return mock.patch.object(Process, "_decode", decode)


def _refusal(name: str, code: str, when: Callable[[Process], bool]) -> Mutant:
    """The call is made, and then said to have failed."""

    def refuse(process: Process, _: Json) -> None:
        if when(process):
            raise HoldfastError.of(2, {
                "error": {
                    "code": code, "message": "", "field": None, "retryable": True, "detail": None,
                }
            })  # fmt: skip

    return _reply(name, refuse)


def _decision(change: Callable[[Process, Json], object]) -> Mutant:
    """Every decision that an event tells is changed."""

    def change_decisions(process: Process, reply: Json) -> None:
        for event in reply["events"]:
            if event["type"] == "decision":
                change(process, event["decision"])

    return _reply("poll", change_decisions)


def _request(change: Callable[[Process, Json], object], purpose: str = "") -> Mutant:
    """Every request of this purpose is changed."""

    def change_requests(process: Process, reply: Json) -> None:
        for request in reply["requests"]:
            if request["purpose"] == purpose or not purpose:
                change(process, request)

    return _reply("poll", change_requests)


def _again(when: Callable[[Process, Json], bool], **changes: str) -> Mutant:
    """Requests that there were come once more, when it is wrong to make them."""
    seen: dict[str, Json] = {}

    def poll(process: Process, reply: Json) -> None:
        device = process.device
        for request in seen.values():
            if request["device"] == id(device) and when(process, request):
                reply["requests"].append({**request, "id": 900_000, **changes})
        for request in reply["requests"]:
            seen[request["purpose"]] = {**request, "device": id(device)}

    return _reply("poll", poll)


def _files(statement: str, every: int = 7, name: str = "queue_get poll") -> Mutant:
    """The device's file is changed behind the library's back."""
    count = 0

    def change(process: Process, _: Json) -> None:
        nonlocal count
        count += 1
        if count % every == 0:
            with sqlite3.connect(process.device.folder / "holdfast.db") as database:
                database.execute(statement)
            database.close()

    return _reply(name, change)


def _before(place: type, name: str, first: Callable[..., object]) -> Mutant:
    """Something happens just before a method is called."""
    original = getattr(place, name)

    def both(self: object, *arguments: object, **named: object) -> object:
        first(self, *arguments)
        return original(self, *arguments, **named)

    return mock.patch.object(place, name, both)


def _stored(change: Callable[[World, Json], object]) -> Mutant:
    """The newest row at the server is changed as soon as it is there."""

    def look(checker: InvariantChecker) -> None:
        for row in list(checker.world.server.database.stored.values())[checker.seen_rows :]:
            change(checker.world, row)

    return _before(InvariantChecker, "row_check", look)


def _is_healthy(process: Process) -> bool:
    return process.world.healed


def _terminal(change: Callable[[Process], object]) -> Mutant:
    """Something is so when an answer comes that ends a session."""

    def hand(process: Process, sent: Any, answer: Json) -> None:  # noqa: ANN401
        if is_terminal(sent.request, answer) and process.device.session is not None:
            change(process)

    return _before(Process, "hand_over", hand)


# The session -------------------------------------------------------------------------------------


@violates("no home while locked")
def _home_at_once() -> Mutant:
    def home(_: Process, reply: Json) -> None:
        reply.update(screen="home", org={"id": NOBODY})

    return _reply("session_lock", home)


@violates("no home while locked")
def _home_after_a_lock() -> Mutant:
    return _before(
        InvariantChecker,
        "answered",
        lambda checker, p, *_: setattr(p.device, "locked_by_user", True),
    )


@violates("home is in an organisation of the user's")
def _home_elsewhere() -> Mutant:
    def elsewhere(_: Process, decision: Json) -> None:
        if decision["org"]:
            decision["org"]["id"] = NOBODY

    return _decision(elsewhere)


@violates("nothing is shown while locked")
@contextmanager
def _data_while_locked() -> Iterator[None]:
    original = Process._decode

    def decode(self: Process, name: str, status: int, reply: bytes | None) -> Json:
        try:
            return original(self, name, status, reply)
        except HoldfastError as error:
            if name == "org_list" and error.code in {"session.locked", "session.none"}:
                return {"orgs": []}
            raise

    with mock.patch.object(Process, "_decode", decode):
        yield


@violates("nothing is shown while locked")
def _contact_while_locked() -> Mutant:
    def poll(process: Process, reply: Json) -> None:
        if not process.device.stored.usable:
            reply["events"].append({"type": "contact", "seq": 0})

    return _reply("poll", poll)


@violates("only the biometric key unlocks")
def _unlocked_without_the_key() -> Mutant:
    return _before(
        InvariantChecker, "answered",
        lambda checker, p, *_: setattr(
            checker, "biometric_loads", p.device.keychain.calls["load", "biometric"]
        ),
    )  # fmt: skip


@violates("the background time-out locks")
def _away_for_longer() -> Mutant:
    def longer(checker: InvariantChecker, process: Process, name: str, *_: object) -> None:
        if name == "session_foreground" and process.device.away is not None:
            since, boot = process.device.away
            process.device.away = (since - 400_000, boot)

    return _before(InvariantChecker, "answered", longer)


@violates("a session is of its user")
@contextmanager
def _of_another() -> Iterator[None]:
    original = Observer.look

    def look(self: Observer, key: Any, before: Stored) -> Stored:  # noqa: ANN401
        after = original(self, key, before)
        if after.tokens is None:
            return after
        return dataclasses.replace(after, tokens=dataclasses.replace(after.tokens, user=NOBODY))

    with mock.patch.object(Observer, "look", look):
        yield


@violates("no sign-out without a terminal answer")
def _cleared() -> Mutant:
    return _files(
        "UPDATE session SET owner = NULL, wrap_device = NULL, wrap_biometric = NULL, "
        "tokens = NULL, generation = generation + 1",
        every=40,
    )


@violates("no sign-out without a terminal answer")
def _told_of_an_end() -> Mutant:
    def poll(_: Process, reply: Json) -> None:
        reply["events"].append({"type": "session_ended", "seq": 0})

    return _reply("poll", poll)


@violates("no sign-out without a terminal answer")
def _shown_as_ended() -> Mutant:
    return _decision(lambda _, decision: decision.update(screen="sign_in", reason="session_ended"))


@violates("a late answer ends no other session")
def _ended_by_another() -> Mutant:
    return _terminal(lambda process: setattr(process.device, "session", NOBODY))


@violates("an older token's refusal ends nothing")
def _ended_by_an_older_token() -> Mutant:
    def older(process: Process) -> None:
        stored = process.device.stored
        if stored.tokens is not None:
            tokens = dataclasses.replace(stored.tokens, refresh="another")
            process.device.stored = dataclasses.replace(stored, tokens=tokens)

    return _terminal(older)


@violates("the end of a session is remembered")
@contextmanager
def _forgotten() -> Iterator[None]:
    original = Observer.look

    def look(self: Observer, key: Any, before: Stored) -> Stored:  # noqa: ANN401
        return dataclasses.replace(original(self, key, before), ended=None)

    with mock.patch.object(Observer, "look", look):
        yield


@violates("no file is set aside without a cause")
def _set_aside() -> Mutant:
    return _reply(
        "queue_add",
        lambda process, _: (process.device.folder / "holdfast.db.keyless-1").write_bytes(b""),
    )


@violates("no unexpected error")
def _defect() -> Mutant:
    return _refusal("queue_list", "internal.defect", lambda _: True)


# The loop ----------------------------------------------------------------------------------------


@violates("every wait is resolved")
def _never_told() -> Mutant:
    return _reply(
        "poll",
        lambda _, reply: reply.update(
            events=[event for event in reply["events"] if event["type"] != "decision"]
        ),
    )


@violates("wake_in_ms is not in the past")
def _in_the_past() -> Mutant:
    return _reply("poll", lambda _, reply: reply.update(wake_in_ms=-1))


@violates("wake_in_ms is not in the past")
def _always_now() -> Mutant:
    return _reply("poll", lambda _, reply: reply.update(wake_in_ms=0))


@violates("no busy loop")
def _always_soon() -> Mutant:
    return _reply("poll", lambda _, reply: reply.update(wake_in_ms=1))


@violates("no refresh storm")
def _storm() -> Mutant:
    def poll(_: Process, reply: Json) -> None:
        for request in list(reply["requests"]):
            if request["purpose"] == "refresh":
                reply["requests"] += [request] * 15

    return _reply("poll", poll)


@violates("one process at a time")
def _both_at_once() -> Mutant:
    def poll(process: Process, reply: Json) -> None:
        for other in process.device.alive:
            for sent in other.in_flight:
                if sent.request["purpose"] == "refresh" and other is not process:
                    reply["requests"].append(sent.request)

    return _reply("poll", poll)


# Whose requests ----------------------------------------------------------------------------------


@violates("only what was left is revoked")
def _revoked() -> Mutant:
    return _request(lambda _, request: request.update(purpose="revoke"), "guard")


@violates("nothing is asked for while locked")
def _asked_while_locked() -> Mutant:
    return _again(lambda process, _: not process.device.stored.usable, purpose="guard")


@violates("no request with another session's token")
def _another_session() -> Mutant:
    def is_former(process: Process, request: Json) -> bool:
        session = process.world.session_of(request)
        return process.device.stored.usable and session in process.device.former

    return _again(is_former, purpose="guard")


@violates("no request with the wrong user's token")
def _another_user() -> Mutant:
    def another(_: Process, request: Json) -> None:
        request["url"] = re.sub(
            "user_id=eq[.][0-9a-f-]{36}", f"user_id=eq.{NOBODY}", request["url"]
        )

    return _request(another, "guard")


@violates("no request with the wrong user's token")
def _another_owner() -> Mutant:
    def another(process: Process, request: Json) -> None:
        if request["body"]:
            bearer = bearer_of(request)
            assert bearer is not None
            request["body"] = request["body"].replace(claims_of(bearer)["sub"], NOBODY)

    return _request(another, "upload")


@violates("a row is in its organisation")
def _another_organisation() -> Mutant:
    def another(process: Process, request: Json) -> None:
        for org in process.world.orgs:
            request["body"] = request["body"] and request["body"].replace(org, NOBODY)

    return _request(another, "upload")


@violates("a batch is sorted by id")
def _unsorted() -> Mutant:
    def backwards(_: Process, request: Json) -> None:
        body = json.loads(request["body"] or "[]")
        (body["items"] if isinstance(body, dict) else body).reverse()
        request["body"] = json.dumps(body)

    return _request(backwards, "upload")


@violates("what was taken back is not sent")
def _taken_back() -> Mutant:
    def is_taken_back(process: Process, request: Json) -> bool:
        device, ledger = process.device, process.world.ledger
        if not device.stored.usable or process.world.session_of(request) != device.session:
            return False
        ids = re.findall(ID, request["body"] or "") if request["purpose"] == "upload" else []
        entries = [ledger.get(device.name, device.user, item) for item in ids]
        return any(entry is not None and entry.state == TAKEN_BACK for entry in entries)

    return _again(is_taken_back)


# The queue ---------------------------------------------------------------------------------------


@violates("nothing acknowledged is lost")
def _dropped() -> Mutant:
    return _files("DELETE FROM queue WHERE seq = (SELECT max(seq) FROM queue)")


@violates("nothing acknowledged is lost")
def _gone_at_the_end() -> Mutant:
    def lose(process: Process, reply: Json) -> None:
        reply["item"] = None

    return _reply("queue_get", lose)


@violates("nothing acknowledged is lost")
def _unstored() -> Mutant:
    def empty(*_: object) -> dict[str, Any]:
        return {}

    return mock.patch.object(World, "stored_ids", empty)


@violates("nothing unknown is queued")
def _somebody_elses() -> Mutant:
    return _files("UPDATE queue SET owner = x'00112233'", every=20)


@violates("nothing is counted twice")
def _counted_twice() -> Mutant:
    return _reply("summary_get", lambda _, reply: reply["queued"].update(activities=5000))


@violates("nothing is counted twice or not at all")
def _not_counted() -> Mutant:
    def fewer(_: Process, reply: Json) -> None:
        reply["sent"]["minutes"] -= 1

    return _reply("summary_get", fewer)


@violates("an item is parked for a true reason")
def _untrue() -> Mutant:
    return _parked_for("conflict")


@violates("what a healthy server takes is not parked")
def _parked_for_nothing() -> Mutant:
    return _parked_for("too_long")


def _parked_for(code: str) -> Mutant:
    def blame(_: Process, reply: Json) -> None:
        for item in reply["items"]:
            if item["state"] == "parked":
                item["reason"]["code"] = code

    return _reply("queue_list", blame)


@violates("an item is as the user wrote it")
def _another_text() -> Mutant:
    def more(_: Process, reply: Json) -> None:
        for item in reply["items"]:
            item["payload"]["minutes"] = 7

    return _reply("queue_list", more)


@violates("an edit is not lost")
@contextmanager
def _edited_in_vain() -> Iterator[None]:
    original = Process.ask

    def ask(self: Process, name: str, request: Json | None = None) -> Json | None:
        if name == "queue_edit":
            return {"id": (request or {})["id"], "state": "pending"}
        return original(self, name, request)

    with mock.patch.object(Process, "ask", ask):
        yield


@violates("the queue can be listed")
def _unlisted() -> Mutant:
    return _refusal("queue_list", "keystore.failed", _is_healthy)


# The server --------------------------------------------------------------------------------------


@violates("rows stay")
def _vanished() -> Mutant:
    def vanish(checker: InvariantChecker) -> None:
        stored = checker.world.server.database.stored
        if len(stored) > 2:
            del stored[next(iter(stored))]

    return _before(InvariantChecker, "row_check", vanish)


@violates("only what was acknowledged is stored")
def _stranger() -> Mutant:
    def insert(checker: InvariantChecker) -> None:
        database = checker.world.server.database
        if len(database.stored) == 2:
            row = next(iter(database.stored.values()))
            values = {**row, "id": NOBODY, "note": "a stranger's", "follows": None}
            database.insert(TABLES["activities"], values, SERVICE, None)

    return _before(InvariantChecker, "row_check", insert)


@violates("a row is in its organisation")
def _moved() -> Mutant:
    return _stored(lambda _, row: row.update(org_id=NOBODY))


@violates("a row is as the user wrote it")
def _changed() -> Mutant:
    return _stored(lambda _, row: row.update(minutes=row["minutes"] + 1))


@violates("no item is stored twice")
@contextmanager
def _same_again() -> Iterator[None]:
    original = actions._payload

    def payload(*arguments: Any) -> Json:  # noqa: ANN401
        return {
            **original(*arguments),
            **({"note": "the same"} if arguments[3] == "activity" else {}),
        }

    with mock.patch.object(actions, "_payload", payload):
        yield


# What is cached ----------------------------------------------------------------------------------


def _found(change: Callable[[Process, list[Json]], object]) -> Mutant:
    return _reply("contact_search", lambda process, reply: change(process, reply["contacts"]))


@violates("contacts are of one's own organisations")
def _foreign() -> Mutant:
    def add(process: Process, contacts: list[Json]) -> None:
        tokens = process.device.stored.tokens
        own = process.world.orgs_of(tokens.user) if tokens else []
        rows = process.world.server.database.rows["contacts"].values()
        contacts += [{"id": row["id"]} for row in rows if row["org_id"] not in own]

    return _found(add)


@violates("withheld columns are not cached")
def _withheld() -> Mutant:
    return _found(lambda _, contacts: [contact.update(phone="1") for contact in contacts])


@violates("the cache follows the server")
def _missing() -> Mutant:
    return _found(lambda _, contacts: contacts.clear())


@violates("the cache follows the server")
def _outdated() -> Mutant:
    return _found(lambda _, contacts: [contact.update(name="Another") for contact in contacts])


@violates("the cache follows the server")
def _kept() -> Mutant:
    return _found(lambda _, contacts: contacts.append({"id": NOBODY}))


@violates("the cache follows the server")
def _too_many() -> Mutant:
    return _reply("contact_search", lambda _, reply: reply.update(total=201))


@violates("the summary follows the server")
def _no_summary() -> Mutant:
    return _reply("summary_get", lambda _, reply: reply.update(summary=None))


# The end -----------------------------------------------------------------------------------------


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
    return _refusal("session_start", "keystore.failed", _is_healthy)


@violates("a healthy member has an organisation")
def _no_organisation() -> Mutant:
    def revoke(process: Process, decision: Json) -> None:
        for org in decision["orgs"]:
            org["status"] = "revoked"

    return _decision(revoke)


@violates("a healthy user comes home")
def _sent_away() -> Mutant:
    def away(process: Process, decision: Json) -> None:
        if process.world.healed:
            decision.update(screen="sign_in")

    return _decision(away)


@violates("a healthy user stays")
def _sent_away_later() -> Mutant:
    def away(world: World, duration_ms: int) -> None:
        for process in world.processes():
            if world.healed and process.shown is not None:
                process.shown["org"] = None

    return _before(World, "sleep", away)


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

    return _reply("session_resume", write)


@violates("nothing is left behind")
@contextmanager
def _left_open() -> Iterator[None]:
    kept: list[Process] = []

    def close(process: Process) -> None:
        kept.append(process)

    with mock.patch.object(Process, "give_back", close):
        yield
    for process in kept:
        process.give_back()


# Running them -------------------------------------------------------------------------------------


def find(make: Callable[[], Mutant], rule: str, library: Library) -> int | None:
    """The first seed that reports this violation; None when no seed does."""
    for seed in range(MAX_SEEDS):
        with make():
            noticed = play(seed, library).rule
        if noticed == rule:
            return seed
    return None


def main() -> int:
    """Run the mutants of the given rules, or all; print a line of JSON for each."""
    library = Library(program.ROOT / "build" / "lib" / "libholdfast.so")
    wanted = sys.argv[1:] or list(MUTANTS)
    for rule in wanted:
        for make in MUTANTS[rule]:
            line = {"rule": rule, "mutant": make.__name__, "seed": find(make, rule, library)}
            print(json.dumps(line), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
