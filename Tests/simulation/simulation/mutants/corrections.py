"""Mutants of the invariants about corrections: what a library does that breaks their rules."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

from ..corrections import Corrections, is_correction
from ..network import InFlightRequest
from ..process import Process
from ..world import World
from .injection import Json, Mutant, change_reply, change_request, run_before, violates


def _change_corrections(change: Any) -> Mutant:  # noqa: ANN401 - a function of a request
    def only(process: Process, request: Json) -> None:
        if is_correction(request) and request["method"] == "PATCH":
            change(process, request)

    return change_request(only, "upload")


def _change_answers(change: Any) -> Mutant:  # noqa: ANN401 - a function of a request and its answer
    """Change the answers to uploads before the library gets them."""
    original = Process.hand_over

    def hand(self: Process, sent: InFlightRequest, answer: Json) -> None:
        if sent.request["purpose"] == "upload" and answer.get("status") == 200:
            answer = change(self, sent.request, answer) or answer
        original(self, sent, answer)

    return mock.patch.object(Process, "hand_over", hand)


@violates("no value of somebody else disappears unseen")
def _without_the_base() -> Mutant:
    """The library forgets the version under which its user saw the row."""
    return _change_corrections(
        lambda _, request: request.update(url=re.sub(r"&updated_at=eq\.[^&]*", "", request["url"]))
    )


@violates("nothing acknowledged is lost")
def _no_row_as_stored() -> Mutant:
    """The library takes a change that found no row for stored."""

    def found(_: Process, request: Json, answer: Json) -> Json | None:
        if request["method"] != "PATCH" or answer["body"] != "[]":
            return None
        item = re.findall(r"[?&]id=eq\.([0-9a-f-]{36})", request["url"])[0]
        row = {"id": item, "updated_at": "2027-01-15T08:00:00+00:00"}
        return {**answer, "body": json.dumps([row])}

    return _change_answers(found)


@violates("an edit is not lost")
@contextmanager
def _edit_in_flight_dropped() -> Iterator[None]:
    """The library drops what is edited while the item is in flight."""
    original = Process.ask

    def ask(self: Process, name: str, request: Json | None = None) -> Json | None:
        if name == "queue_edit" and self.world.corrects:
            item = (request or {})["id"]
            found = original(self, "queue_get", {"id": item})
            if found is not None and found["state"] == "sending":
                return {"id": item, "state": "sending"}
        return original(self, name, request)

    with mock.patch.object(Process, "ask", ask):
        yield


@violates("an item is parked for a true reason")
def _absent_as_deleted() -> Mutant:
    """The library takes a row that it does not see for deleted, without a membership."""

    def deleted(process: Process, request: Json, answer: Json) -> Json | None:
        named = re.findall(r"id=in\.\(([0-9a-f-]{36})\)", request["url"])
        is_row = "deleted_at" in request["url"] and answer["body"] == "[]"
        if request["method"] != "GET" or not is_row or not named:
            return None
        row = {"id": named[0], "updated_at": "2027-01-15T08:00:00+00:00"}
        return {**answer, "body": json.dumps([{**row, "deleted_at": row["updated_at"]}])}

    return _change_answers(deleted)


@violates("an item is parked for a true reason")
def _own_value_as_anothers() -> Mutant:
    """The library forgets what it sent when an answer is lost: its own value is a conflict."""

    def blame(process: Process, reply: Json) -> None:
        for item in reply["items"]:
            entry = process.world.ledger.get(process.device.name, process.device.user, item["id"])
            if item["operation"] != "change" or item["state"] != "parked" or entry is None:
                continue
            mine = dict(item["payload"].items())
            name, value = next(iter(mine.items()))
            item["reason"]["code"] = "changed_elsewhere"
            item["conflict"] = {
                "columns": [{"name": name, "base": None, "theirs": value, "mine": value}]
            }

    return change_reply("queue_list", blame)


@violates("the list follows the server")
def _missing_in_the_list() -> Mutant:
    return change_reply("item_list", lambda _, reply: reply["items"].clear())


@violates("the list follows the server")
def _twice_in_the_list() -> Mutant:
    return change_reply("item_list", lambda _, reply: reply["items"].extend(reply["items"][:1]))


@violates("the list follows the server")
def _another_value_in_the_list() -> Mutant:
    def change(_: Process, reply: Json) -> None:
        for item in reply["items"]:
            item["payload"]["minutes"] = 7

    return change_reply("item_list", change)


@violates("a correction follows its insert")
def _before_the_insert() -> Mutant:
    def another(_: Process, request: Json) -> None:
        request["url"] = re.sub(r"(\?id=eq\.)[0-9a-f]{8}", r"\g<1>00000000", request["url"])

    return _change_corrections(another)


@violates("a correction is what the user wants")
def _another_value() -> Mutant:
    def another(_: Process, request: Json) -> None:
        body = json.loads(request["body"])
        request["body"] = json.dumps({**body, "note": "another"})

    return _change_corrections(another)


@violates("a correction is what the user wants")
def _deleted_unasked() -> Mutant:
    return _change_corrections(lambda _, request: request.update(body='{"deleted_at":"now"}'))


@violates("an acknowledged correction is not lost")
def _never_done() -> Mutant:
    """At the end the row has another value than the one that was acknowledged last."""

    def undone(self: Corrections, entry: Any) -> bool:  # noqa: ANN401
        return not self.world.healed or (entry.device, entry.owner, entry.id) not in self.wishes

    both = mock.patch.object(Corrections, "is_owed", lambda *_: False)
    return _together(mock.patch.object(Corrections, "is_done", undone), both)


@contextmanager
def _together(*mutants: Any) -> Iterator[None]:  # noqa: ANN401
    for mutant in mutants:
        mutant.start()
    try:
        yield
    finally:
        for mutant in mutants:
            mutant.stop()


@violates("what is taken back is deleted")
def _not_deleted() -> Mutant:
    def restore(checker: object) -> None:
        world: World = checker.world  # type: ignore[attr-defined]
        if world.healed:
            for row in world.server.database.rows["activities"].values():
                row["deleted_at"] = None

    from ..invariants import InvariantChecker

    return run_before(InvariantChecker, "row_check", restore)
