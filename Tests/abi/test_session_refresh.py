"""Session refresh: once, in order, and never for another session."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from holdfast import Runner
from holdfast.transport import Answer
from holdfast.types import HttpRequest

from conftest import MakeUser, SignedIn
from support.directory_fixtures import DirectoryFixtures
from support.phone import TOKEN_S, App, Phone
from support.sizes import sampled


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
    sign_in: MakeUser, directory: DirectoryFixtures, refusal: str
) -> None:
    user = sign_in()
    user.phone.pass_time(TOKEN_S)
    request = take_refresh(user)
    answer: Any = {"id": request["id"], **TRANSIENT[refusal]}
    user.app.complete(answer)
    status = user.app.session_status()
    assert (status["state"], status["stale"]) == ("active", True)
    assert "refresh" in status["owed"]
    assert [e for e in user.app.poll()["events"] if e["type"] == "session_ended"] == []
    user.phone.pass_time(900)
    user.app.settle()
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
def test_SES_2_proof_of_an_end_signs_out_with_a_reason(sign_in: MakeUser, body: str) -> None:
    user = sign_in()
    user.phone.pass_time(TOKEN_S)
    request = take_refresh(user)
    user.app.complete({"id": request["id"], "status": 400, "headers": {}, "body": body})
    user.app.settle()
    assert len(user.app.of_type("session_ended")) == 1
    assert (user.app.screen["screen"], user.app.screen["reason"]) == ("sign_in", "session_ended")


@pytest.mark.parametrize("times", [1, 3])
def test_SES_3_a_death_between_answer_and_commit_keeps_the_session(
    sign_in: MakeUser, directory: DirectoryFixtures, times: int
) -> None:
    user = sign_in()
    directory.control.set(reuse_interval=0)
    for _ in range(times):
        user.phone.pass_time(TOKEN_S + 60)
        user.restart()
        user.app.touch()
        request = take_refresh(user)
        assert user.phone.network(request)["status"] == 200
        app = user.restart()
        if app.screen["screen"] == "unlock":
            app.touch()
        app.settle()
        assert app.screen["screen"] == "home"
        assert user.phone.network.count("refresh") == 1
        assert app.of_type("session_ended") == []
        assert app.session_status()["owed"] == []
    assert len(directory.control.sessions(user.person.id)) == 1


def test_SES_4_sixteen_threads_cause_one_refresh(
    sign_in: MakeUser, directory: DirectoryFixtures
) -> None:
    user = sign_in()
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


@pytest.fixture
def two_processes(sign_in: MakeUser) -> Iterator[tuple[SignedIn, App, App]]:
    """Two handles on one folder, as in two processes of an app, with an expired token."""
    user = sign_in(policy={"biometric": "off"})
    first = user.app
    user.phone.app = None
    user.phone.pass_time(TOKEN_S + 60)
    second = user.phone.start()
    first.clock_set({"now_ms": user.phone.now_ms, "monotonic_ms": user.phone.monotonic_ms})
    yield user, first, second
    first.close()


@pytest.mark.parametrize("first_asks_first", [True, False])
def test_SES_4_two_processes_refresh_once(
    two_processes: tuple[SignedIn, App, App], directory: DirectoryFixtures, first_asks_first: bool
) -> None:
    user, first, second = two_processes
    apps = [first, second] if first_asks_first else [second, first]
    asked = [app.poll()["requests"] for app in apps]
    assert [[r["purpose"] for r in requests] for requests in asked] == [["refresh"], []]
    apps[0].complete(answered(user, asked[0][0]))
    for app in reversed(apps):
        Runner(app, None, user.phone.network).run_until_idle()
    first_status, second_status = (app.session_status() for app in apps)
    assert directory.refreshes() == 1
    assert first_status["generation"] == second_status["generation"]
    assert first_status["expires_ms"] == second_status["expires_ms"]
    assert first_status["owed"] == second_status["owed"] == []


def late(user: SignedIn) -> tuple[Any, Any]:
    """A refresh in flight, and its late answer."""
    user.phone.pass_time(TOKEN_S + 60)
    request = take_refresh(user)
    return request, answered(user, request)


def test_SES_5_a_late_refresh_does_not_revive_a_logged_out_session(
    sign_in: MakeUser, directory: DirectoryFixtures
) -> None:
    user = sign_in()
    _, answer = late(user)
    user.app.session_logout()
    user.app.complete(answer)
    assert user.app.session_status()["state"] == "signed_out"
    user.app.settle()
    screen = user.restart().screen
    assert (screen["screen"], screen["reason"]) == ("sign_in", "session_missing")
    user.app.settle()
    assert directory.control.sessions(user.person.id) == []


def test_SES_5_a_late_refresh_does_not_change_the_next_user_s_session(
    sign_in: MakeUser, directory: DirectoryFixtures
) -> None:
    user = sign_in()
    _, answer = late(user)
    user.app.session_logout()
    other = directory.person(directory.organisation())
    user.app.session_adopt({"session": moved(user.phone, directory.session(other))})
    before = user.app.session_status()
    user.app.complete(answer)
    assert user.app.session_status() == before
    assert before["user_id"] == other.id
    user.app.settle()
    assert user.app.session_status()["user_id"] == other.id
    assert user.app.screen["screen"] == "home"


@pytest.mark.parametrize("body", TERMINAL[:1])
def test_SES_5_a_late_refusal_does_not_end_the_next_session(
    sign_in: MakeUser, directory: DirectoryFixtures, body: str
) -> None:
    user = sign_in()
    request, _ = late(user)
    user.app.session_logout()
    user.app.session_adopt({"session": moved(user.phone, directory.session(user.person))})
    user.app.complete({"id": request["id"], "status": 400, "headers": {}, "body": body})
    user.app.settle()
    assert user.app.of_type("session_ended") == []
    assert user.app.session_status()["state"] == "active"


def moved(phone: Phone, session: dict[str, Any]) -> dict[str, Any]:
    """The session with its expiry moved to the phone's time."""
    return {**session, "expires_at": session["expires_at"] + phone.ahead_ms() // 1000}


@pytest.mark.parametrize("hours", [-30, -3, 3, 30])
def test_SES_7_a_wrong_clock_does_not_sign_the_user_out(
    sign_in: MakeUser, directory: DirectoryFixtures, hours: int
) -> None:
    user = sign_in(policy={"session_window_s": 10**7, "offline_limit_s": 10**7})
    network = user.phone.network
    real = network.ahead_ms()
    network.ahead_ms = lambda: real
    user.phone.set_wall_clock(hours * 3600)
    for _ in range(5):
        user.app.settle()
        user.app.sync_now()
        user.phone.pass_time(60)
    app = user.restart()
    if app.screen["screen"] == "unlock":
        app.touch()
    app.settle()
    assert app.screen["screen"] == "home"
    assert app.of_type("session_ended") == []
    assert directory.refreshes() <= 1
    app.sync_now()
    app.settle()
    assert abs(app.session_status()["clock_offset_ms"] + hours * 3_600_000) < 600_000


def test_SES_8_the_first_user_s_session_is_revoked_after_the_second_has_signed_in(
    sign_in: MakeUser, directory: DirectoryFixtures
) -> None:
    user = sign_in()
    user.app.go_offline()
    user.app.session_logout()
    other = directory.person(directory.organisation())
    user.phone.network.up = True
    app: App = user.app
    app.session_adopt({"session": directory.session(other)})
    assert len(directory.control.sessions(user.person.id)) == 1
    app.network_report({"online": True})
    app.settle()
    assert directory.control.sessions(user.person.id) == []
    assert len(directory.control.sessions(other.id)) == 1
    assert app.screen["screen"] == "home"
    assert app.session_status()["user_id"] == other.id


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


def live(app: App, seconds: int) -> None:
    """Follow `wake_in_ms` for this time."""
    end = app.phone.now_ms + 1000 * seconds
    for _ in range(2000):
        step = app.step()
        if not step.idle:
            continue
        left = end - app.phone.now_ms
        if left <= 0:
            return
        wake = left if step.wake_in_ms is None else min(step.wake_in_ms, left)
        app.phone.pass_time(max(wake, 1) / 1000)
    raise AssertionError("the host does not become idle")


@pytest.mark.parametrize("lifetime_s", [0, 1, 2, 10, 29])
def test_FIX_11_successful_refreshes_have_a_pause_between_them(
    sign_in: MakeUser, lifetime_s: int
) -> None:
    user = sign_in()
    user.phone.network.alter.append(shortened(lifetime_s))
    user.phone.pass_time(TOKEN_S - 60)
    app = user.restart()
    live(app, 600)
    assert 10 <= user.phone.network.count("refresh") <= 600 / 30 + 1
    # A problem names the lifetime
    [problem] = app.sync_status()["problems"]
    assert (problem["code"], problem["purpose"]) == ("token_lifetime", "refresh")
    assert f" {lifetime_s} s" in problem["text"]
    user.phone.network.alter.clear()
    live(app, 60)
    assert app.sync_status()["problems"] == []
    before = user.phone.network.count("refresh")
    live(app, 600)
    assert user.phone.network.count("refresh") == before


@pytest.mark.parametrize("lifetime_s", [1, 10])
def test_FIX_11_items_are_sent_while_a_short_token_lives(
    sign_in: MakeUser, directory: DirectoryFixtures, lifetime_s: int
) -> None:
    user = sign_in()
    user.phone.network.alter.append(shortened(lifetime_s))
    user.phone.pass_time(TOKEN_S - 60)
    app = user.restart()
    live(app, 5)
    item = app.register()
    live(app, 60)
    assert [str(row["id"]) for row in directory.activities(user.person)] == [item]


def test_FIX_11_an_ordinary_lifetime_is_no_problem(sign_in: MakeUser) -> None:
    user = sign_in()
    user.phone.network.alter.append(shortened(60))
    user.phone.pass_time(TOKEN_S - 60)
    app = user.restart()
    live(app, 600)
    assert 10 <= user.phone.network.count("refresh") <= 16
    assert app.sync_status()["problems"] == []
