"""Session refresh: once, in order, and never for another session."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from typing import Any

import pytest
from holdfast.transport import Answer
from holdfast.types import HttpRequest

from support.directory_fixtures import DirectoryFixtures
from support.phone import TOKEN_S
from support.refusals import live
from support.screens import seen
from support.sizes import sampled
from support.users import SignedIn


def answered(user: SignedIn, request: Any) -> Any:  # noqa: ANN401
    """The server's answer to a request, as the argument of `complete`."""
    return {"id": request["id"], **user.phone.network(request)}


def take_refresh(user: SignedIn) -> Any:  # noqa: ANN401
    """The refresh of the next poll; leaves all requests unanswered."""
    found = [r for r in user.app.poll()["requests"] if r["purpose"] == "refresh"]
    assert len(found) == 1
    return found[0]


TRANSIENT: dict[str, dict[str, Any]] = {
    "offline": {"error": "offline"},
    "timeout": {"error": "timeout"},
    "tls": {"error": "tls"},
    "500": {"status": 500, "headers": {}, "body": '{"code":"unexpected_failure","message":"x"}'},
    "408": {"status": 408, "headers": {}, "body": ""},
    "409": {"status": 409, "headers": {}, "body": '{"code":"conflict","message":"x"}'},
    "422 hook": {"status": 422, "headers": {}, "body": '{"code":"hook_timeout","message":"x"}'},
    "429": {"status": 429, "headers": {}, "body": '{"code":"over_request_rate_limit"}'},
    "503 html": {"status": 503, "headers": {}, "body": "<html>Service unavailable</html>"},
    "200 html": {"status": 200, "headers": {}, "body": "<html>Log on to the WiFi</html>"},
    "400 html": {"status": 400, "headers": {}, "body": "<html>refresh_token_not_found</html>"},
    "403 empty": {"status": 403, "headers": {}, "body": None},
    "302": {"status": 302, "headers": {"location": "http://wifi/"}, "body": ""},
    "200 no session": {"status": 200, "headers": {}, "body": '{"access_token":"x"}'},
    "unknown code": {"status": 418, "headers": {}, "body": '{"code":"teapot","message":"x"}'},
    # A server that was restored from a backup says so of a token that it will issue only later.
    "400 restored": {
        "status": 400,
        "headers": {},
        "body": '{"code":"validation_failed","message":"Refresh Token Not Issued By This Server"}',
    },
}


@pytest.mark.parametrize("refusal", sampled(TRANSIENT, 3))
def test_SES_1_without_proof_of_an_end_the_session_is_kept(
    user: SignedIn, directory: DirectoryFixtures, refusal: str
) -> None:
    user.phone.pass_time(TOKEN_S)
    request = take_refresh(user)
    answer: Any = {"id": request["id"], **TRANSIENT[refusal]}
    user.app.complete(answer)
    status = user.app.session_status()
    assert (status["state"], status["stale"]) == ("active", True)
    assert "refresh" in status["owed"]
    assert [e for e in user.app.poll()["events"] if e["type"] == "session_ended"] == []
    user.app.wait(900)
    status = user.app.session_status()
    assert (status["state"], status["stale"], status["owed"]) == ("active", False, [])
    assert directory.refreshes() == 1


TERMINAL = [
    '{"code":"refresh_token_not_found","message":"x"}',
    '{"code":"session_not_found","message":"x"}',
    '{"code":"session_expired","message":"x"}',
    '{"code":"user_banned","message":"x"}',
    '{"code":"refresh_token_already_used","message":"x"}',
    '{"code":400,"error_code":"refresh_token_not_found","msg":"x"}',
    '{"error":"invalid_grant","error_description":"Invalid Refresh Token: Already Used"}',
]


@pytest.mark.parametrize("body", TERMINAL)
def test_SES_2_proof_of_an_end_signs_out_with_a_reason(user: SignedIn, body: str) -> None:
    user.phone.pass_time(TOKEN_S)
    request = take_refresh(user)
    user.app.complete({"id": request["id"], "status": 400, "headers": {}, "body": body})
    user.app.settle()
    assert len(user.app.of_type("session_ended")) == 1
    assert seen(user.app.screen) == ("sign_in", "session_ended")


def test_SES_4_sixteen_threads_cause_one_refresh(
    user: SignedIn, directory: DirectoryFixtures
) -> None:
    user.phone.pass_time(TOKEN_S + 60)
    barrier = threading.Barrier(16)
    taken: list[Any] = []

    def work() -> None:
        barrier.wait()
        for _ in range(20):
            taken.extend(user.app.poll()["requests"])

    threads = [threading.Thread(target=work) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [request["purpose"] for request in taken] == ["refresh"]
    user.app.complete(answered(user, taken[0]))
    user.app.settle()
    assert directory.refreshes() == 1
    assert user.app.session_status()["owed"] == []


# Lifetimes that are too short -----------------------------------------------------------------


def shortened(lifetime_s: int) -> Callable[[HttpRequest, Answer], Answer]:
    """The server issues access tokens of this lifetime."""

    def change(_request: HttpRequest, answer: Answer) -> Answer:
        body = answer.get("body")
        if not body or '"access_token"' not in str(body):
            return answer
        reply = json.loads(str(body))
        reply["expires_at"] = reply["expires_at"] - reply["expires_in"] + lifetime_s
        reply["expires_in"] = lifetime_s
        return {**answer, "body": json.dumps(reply)}  # type: ignore[typeddict-item]

    return change


@pytest.mark.parametrize("lifetime_s", [0, 1, 2, 10, 29])
def test_FIX_11_successful_refreshes_have_a_pause_between_them(
    user: SignedIn, lifetime_s: int
) -> None:
    user.phone.network.alter.append(shortened(lifetime_s))
    user.phone.pass_time(TOKEN_S - 60)
    app = user.restart()
    live(user, 600)
    assert 10 <= user.phone.network.count("refresh") <= 600 / 30 + 1
    # A problem names the lifetime
    [problem] = app.sync_status()["problems"]
    assert (problem["code"], problem["purpose"]) == ("token_lifetime", "refresh")
    assert f" {lifetime_s} s" in problem["text"]
    user.phone.network.alter.clear()
    live(user, 60)
    assert app.sync_status()["problems"] == []
    before = user.phone.network.count("refresh")
    live(user, 600)
    assert user.phone.network.count("refresh") == before


@pytest.mark.parametrize("lifetime_s", [1, 10])
def test_FIX_11_items_are_sent_while_a_short_token_lives(
    user: SignedIn, directory: DirectoryFixtures, lifetime_s: int
) -> None:
    user.phone.network.alter.append(shortened(lifetime_s))
    user.phone.pass_time(TOKEN_S - 60)
    app = user.restart()
    live(user, 5)
    item = app.register()
    live(user, 60)
    assert [str(row["id"]) for row in directory.activities(user.person)] == [item]


def test_FIX_11_an_ordinary_lifetime_is_no_problem(user: SignedIn) -> None:
    user.phone.network.alter.append(shortened(60))
    user.phone.pass_time(TOKEN_S - 60)
    app = user.restart()
    live(user, 600)
    assert 10 <= user.phone.network.count("refresh") <= 16
    assert app.sync_status()["problems"] == []
