"""Mutants of the invariants about the queue, the rows at the server and the cache."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

from memory_supabase.database import SERVICE
from memory_supabase.schema import TABLES

from ..actions import steps
from ..device import Device
from ..invariants import InvariantChecker
from ..observer import Observer, Stored
from ..process import Process
from ..world import World
from .injection import (
    NOBODY,
    Json,
    Mutant,
    change_file,
    change_reply,
    change_request,
    change_row,
    fail_call,
    is_healthy,
    run_before,
    violates,
)

# The queue ----------------------------------------------------------------------------------------


@violates("nothing acknowledged is lost")
def _dropped() -> Mutant:
    return change_file("DELETE FROM queue WHERE seq = (SELECT max(seq) FROM queue)")


@violates("nothing acknowledged is lost")
def _gone_at_the_end() -> Mutant:
    def lose(process: Process, reply: Json) -> None:
        reply["item"] = None

    return change_reply("queue_get", lose)


@violates("nothing acknowledged is lost")
def _unstored() -> Mutant:
    def empty(*_: object) -> dict[str, Any]:
        return {}

    return mock.patch.object(World, "stored_ids", empty)


@violates("nothing acknowledged is lost")
@contextmanager
def _left_in_the_file_that_was_set_aside() -> Iterator[None]:
    """The key store does not find the device key for a while; the items are not carried over."""
    look = Observer.look

    def empty(self: Observer, key: Any, before: Stored) -> Stored:  # noqa: ANN401
        after = look(self, key, before)
        if not any(after.carried.values()):
            return after
        with sqlite3.connect(self.path) as database:
            database.execute("DELETE FROM queue")
        database.close()
        return look(self, key, after)

    with _keys_are_hidden(), mock.patch.object(Observer, "look", empty):
        yield


@violates("items return with their key")
@contextmanager
def _forgotten_in_the_file_that_was_set_aside() -> Iterator[None]:
    """The main file does not list the files that were set aside."""
    forget = change_file("UPDATE meta SET value = '{}' WHERE name = 'keyless'")
    with _keys_are_hidden(), forget:
        yield


def _keys_are_hidden() -> Mutant:
    """No defect: a device with items starts while the key store finds nothing."""
    start = Device.start

    def hide(self: Device) -> Process | None:
        if self.stored.queued and not self.set_aside:
            self.hide_keys(self.world.now_ms + 60_000)
        return start(self)

    return mock.patch.object(Device, "start", hide)


@violates("nothing unknown is queued")
def _somebody_elses() -> Mutant:
    return change_file("UPDATE queue SET owner = x'00112233'", every=20)


@violates("nothing is counted twice")
def _counted_twice() -> Mutant:
    return change_reply("summary_get", lambda _, reply: reply["queued"].update(activities=5000))


@violates("every item is counted exactly once")
def _not_counted() -> Mutant:
    def fewer(_: Process, reply: Json) -> None:
        reply["sent"]["minutes"] -= 1

    return change_reply("summary_get", fewer)


@violates("an item is parked for a true reason")
def _untrue() -> Mutant:
    return _parked_for("conflict")


@violates("an item that a healthy server accepts is not parked")
def _parked_for_nothing() -> Mutant:
    return _parked_for("too_long")


def _parked_for(code: str) -> Mutant:
    def blame(_: Process, reply: Json) -> None:
        for item in reply["items"]:
            if item["state"] == "parked":
                item["reason"]["code"] = code

    return change_reply("queue_list", blame)


@violates("an item is as the user wrote it")
def _another_text() -> Mutant:
    def more(_: Process, reply: Json) -> None:
        for item in reply["items"]:
            item["payload"]["minutes"] = 7

    return change_reply("queue_list", more)


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
    return fail_call("queue_list", "keystore.failed", is_healthy)


# The server ---------------------------------------------------------------------------------------


@violates("stored rows never disappear")
def _vanished() -> Mutant:
    def vanish(checker: InvariantChecker) -> None:
        stored = checker.world.server.database.stored
        if len(stored) > 2:
            del stored[next(iter(stored))]

    return run_before(InvariantChecker, "row_check", vanish)


@violates("only what was acknowledged is stored")
def _stranger() -> Mutant:
    def insert(checker: InvariantChecker) -> None:
        database = checker.world.server.database
        if len(database.stored) == 2:
            row = next(iter(database.stored.values()))
            values = {**row, "id": NOBODY, "note": "a stranger's", "follows": None}
            database.insert(TABLES["activities"], values, SERVICE, None)

    return run_before(InvariantChecker, "row_check", insert)


@violates("a row belongs to its organisation")
def _moved() -> Mutant:
    return change_row(lambda _, row: row.update(org_id=NOBODY))


@violates("a row is as the user wrote it")
def _changed() -> Mutant:
    return change_row(lambda _, row: row.update(minutes=row["minutes"] + 1))


@violates("a row is as the user wrote it")
def _without_a_column() -> Mutant:
    def strip(_: Process, request: Json) -> None:
        body = json.loads(request["body"] or "[]")
        for row in body["items"] if isinstance(body, dict) else body:
            if "note" in row:
                row["note"] = None
        request["body"] = request["body"] and json.dumps(body)

    return change_request(strip, "upload")


@violates("no item is stored twice")
@contextmanager
def _same_again() -> Iterator[None]:
    original = steps.make_payload

    def payload(*arguments: Any) -> Json:  # noqa: ANN401
        return {
            **original(*arguments),
            **({"note": "the same"} if arguments[3] == "activity" else {}),
        }

    with mock.patch.object(steps, "make_payload", payload):
        yield


# The cache ----------------------------------------------------------------------------------------


def _found(change: Callable[[Process, list[Json]], object]) -> Mutant:
    return change_reply("contact_search", lambda process, reply: change(process, reply["contacts"]))


@violates("contacts belong to the user's organisations")
def _foreign() -> Mutant:
    def add(process: Process, contacts: list[Json]) -> None:
        tokens = process.device.stored.tokens
        own = process.world.orgs_of(tokens.user) if tokens else []
        rows = process.world.server.database.rows["contacts"].values()
        contacts += [{"id": row["id"]} for row in rows if row["org_id"] not in own]

    return _found(add)


@violates("network-only columns are not cached")
def _network_only() -> Mutant:
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
    return change_reply("contact_search", lambda _, reply: reply.update(total=201))


@violates("the summary follows the server")
def _no_summary() -> Mutant:
    return change_reply("summary_get", lambda _, reply: reply.update(summary=None))
