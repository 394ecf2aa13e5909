"""HST-4: a wrong key or address under an open session, and a refresh that waits, are named."""

from __future__ import annotations

import json
from typing import Any

import pytest
from holdfast import Library
from holdfast.transport import Answer
from holdfast.types import HttpRequest

from support.directory_fixtures import DirectoryFixtures
from support.phone import TOKEN_S, App
from support.queue import BOTH, add, stored, user_of
from support.sizes import sampled
from support.users import MakeUser, SignedIn

HTML = {"content-type": "text/html"}
JSON = {"content-type": "application/json"}
BUSY: Answer = {"status": 503, "headers": {}, "body": "busy"}
INVALID_KEY = json.dumps({"message": "Invalid API key", "hint": "Double check your API key."})


def why(app: App) -> dict[str, Any]:
    """The one reason why the queue sends nothing."""
    [reason] = app.queue_explain()["reasons"]
    return dict(reason)


# ---- A refresh that waits --------------------------------------------------------------------


def with_a_refresh_that_failed(user: SignedIn, *, expired: bool) -> str:
    """An item is queued, and the refresh that comes before its upload backs off."""
    network = user.phone.network
    network.instead.append(lambda request: BUSY if request["purpose"] == "refresh" else None)
    if expired:
        user.phone.pass_time(TOKEN_S)
    else:
        refused: Answer = {"status": 401, "headers": JSON, "body": '{"code":"PGRST301"}'}
        network.instead.append(lambda request: refused if request["purpose"] == "upload" else None)
    item = add(user.app)
    user.app.settle()
    assert network.count("refresh") == 1
    return item


@pytest.mark.parametrize("expired", [True, False])
@pytest.mark.parametrize("restarted", [True, False])
def test_HST_4_the_wait_for_the_token_is_told_with_its_end(
    user: SignedIn, directory: DirectoryFixtures, expired: bool, restarted: bool
) -> None:
    item = with_a_refresh_that_failed(user, expired=expired)
    user.phone.network.instead.clear()
    if restarted:
        user.restart()
    app = user.app
    if app.screen["screen"] == "unlock":
        app.touch()
    app.settle()
    sent = len(user.phone.network.sent)
    # While the refresh waits, every report says so, and until when,
    reason = why(app)
    assert (reason["code"], reason["count"]) == ("token", 1)
    assert reason["until_ms"] > user.phone.now_ms
    status = app.sync_status()
    assert (status["pause"], status["not_before_ms"]) == ("back_off", reason["until_ms"])
    assert app.sync_now() == {"started": False, "reason": "token"}
    app.settle()
    assert len(user.phone.network.sent) == sent
    # At the end of that time everything goes on
    app.wait((reason["until_ms"] - user.phone.now_ms) / 1000)
    assert stored(directory, user.person) == [item]
    assert why(app)["code"] == "nothing_queued"
    assert app.sync_status()["not_before_ms"] is None
    assert app.sync_now() == {"started": True, "reason": None}


def test_HST_4_the_later_of_two_pauses_is_told(
    user: SignedIn, directory: DirectoryFixtures
) -> None:
    body = {"code": "PGRST001", "message": "no connection", "details": None, "hint": None}
    directory.control.respond(
        "/rest/v1/activities", 503, body=json.dumps(body), retry_after_s=7200, method="POST"
    )
    add(user.app)
    user.app.settle()
    paused = user.app.sync_status()
    assert paused["pause"] == "server_pause"
    user.phone.network.instead.append(
        lambda request: BUSY if request["purpose"] == "refresh" else None
    )
    user.app.wait(TOKEN_S)
    status = user.app.sync_status()
    assert (status["pause"], status["not_before_ms"]) == ("server_pause", paused["not_before_ms"])
    # What comes first is named first
    assert why(user.app)["code"] == "token"
    assert user.app.sync_now()["reason"] == "token"


# ---- A wrong key, a wrong address ------------------------------------------------------------

#: What every request is answered with, and the cause.
MISTAKES: dict[str, tuple[Answer, str]] = {
    "a wrong key": ({"status": 401, "headers": JSON, "body": INVALID_KEY}, "wrong_api_key"),
    "no route": (
        {"status": 404, "headers": JSON, "body": '{"message":"no Route matched"}'},
        "wrong_url",
    ),
    "a server without such a path": (
        {"status": 404, "headers": HTML, "body": "<html>Not Found"},
        "wrong_url",
    ),
    "a page": ({"status": 200, "headers": HTML, "body": "<html>"}, "not_supabase"),
    "elsewhere": ({"status": 302, "headers": {"location": "/"}, "body": ""}, "not_supabase"),
    "a page that forbids": ({"status": 403, "headers": HTML, "body": "<html>"}, "not_supabase"),
    "a paused project": ({"status": 540, "headers": HTML, "body": "<html>"}, "project_paused"),
    "nothing listens": ({"error": "refused"}, "refused"),
    "no such host": ({"error": "dns"}, "dns"),
    "another certificate": ({"error": "tls"}, "tls"),
    "no answer": ({"error": "timeout"}, "timeout"),
}


@BOTH
@pytest.mark.parametrize("mistake", sampled(MISTAKES, 4))
def test_HST_4_a_wrong_key_or_address_under_an_open_session_is_named(
    sign_in: MakeUser, library: Library, directory: DirectoryFixtures, mistake: str, upload: str
) -> None:
    given, cause = MISTAKES[mistake]
    user = user_of(sign_in, upload)
    add(user.app)
    user.app.settle()
    lines: list[tuple[int, str]] = []
    library.set_log(1, lambda level, line: lines.append((level, line)))
    user.phone.network.instead.append(lambda request: given)
    app = user.restart()
    before = user.phone.now_ms
    item = add(app)
    app.settle()
    assert app.screen["screen"] == "home"
    problems = [dict(problem) for problem in app.sync_status()["problems"]]
    assert [(p["what"], p["code"]) for p in problems] == [("backend", cause)]
    [problem] = problems
    assert problem["text"].endswith(".")
    assert [problem[name] for name in ("kind", "table", "function", "column")] == [None] * 4
    assert problem["since_ms"] == before
    silent = cause in {"refused", "dns", "tls", "timeout"}
    if not silent:
        assert why(app)["code"] == cause
    assert why(app)["until_ms"] > user.phone.now_ms
    # in one line of level 1, which names the host, however often it is tried
    app.wait(600)
    told = [(level, line) for level, line in lines if cause in line]
    assert [level for level, _ in told] == [1], lines
    assert "host 127.0.0.1" in told[0][1]
    assert [dict(again) for again in app.sync_status()["problems"]] == problems
    user.phone.network.instead.clear()
    app.wait(7200)
    app.wait(7200)
    assert app.sync_status()["problems"] == []
    assert item in stored(directory, user.person)
    assert why(app)["code"] == "nothing_queued"


def test_HST_4_the_server_itself_refuses_a_rotated_key(
    user: SignedIn, directory: DirectoryFixtures
) -> None:
    """Without scripted answers: what the test server says."""
    right = user.phone.config["backend"]["api_key"]
    user.phone.config["backend"]["api_key"] = "sb_publishable_of_yesterday"
    app = user.restart()
    item = add(app)
    app.settle()
    [problem] = app.sync_status()["problems"]
    assert (problem["what"], problem["code"]) == ("backend", "wrong_api_key")
    assert (why(app)["code"], why(app)["count"]) == ("wrong_api_key", 1)
    # With the right key the queue waits for the token, and says so
    user.phone.config["backend"]["api_key"] = right
    app = user.restart()
    app.settle()
    assert why(app)["code"] == "token"
    app.wait((why(app)["until_ms"] - user.phone.now_ms) / 1000)
    assert stored(directory, user.person) == [item]


def test_HST_4_the_first_silence_is_weather(user: SignedIn, library: Library) -> None:
    lines: list[str] = []
    library.set_log(1, lambda level, line: lines.append(line))
    user.phone.network.lose["upload"] = 1
    add(user.app)
    user.app.settle()
    assert user.app.sync_status()["problems"] == []
    user.phone.network.up = False
    for _ in range(3):
        add(user.app)
        user.app.wait(600)
    assert user.app.sync_status()["problems"] == []
    assert not [line for line in lines if "host" in line]


@pytest.mark.parametrize("cause", ["dns", "timeout"])
def test_HST_4_what_fails_at_one_moment_is_one_silence(user: SignedIn, cause: str) -> None:
    """The contacts and the figures are asked for together, and one blip failed both: two silences
    in a row."""
    phone = user.phone
    lost: list[str] = []

    def lose(request: HttpRequest) -> Answer | None:
        lost.append(request["purpose"])
        return {"error": cause}

    phone.network.instead.append(lose)
    phone.pass_time(600)
    user.app.sync()
    assert len(lost) >= 2, lost
    assert user.app.sync_status()["problems"] == []
    # The next try is another moment
    phone.pass_time(600)
    user.app.sync()
    assert [p["code"] for p in user.app.sync_status()["problems"]] == [cause]


def test_HST_4_an_item_that_a_firewall_refuses_says_nothing_about_the_address(
    user: SignedIn, directory: DirectoryFixtures
) -> None:
    """The service answers the question that follows."""
    page: Answer = {"status": 403, "headers": HTML, "body": "<html>Request blocked"}
    user.phone.network.instead.append(lambda request: page if request["method"] == "POST" else None)
    add(user.app)
    user.app.settle()
    assert why(user.app)["code"] == "waiting_blocked"
    assert user.app.sync_status()["problems"] == []


def test_HST_4_the_services_own_refusals_are_no_wrong_key(user: SignedIn) -> None:
    """401 with a code is about the token."""
    body = json.dumps({"code": "PGRST301", "message": "JWT cryptographic operation failed"})
    refused: Answer = {"status": 401, "headers": JSON, "body": body}
    user.phone.network.instead.append(
        lambda request: refused if "/rest/v1/" in request["url"] else None
    )
    add(user.app)
    for _ in range(3):
        user.app.settle()
        user.phone.pass_time(600)
    assert user.app.sync_status()["problems"] == []
