"""Mutants of the invariants about the session, its locks and its requests."""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

from holdfast import HoldfastError

from ..invariants import ID, InvariantChecker, bearer_of, claims_of
from ..ledger import TAKEN_BACK
from ..observer import Observer, Stored
from ..process import Process
from .injection import (
    NOBODY,
    Json,
    Mutant,
    add_event,
    change_at_terminal_answer,
    change_decision,
    change_file,
    change_reply,
    change_request,
    fail_call,
    repeat_request,
    run_before,
    violates,
)

# The session --------------------------------------------------------------------------------------


@violates("no home while locked")
def _home_at_once() -> Mutant:
    def home(_: InvariantChecker, __: Process, name: str, decision: Json) -> None:
        if name == "session_lock":
            decision.update(screen="home", org={"id": NOBODY})

    return run_before(InvariantChecker, "shown", home)


@violates("no home while locked")
def _home_after_a_lock() -> Mutant:
    return run_before(
        InvariantChecker,
        "answered",
        lambda checker, p, *_: setattr(p.device, "locked_by_user", True),
    )


@violates("home shows an organisation of the user")
def _home_elsewhere() -> Mutant:
    def elsewhere(_: Process, decision: Json) -> None:
        if decision["org"]:
            decision["org"]["id"] = NOBODY

    return change_decision(elsewhere)


@violates("no data is shown while locked")
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


@violates("no data is shown while locked")
def _contact_while_locked() -> Mutant:
    contact = {"type": "contact", "request": 0, "contact": {"name": "Ola"}}
    return add_event(contact, lambda process: not process.device.stored.usable)


@violates("only the biometric key unlocks")
def _unlocked_without_the_key() -> Mutant:
    return run_before(
        InvariantChecker, "answered",
        lambda checker, p, *_: setattr(
            checker, "biometric_loads", p.device.keychain.calls["load", "biometric"]
        ),
    )  # fmt: skip


@violates("the background time-out locks")
def _away_for_longer() -> Mutant:
    def longer(checker: InvariantChecker, process: Process, name: str, *_: object) -> None:
        returns = name in {"session_foreground", "session_resume"}
        if returns and process.device.away is not None:
            since, boot = process.device.away
            process.device.away = (since - 400_000, boot)

    return run_before(InvariantChecker, "answered", longer)


@violates("a session belongs to its user")
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
    return change_file(
        "UPDATE session SET owner = NULL, wrap_session = NULL, wrap_biometric = NULL, "
        "tokens = NULL, generation = generation + 1",
        every=40,
    )


@violates("no sign-out without a terminal answer")
def _told_of_an_end() -> Mutant:
    return add_event({"type": "session_ended"})


@violates("no sign-out without a terminal answer")
def _shown_as_ended() -> Mutant:
    return change_decision(
        lambda _, decision: decision.update(screen="sign_in", message={"code": "session_ended"})
    )


@violates("no membership ends without proof")
def _revoked_unproved() -> Mutant:
    return add_event({"type": "org_access_changed", "reason": "membership_revoked"})


@violates("a late answer does not end another session")
def _ended_by_another() -> Mutant:
    return change_at_terminal_answer(lambda process: setattr(process.device, "session", NOBODY))


@violates("the refusal of an older token ends no session")
def _ended_by_an_older_token() -> Mutant:
    def older(process: Process) -> None:
        stored = process.device.stored
        if stored.tokens is not None:
            tokens = dataclasses.replace(stored.tokens, refresh="another")
            process.device.stored = dataclasses.replace(stored, tokens=tokens)

    return change_at_terminal_answer(older)


@violates("the reason for the end of a session is stored")
@contextmanager
def _forgotten() -> Iterator[None]:
    original = Observer.look

    def look(self: Observer, key: Any, before: Stored) -> Stored:  # noqa: ANN401
        return dataclasses.replace(original(self, key, before), ended=None)

    with mock.patch.object(Observer, "look", look):
        yield


@violates("no file is set aside without a lost key")
def _set_aside() -> Mutant:
    return change_reply(
        "queue_add",
        lambda process, _: (process.device.folder / "holdfast.db.keyless-1").write_bytes(b""),
    )


@violates("no unexpected error")
def _defect() -> Mutant:
    return fail_call("queue_list", "internal.defect", lambda _: True)


# The requests -------------------------------------------------------------------------------------


@violates("only a former session is revoked")
def _revoked() -> Mutant:
    return change_request(lambda _, request: request.update(purpose="revoke"), "guard")


@violates("a late logout spares the newer session")
def _logged_out_everywhere() -> Mutant:
    return change_request(
        lambda _, request: request.update(
            url=request["url"].replace("scope=local", "scope=global")
        ),
        "revoke",
    )


@violates("only a former session is revoked")
def _revoked_with_the_token_of_a_former_one() -> Mutant:
    return change_request(
        lambda _, request: request.update(
            url=request["url"].replace("scope=local", "scope=others")
        ),
        "revoke",
    )


@violates("no request is made while locked")
def _asked_while_locked() -> Mutant:
    return repeat_request(lambda process, _: not process.device.stored.usable, purpose="guard")


@violates("no request with another session's token")
def _another_session() -> Mutant:
    def is_former(process: Process, request: Json) -> bool:
        session = process.world.session_of(request)
        return process.device.stored.usable and session in process.device.former

    return repeat_request(is_former, purpose="guard")


@violates("no request with the wrong user's token")
def _another_user() -> Mutant:
    def another(_: Process, request: Json) -> None:
        request["url"] = re.sub(
            "user_id=eq[.][0-9a-f-]{36}", f"user_id=eq.{NOBODY}", request["url"]
        )

    return change_request(another, "guard")


@violates("no request with the wrong user's token")
def _another_owner() -> Mutant:
    def another(process: Process, request: Json) -> None:
        if request["body"]:
            bearer = bearer_of(request)
            assert bearer is not None
            request["body"] = request["body"].replace(claims_of(bearer)["sub"], NOBODY)

    return change_request(another, "upload")


@violates("a row belongs to its organisation")
def _another_organisation() -> Mutant:
    def another(process: Process, request: Json) -> None:
        for org in process.world.orgs:
            request["body"] = request["body"] and request["body"].replace(org, NOBODY)

    return change_request(another, "upload")


@violates("a batch is sorted by id")
def _unsorted() -> Mutant:
    def backwards(_: Process, request: Json) -> None:
        body = json.loads(request["body"] or "[]")
        (body["items"] if isinstance(body, dict) else body).reverse()
        request["body"] = json.dumps(body)

    return change_request(backwards, "upload")


@violates("a cancelled item is not sent")
def _taken_back() -> Mutant:
    def is_taken_back(process: Process, request: Json) -> bool:
        device, ledger = process.device, process.world.ledger
        if not device.stored.usable or process.world.session_of(request) != device.session:
            return False
        ids = re.findall(ID, request["body"] or "") if request["purpose"] == "upload" else []
        entries = [ledger.get(device.name, device.user, item) for item in ids]
        return any(entry is not None and entry.state == TAKEN_BACK for entry in entries)

    return repeat_request(is_taken_back)
