"""What the user sees between the return from the browser and the end of the exchange (FIX-22), and
why a sign-in has failed whose answer was lost or whose user is banned (FIX-24)."""

from __future__ import annotations

import json
from typing import Any

import pytest
from holdfast.transport import Answer
from holdfast.types import HttpRequest

from support.directory_fixtures import PASSWORD, DirectoryFixtures, Person
from support.phone import App, Phone
from support.screens import shown, why
from support.sign_in import begin, browse, settle_sign_in
from support.users import SignedIn

SIGNING_IN = ("wait", "signing_in")
ARRIVALS = ["session_foreground", "session_resume"]


def told(app: App) -> tuple[str, str | None, str]:
    """The shown reason, its cause and its text."""
    message = app.screen["message"]
    assert message is not None
    return why(app.screen), message.get("cause"), message["text"]


def complete(app: App, how: str, person: Person) -> None:
    """Give the proof; the exchange has not begun."""
    request: Any = {"email": person.email, "password": PASSWORD}
    if how == "browser":
        callback = browse(begin(app)["url"])
        app.session_background()
        request = {"callback_url": callback}
    assert why(app.sign_in_complete(request)) == "signing_in"


@pytest.mark.parametrize("how", ["browser", "password"])
@pytest.mark.parametrize("arrivals", [*([one] for one in ARRIVALS), ARRIVALS])
def test_FIX_22_an_arrival_leaves_the_wait_for_the_exchange(
    phone: Phone, person: Person, how: str, arrivals: list[str]
) -> None:
    app = phone.start()
    complete(app, how, person)
    for arrival in arrivals:
        getattr(app, arrival)()
        assert shown(app) == SIGNING_IN
        assert app.screen["deadline_ms"] is not None
    before = len(app.events)
    app.settle()
    screens = [
        event["screen"]["screen"] for event in app.events[before:] if event["type"] == "screen"
    ]
    assert "sign_in" not in screens
    assert app.screen["screen"] == "home"


@pytest.mark.parametrize("arrival", ARRIVALS)
def test_FIX_22_a_locked_session_is_not_offered_while_its_user_signs_in(
    user: SignedIn, directory: DirectoryFixtures, arrival: str
) -> None:
    user.app.session_lock()
    directory.control.sign_in_as(user.person.email)
    complete(user.app, "browser", user.person)
    getattr(user.app, arrival)()
    assert shown(user.app) == SIGNING_IN
    user.app.settle()
    assert user.app.screen["screen"] == "home"


@pytest.mark.parametrize("arrival", ARRIVALS)
def test_FIX_22_a_lock_after_an_absence_leaves_the_sign_in_of_its_user(
    user: SignedIn, directory: DirectoryFixtures, arrival: str
) -> None:
    directory.control.sign_in_as(user.person.email)
    callback = browse(begin(user.app)["url"])
    user.app.session_background()
    user.phone.pass_time(360)
    assert why(user.app.sign_in_complete({"callback_url": callback})) == "signing_in"
    getattr(user.app, arrival)()
    assert shown(user.app) == SIGNING_IN
    user.app.settle()
    assert user.app.screen["screen"] == "home"


@pytest.mark.parametrize("arrival", ARRIVALS)
def test_FIX_22_the_wait_ends_when_the_exchange_fails(
    phone: Phone, person: Person, directory: DirectoryFixtures, arrival: str
) -> None:
    app = phone.start()
    complete(app, "browser", person)
    getattr(app, arrival)()
    body = {"code": "flow_state_expired", "message": "x"}
    directory.control.respond("/auth/v1/token", 422, body=json.dumps(body), times=1)
    app.settle()
    assert shown(app) == ("sign_in", "sign_in_expired")
    getattr(app, arrival)()
    assert app.screen["screen"] == "sign_in"


@pytest.mark.parametrize("arrival", ARRIVALS)
def test_FIX_22_the_wait_keeps_telling_why_it_lasts(
    phone: Phone, person: Person, arrival: str
) -> None:
    app = phone.start()
    complete(app, "browser", person)
    phone.network.instead.append(lambda _: {"error": "refused"})
    app.settle()
    assert (shown(app), told(app)[1]) == (SIGNING_IN, "refused")
    getattr(app, arrival)()
    assert (shown(app), told(app)[1]) == (SIGNING_IN, "refused")


def test_FIX_22_a_cancelled_sign_in_waits_for_nothing(phone: Phone, person: Person) -> None:
    app = phone.start()
    complete(app, "browser", person)
    app.session_foreground()
    assert app.sign_in_cancel()["screen"]["screen"] == "sign_in"
    app.session_foreground()
    assert app.screen["screen"] == "sign_in"


# Causes ---------------------------------------------------------------------------------------


def lost(how: str) -> Any:  # noqa: ANN401
    """Lose the first answer to a sign-in in this way, after the server has handled it."""
    answers: list[Answer] = []

    def lose(request: HttpRequest, answer: Answer) -> Answer:
        if request["purpose"] != "sign_in" or answers:
            return answer
        answers.append(answer)
        match how:
            case "timeout" | "cancelled":
                return {"error": how}
            case "gateway":
                return {"status": 502, "headers": {}, "body": "<html>Bad Gateway</html>"}
            case _:
                return {**answer, "body": str(answer.get("body"))[:40]}

    return lose


@pytest.mark.parametrize("how", ["timeout", "cancelled", "gateway", "cut_off"])
def test_FIX_24_a_lost_answer_of_the_exchange_is_told(
    phone: Phone, person: Person, how: str
) -> None:
    app = phone.start()
    complete(app, "browser", person)
    phone.network.alter.append(lost(how))
    settle_sign_in(app)
    reason, cause, text = told(app)
    assert (reason, cause) == ("sign_in_failed", "answer_lost")
    assert text == "Svaret på innloggingen kom ikke frem. Logg inn på nytt."
    phone.network.alter.clear()
    complete(app, "browser", person)
    app.settle()
    assert app.screen["screen"] == "home"


BANNED = "Denne kontoen er sperret. Ta kontakt med organisasjonen din."


@pytest.mark.parametrize("status", [400, 403, 422])
@pytest.mark.parametrize("how", ["browser", "password"])
def test_FIX_24_a_banned_user_is_told(
    phone: Phone, person: Person, directory: DirectoryFixtures, how: str, status: int
) -> None:
    app = phone.start()
    complete(app, how, person)
    body = {"code": "user_banned", "message": "User is banned"}
    directory.control.respond("/auth/v1/token", status, body=json.dumps(body), times=1)
    app.settle()
    assert told(app) == ("sign_in_failed", "user_banned", BANNED)


@pytest.mark.parametrize("error", ["access_denied", "server_error", "invalid_request"])
def test_FIX_24_a_banned_user_comes_back_from_the_browser(phone: Phone, error: str) -> None:
    app = phone.start()
    begin(app)
    callback = f"app.example://signed-in?error={error}&error_code=user_banned"
    app.sign_in_complete({"callback_url": callback + "&error_description=User+is+banned"})
    assert told(app) == ("sign_in_failed", "user_banned", BANNED)
    begin(app)
    app.sign_in_complete({"callback_url": "app.example://signed-in?error=access_denied"})
    assert why(app.screen) == "sign_in_cancelled"
