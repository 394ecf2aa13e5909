"""A lie for every invariant: something is falsified, and the watch must notice it.

What the library answers, what stands in its files, what the server stores or what the book says is
made wrong, as a defect would make it. `python -m simulation.lies` says which seed found each lie.
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
from .ledger import TAKEN_BACK
from .peek import Observer, Stored
from .process import Process
from .run import play
from .watch import ID, Watch, bearer_of, claims_of, is_terminal
from .world import World

Json = dict[str, Any]
Lie = AbstractContextManager[object]
#: A lie that so many worlds do not notice is not noticed.
MOST_SEEDS = 80
NOBODY = "00000000-0000-4000-8000-000000000000"

LIES: dict[str, list[Callable[[], Lie]]] = {}


def _lie(rule: str) -> Callable[[Callable[[], Lie]], Callable[[], Lie]]:
    def register(make: Callable[[], Lie]) -> Callable[[], Lie]:
        LIES.setdefault(rule, []).append(make)
        return make

    return register


# How it is done ----------------------------------------------------------------------------------


def _reply(name: str, change: Callable[[Process, Json], object]) -> Lie:
    """Every reply to these calls is changed, before anybody has seen it."""
    honest = Process._decode

    def decode(self: Process, called: str, status: int, reply: bytes | None) -> Json:
        value = honest(self, called, status, reply)
        if called in name.split() and hasattr(self, "opened"):
            change(self, value)
        return value

    return mock.patch.object(Process, "_decode", decode)


def _refusal(name: str, code: str, when: Callable[[Process], bool]) -> Lie:
    """The call is made, and then said to have failed."""

    def refuse(process: Process, _: Json) -> None:
        if when(process):
            raise HoldfastError.of(2, {
                "error": {
                    "code": code, "message": "", "field": None, "retryable": True, "detail": None,
                }
            })  # fmt: skip

    return _reply(name, refuse)


def _decision(change: Callable[[Process, Json], object]) -> Lie:
    """Every decision that an event tells is changed."""

    def told(process: Process, reply: Json) -> None:
        for event in reply["events"]:
            if event["type"] == "decision":
                change(process, event["decision"])

    return _reply("poll", told)


def _request(change: Callable[[Process, Json], object], purpose: str = "") -> Lie:
    """Every request of this purpose is changed."""

    def sent(process: Process, reply: Json) -> None:
        for request in reply["requests"]:
            if request["purpose"] == purpose or not purpose:
                change(process, request)

    return _reply("poll", sent)


def _again(when: Callable[[Process, Json], bool], **changes: str) -> Lie:
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


def _files(statement: str, every: int = 7, name: str = "queue_get poll") -> Lie:
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


def _before(place: type, name: str, first: Callable[..., object]) -> Lie:
    """Something happens just before a method is called."""
    honest = getattr(place, name)

    def both(self: object, *arguments: object, **named: object) -> object:
        first(self, *arguments)
        return honest(self, *arguments, **named)

    return mock.patch.object(place, name, both)


def _stored(change: Callable[[World, Json], object]) -> Lie:
    """The newest row at the server is changed as soon as it is there."""

    def look(watch: Watch) -> None:
        for row in list(watch.world.server.database.stored.values())[watch._seen_rows :]:
            change(watch.world, row)

    return _before(Watch, "row_check", look)


def _is_healthy(process: Process) -> bool:
    return process.world.healed


def _terminal(change: Callable[[Process], object]) -> Lie:
    """Something is so when an answer comes that ends a session."""

    def hand(process: Process, flight: Any, answer: Json) -> None:  # noqa: ANN401
        if is_terminal(flight.request, answer) and process.device.session is not None:
            change(process)

    return _before(Process, "hand_over", hand)


# The session -------------------------------------------------------------------------------------


@_lie("no home while locked")
def _home_at_once() -> Lie:
    def home(_: Process, reply: Json) -> None:
        reply.update(screen="home", org={"id": NOBODY})

    return _reply("session_lock", home)


@_lie("no home while locked")
def _home_after_a_lock() -> Lie:
    return _before(
        Watch, "answered", lambda watch, p, *_: setattr(p.device, "locked_by_user", True)
    )


@_lie("home is in an organisation of the user's")
def _home_elsewhere() -> Lie:
    def elsewhere(_: Process, decision: Json) -> None:
        if decision["org"]:
            decision["org"]["id"] = NOBODY

    return _decision(elsewhere)


@_lie("nothing is shown while locked")
@contextmanager
def _data_while_locked() -> Iterator[None]:
    honest = Process._decode

    def decode(self: Process, name: str, status: int, reply: bytes | None) -> Json:
        try:
            return honest(self, name, status, reply)
        except HoldfastError as error:
            if name == "org_list" and error.code in {"session.locked", "session.none"}:
                return {"orgs": []}
            raise

    with mock.patch.object(Process, "_decode", decode):
        yield


@_lie("nothing is shown while locked")
def _contact_while_locked() -> Lie:
    def poll(process: Process, reply: Json) -> None:
        if not process.device.stored.usable:
            reply["events"].append({"type": "contact", "seq": 0})

    return _reply("poll", poll)


@_lie("only the biometric key unlocks")
def _unlocked_without_the_key() -> Lie:
    return _before(
        Watch, "answered",
        lambda watch, p, *_: setattr(
            watch, "_biometric_loads", p.device.keychain.calls["load", "biometric"]
        ),
    )  # fmt: skip


@_lie("the background time-out locks")
def _away_for_longer() -> Lie:
    def longer(watch: Watch, process: Process, name: str, *_: object) -> None:
        if name == "session_foreground" and process.device.away is not None:
            since, boot = process.device.away
            process.device.away = (since - 400_000, boot)

    return _before(Watch, "answered", longer)


@_lie("a session is of its user")
@contextmanager
def _of_another() -> Iterator[None]:
    honest = Observer.look

    def look(self: Observer, key: Any, before: Stored) -> Stored:  # noqa: ANN401
        after = honest(self, key, before)
        if after.tokens is None:
            return after
        return dataclasses.replace(after, tokens=dataclasses.replace(after.tokens, user=NOBODY))

    with mock.patch.object(Observer, "look", look):
        yield


@_lie("no sign-out without a terminal answer")
def _cleared() -> Lie:
    return _files(
        "UPDATE session SET owner = NULL, wrap_device = NULL, wrap_biometric = NULL, "
        "tokens = NULL, generation = generation + 1",
        every=40,
    )


@_lie("no sign-out without a terminal answer")
def _told_of_an_end() -> Lie:
    def poll(_: Process, reply: Json) -> None:
        reply["events"].append({"type": "session_ended", "seq": 0})

    return _reply("poll", poll)


@_lie("no sign-out without a terminal answer")
def _shown_as_ended() -> Lie:
    return _decision(lambda _, decision: decision.update(screen="sign_in", reason="session_ended"))


@_lie("a late answer ends no other session")
def _ended_by_another() -> Lie:
    return _terminal(lambda process: setattr(process.device, "session", NOBODY))


@_lie("an older token's refusal ends nothing")
def _ended_by_an_older_token() -> Lie:
    def older(process: Process) -> None:
        stored = process.device.stored
        if stored.tokens is not None:
            tokens = dataclasses.replace(stored.tokens, refresh="another")
            process.device.stored = dataclasses.replace(stored, tokens=tokens)

    return _terminal(older)


@_lie("the end of a session is remembered")
@contextmanager
def _forgotten() -> Iterator[None]:
    honest = Observer.look

    def look(self: Observer, key: Any, before: Stored) -> Stored:  # noqa: ANN401
        return dataclasses.replace(honest(self, key, before), ended=None)

    with mock.patch.object(Observer, "look", look):
        yield


@_lie("no file is set aside without a cause")
def _set_aside() -> Lie:
    return _reply(
        "queue_add",
        lambda process, _: (process.device.folder / "holdfast.db.keyless-1").write_bytes(b""),
    )


@_lie("no unexpected error")
def _defect() -> Lie:
    return _refusal("queue_list", "internal.defect", lambda _: True)


# The loop ----------------------------------------------------------------------------------------


@_lie("every wait is resolved")
def _never_told() -> Lie:
    return _reply(
        "poll",
        lambda _, reply: reply.update(
            events=[event for event in reply["events"] if event["type"] != "decision"]
        ),
    )


@_lie("wake_in_ms is not in the past")
def _in_the_past() -> Lie:
    return _reply("poll", lambda _, reply: reply.update(wake_in_ms=-1))


@_lie("wake_in_ms is not in the past")
def _always_now() -> Lie:
    return _reply("poll", lambda _, reply: reply.update(wake_in_ms=0))


@_lie("no busy loop")
def _always_soon() -> Lie:
    return _reply("poll", lambda _, reply: reply.update(wake_in_ms=1))


@_lie("no refresh storm")
def _storm() -> Lie:
    def poll(_: Process, reply: Json) -> None:
        for request in list(reply["requests"]):
            if request["purpose"] == "refresh":
                reply["requests"] += [request] * 15

    return _reply("poll", poll)


@_lie("one process at a time")
def _both_at_once() -> Lie:
    def poll(process: Process, reply: Json) -> None:
        for other in process.device.alive:
            for flight in other.flights:
                if flight.request["purpose"] == "refresh" and other is not process:
                    reply["requests"].append(flight.request)

    return _reply("poll", poll)


# Whose requests ----------------------------------------------------------------------------------


@_lie("only what was left is revoked")
def _revoked() -> Lie:
    return _request(lambda _, request: request.update(purpose="revoke"), "guard")


@_lie("nothing is asked for while locked")
def _asked_while_locked() -> Lie:
    return _again(lambda process, _: not process.device.stored.usable, purpose="guard")


@_lie("no request with another session's token")
def _another_session() -> Lie:
    def is_former(process: Process, request: Json) -> bool:
        session = process.world.session_of(request)
        return process.device.stored.usable and session in process.device.former

    return _again(is_former, purpose="guard")


@_lie("no request with the wrong user's token")
def _another_user() -> Lie:
    def another(_: Process, request: Json) -> None:
        request["url"] = re.sub(
            "user_id=eq[.][0-9a-f-]{36}", f"user_id=eq.{NOBODY}", request["url"]
        )

    return _request(another, "guard")


@_lie("no request with the wrong user's token")
def _another_owner() -> Lie:
    def another(process: Process, request: Json) -> None:
        if request["body"]:
            bearer = bearer_of(request)
            assert bearer is not None
            request["body"] = request["body"].replace(claims_of(bearer)["sub"], NOBODY)

    return _request(another, "upload")


@_lie("a row is in its organisation")
def _another_organisation() -> Lie:
    def another(process: Process, request: Json) -> None:
        for org in process.world.orgs:
            request["body"] = request["body"] and request["body"].replace(org, NOBODY)

    return _request(another, "upload")


@_lie("a batch is sorted by id")
def _unsorted() -> Lie:
    def backwards(_: Process, request: Json) -> None:
        body = json.loads(request["body"] or "[]")
        (body["items"] if isinstance(body, dict) else body).reverse()
        request["body"] = json.dumps(body)

    return _request(backwards, "upload")


@_lie("what was taken back is not sent")
def _taken_back() -> Lie:
    def is_taken_back(process: Process, request: Json) -> bool:
        device, ledger = process.device, process.world.ledger
        if not device.stored.usable or process.world.session_of(request) != device.session:
            return False
        ids = re.findall(ID, request["body"] or "") if request["purpose"] == "upload" else []
        entries = [ledger.get(device.name, device.user, item) for item in ids]
        return any(entry is not None and entry.state == TAKEN_BACK for entry in entries)

    return _again(is_taken_back)


# The queue ---------------------------------------------------------------------------------------


@_lie("nothing acknowledged is lost")
def _dropped() -> Lie:
    return _files("DELETE FROM queue WHERE seq = (SELECT max(seq) FROM queue)")


@_lie("nothing acknowledged is lost")
def _gone_at_the_end() -> Lie:
    def lose(process: Process, reply: Json) -> None:
        reply["item"] = None

    return _reply("queue_get", lose)


@_lie("nothing acknowledged is lost")
def _unstored() -> Lie:
    def empty(*_: object) -> dict[str, Any]:
        return {}

    return mock.patch.object(World, "stored_ids", empty)


@_lie("nothing unknown is queued")
def _somebody_elses() -> Lie:
    return _files("UPDATE queue SET owner = x'00112233'", every=20)


@_lie("nothing is counted twice")
def _counted_twice() -> Lie:
    return _reply("summary_get", lambda _, reply: reply["queued"].update(activities=5000))


@_lie("nothing is counted twice or not at all")
def _not_counted() -> Lie:
    def fewer(_: Process, reply: Json) -> None:
        reply["sent"]["minutes"] -= 1

    return _reply("summary_get", fewer)


@_lie("an item is parked for a true reason")
def _untrue() -> Lie:
    return _parked_for("conflict")


@_lie("what a healthy server takes is not parked")
def _parked_for_nothing() -> Lie:
    return _parked_for("too_long")


def _parked_for(code: str) -> Lie:
    def blame(_: Process, reply: Json) -> None:
        for item in reply["items"]:
            if item["state"] == "parked":
                item["reason"]["code"] = code

    return _reply("queue_list", blame)


@_lie("an item is as the user wrote it")
def _another_text() -> Lie:
    def more(_: Process, reply: Json) -> None:
        for item in reply["items"]:
            item["payload"]["minutes"] = 7

    return _reply("queue_list", more)


@_lie("an edit is not lost")
@contextmanager
def _edited_in_vain() -> Iterator[None]:
    honest = Process.ask

    def ask(self: Process, name: str, request: Json | None = None) -> Json | None:
        if name == "queue_edit":
            return {"id": (request or {})["id"], "state": "pending"}
        return honest(self, name, request)

    with mock.patch.object(Process, "ask", ask):
        yield


@_lie("the queue can be listed")
def _unlisted() -> Lie:
    return _refusal("queue_list", "keystore.failed", _is_healthy)


# The server --------------------------------------------------------------------------------------


@_lie("rows stay")
def _vanished() -> Lie:
    def vanish(watch: Watch) -> None:
        stored = watch.world.server.database.stored
        if len(stored) > 2:
            del stored[next(iter(stored))]

    return _before(Watch, "row_check", vanish)


@_lie("only what was acknowledged is stored")
def _stranger() -> Lie:
    def insert(watch: Watch) -> None:
        database = watch.world.server.database
        if len(database.stored) == 2:
            row = next(iter(database.stored.values()))
            values = {**row, "id": NOBODY, "note": "a stranger's", "follows": None}
            database.insert(TABLES["activities"], values, SERVICE, None)

    return _before(Watch, "row_check", insert)


@_lie("a row is in its organisation")
def _moved() -> Lie:
    return _stored(lambda _, row: row.update(org_id=NOBODY))


@_lie("a row is as the user wrote it")
def _changed() -> Lie:
    return _stored(lambda _, row: row.update(minutes=row["minutes"] + 1))


@_lie("no item is stored twice")
@contextmanager
def _same_again() -> Iterator[None]:
    honest = actions._payload

    def payload(*arguments: Any) -> Json:  # noqa: ANN401
        return {
            **honest(*arguments),
            **({"note": "the same"} if arguments[3] == "activity" else {}),
        }

    with mock.patch.object(actions, "_payload", payload):
        yield


# What is cached ----------------------------------------------------------------------------------


def _found(change: Callable[[Process, list[Json]], object]) -> Lie:
    return _reply("contact_search", lambda process, reply: change(process, reply["contacts"]))


@_lie("contacts are of one's own organisations")
def _foreign() -> Lie:
    def add(process: Process, contacts: list[Json]) -> None:
        tokens = process.device.stored.tokens
        own = process.world.orgs_of(tokens.user) if tokens else []
        rows = process.world.server.database.rows["contacts"].values()
        contacts += [{"id": row["id"]} for row in rows if row["org_id"] not in own]

    return _found(add)


@_lie("withheld columns are not cached")
def _withheld() -> Lie:
    return _found(lambda _, contacts: [contact.update(phone="1") for contact in contacts])


@_lie("the cache follows the server")
def _missing() -> Lie:
    return _found(lambda _, contacts: contacts.clear())


@_lie("the cache follows the server")
def _outdated() -> Lie:
    return _found(lambda _, contacts: [contact.update(name="Another") for contact in contacts])


@_lie("the cache follows the server")
def _kept() -> Lie:
    return _found(lambda _, contacts: contacts.append({"id": NOBODY}))


@_lie("the cache follows the server")
def _too_many() -> Lie:
    return _reply("contact_search", lambda _, reply: reply.update(total=201))


@_lie("the summary follows the server")
def _no_summary() -> Lie:
    return _reply("summary_get", lambda _, reply: reply.update(summary=None))


# The end -----------------------------------------------------------------------------------------


@_lie("a healthy device opens its files")
@contextmanager
def _does_not_open() -> Iterator[None]:
    honest = Device.start

    def start(self: Device) -> Process | None:
        return None if self.world.healed else honest(self)

    with mock.patch.object(Device, "start", start):
        yield


@_lie("a healthy user signs in")
def _kept_out() -> Lie:
    return _refusal("session_start", "keystore.failed", _is_healthy)


@_lie("a healthy member has an organisation")
def _no_organisation() -> Lie:
    def revoke(process: Process, decision: Json) -> None:
        for org in decision["orgs"]:
            org["status"] = "revoked"

    return _decision(revoke)


@_lie("a healthy user comes home")
def _sent_away() -> Lie:
    def away(process: Process, decision: Json) -> None:
        if process.world.healed:
            decision.update(screen="sign_in")

    return _decision(away)


@_lie("a healthy user stays")
def _sent_away_later() -> Lie:
    def away(world: World, duration_ms: int) -> None:
        for process in world.processes():
            if world.healed and process.shown is not None:
                process.shown["org"] = None

    return _before(World, "sleep", away)


@_lie("everything drains")
@contextmanager
def _out_of_order() -> Iterator[None]:
    honest = World.serve

    def serve(self: World, request: Json, online: bool = True) -> Json:
        if request.get("purpose") == "upload":
            return {"status": 503, "headers": {}, "body": ""}
        return honest(self, request, online)

    with mock.patch.object(World, "serve", serve):
        yield


@_lie("no secret is in the files")
def _written_down() -> Lie:
    def write(process: Process, _: Json) -> None:
        secrets = json.dumps([*process.world.orgs, *process.world.watch.secrets])
        (process.device.folder / "log.txt").write_text(secrets)

    return _reply("session_resume", write)


@_lie("nothing is left behind")
@contextmanager
def _left_open() -> Iterator[None]:
    kept: list[Process] = []

    def close(process: Process) -> None:
        kept.append(process)

    with mock.patch.object(Process, "give_back", close):
        yield
    for process in kept:
        process.give_back()


# Telling them -------------------------------------------------------------------------------------


def find(make: Callable[[], Lie], rule: str, library: Library) -> int | None:
    """The first seed that notices the lie; None: no seed does."""
    for seed in range(MOST_SEEDS):
        with make():
            noticed = play(seed, library).rule
        if noticed == rule:
            return seed
    return None


def main() -> int:
    """Tell every lie, or those against the rules that are given: a line of JSON for each."""
    library = Library(program.ROOT / "build" / "lib" / "libholdfast.so")
    wanted = sys.argv[1:] or list(LIES)
    for rule in wanted:
        for make in LIES[rule]:
            line = {"rule": rule, "lie": make.__name__, "seed": find(make, rule, library)}
            print(json.dumps(line), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
