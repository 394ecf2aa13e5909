"""Tokens of more than 16,384 bytes are refused with a cause, and nothing is lost."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from holdfast import Library
from holdfast.transport import Answer
from holdfast.types import HttpRequest

from support.directory_fixtures import PASSWORD, DirectoryFixtures, Person
from support.errors import error_of
from support.phone import TOKEN_S, App, Phone
from support.queue import stored
from support.screens import why
from support.sign_in import begin, browse, finish
from support.users import MakeUser

#: The most bytes that a token may have.
LONGEST = 16_384
TOKENS = ["access_token", "refresh_token"]


def lengthened(session: dict[str, Any], name: str, size: int) -> dict[str, Any]:
    """The token reply with one token of this many bytes; an access token stays readable."""
    text = str(session[name])
    return {**session, name: text + "A" * (size - len(text))}


def lengthening(name: str) -> Callable[[HttpRequest, Answer], Answer]:
    """Changes the answers of the auth service that bring tokens."""

    def change(_request: HttpRequest, answer: Answer) -> Answer:
        if "status" not in answer or '"access_token"' not in (answer["body"] or ""):
            return answer
        reply = lengthened(json.loads(answer["body"] or ""), name, LONGEST + 1)
        return {**answer, "body": json.dumps(reply)}

    return change


def told(app: App) -> tuple[str, str, str | None]:
    """The screen, its reason, and the cause that its message names."""
    return app.screen["screen"], why(app.screen), (app.screen["message"] or {}).get("cause")


@pytest.mark.parametrize("name", TOKENS)
def test_the_longest_token_is_taken_and_a_longer_one_is_named(phone: Phone, name: str) -> None:
    app = phone.start(online=False)
    directory = DirectoryFixtures(phone.backend)
    person = directory.person(directory.organisation())
    given: Any = phone.session(person)
    error = error_of(app.session_adopt, {"session": lengthened(given, name, LONGEST + 1)})
    assert (error.code, error.field) == ("session.invalid", f"/session/{name}")
    assert str(LONGEST) in str(error)
    assert app.session_status()["state"] == "signed_out"
    app.session_adopt({"session": lengthened(given, name, LONGEST)})
    assert app.session_status()["state"] == "active"


@pytest.mark.parametrize("name", TOKENS)
@pytest.mark.parametrize("way", ["password", "browser"])
def test_a_sign_in_with_a_long_token_fails_at_once_with_its_cause(
    phone: Phone, person: Person, library: Library, way: str, name: str
) -> None:
    lines: list[str] = []
    app = phone.start()
    library.set_log(1, lambda _level, line: lines.append(line))
    phone.network.alter.append(lengthening(name))
    if way == "password":
        app.sign_in_complete({"email": person.email, "password": PASSWORD})
    else:
        finish(app, browse(begin(app)["url"]))
    app.settle()
    assert told(app) == ("sign_in", "sign_in_failed", "token_too_long")
    assert phone.network.count("sign_in") == 1
    assert [line for line in lines if "the sign-in failed: token_too_long" in line]
    assert app.session_status()["state"] == "signed_out"
    phone.network.alter.clear()
    app.sign_in_complete({"email": person.email, "password": PASSWORD})
    app.settle()
    assert app.screen["screen"] == "home"


@pytest.mark.parametrize("name", TOKENS)
def test_a_refresh_with_a_long_token_keeps_the_session_and_is_named(
    sign_in: MakeUser, directory: DirectoryFixtures, name: str
) -> None:
    user = sign_in(policy={"biometric": "off"})
    app, phone = user.app, user.phone
    app.go_offline()
    item = app.register()
    phone.network.alter.append(lengthening(name))
    generation = app.session_status()["generation"]
    phone.pass_time(TOKEN_S)
    app.go_online()
    phone.network.forget()
    for _ in range(60):
        app.settle()
        phone.pass_time(60)
    status = app.session_status()
    assert (status["state"], status["generation"]) == ("active", generation)
    assert app.of_type("session_ended") == []
    [problem] = app.sync_status()["problems"]
    assert (problem["what"], problem["purpose"]) == ("backend", "refresh")
    assert problem["code"] == "token_too_long"
    assert str(LONGEST) in problem["text"]
    assert [found["id"] for found in app.queue_list()["items"]] == [item]
    assert 5 <= phone.network.count("refresh") <= 60
    phone.network.alter.clear()
    for _ in range(15):
        phone.pass_time(60)
        app.settle()
    assert app.sync_status()["problems"] == []
    assert stored(directory, user.person) == [item]
    assert app.session_status()["state"] == "active"
