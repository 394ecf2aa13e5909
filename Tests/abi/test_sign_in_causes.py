"""Why a sign-in failed or is tried again is told by the decision and the log (HST-4)."""

from __future__ import annotations

import json
from typing import Any

import pytest
from holdfast import Holdfast, Library
from holdfast.transport import Answer

from support.directory_fixtures import PASSWORD, DirectoryFixtures, Person
from support.phone import TOKEN_S, App, Phone
from support.screens import seen, why
from support.sign_in import begin, browse, finish, settle_sign_in
from support.users import MakePhone, SignedIn

HTML = {"content-type": "text/html"}
Lines = list[tuple[int, str]]


def told(app: App) -> tuple[str, str, str | None]:
    """The screen, its reason, and the cause that its message names."""
    message = app.screen["message"]
    assert message is not None
    return app.screen["screen"], why(app.screen), message.get("cause")


def heard(library: Library, level: int) -> Lines:
    """The log from now on, up to this level."""
    lines: Lines = []
    library.set_log(level, lambda level, line: lines.append((level, line)))
    return lines


def failures(lines: Lines) -> Lines:
    return [(level, line) for level, line in lines if "the sign-in failed" in line]


def body_of(**members: Any) -> str:  # noqa: ANN401
    return json.dumps(members)


#: What the server answers to the exchange, and the cause; without one the log has the code.
ANSWERS: dict[str, tuple[int, str, str | None]] = {
    "wrong password": (400, body_of(code="invalid_credentials", message="x"), "wrong_password"),
    "wrong password, older server": (
        400,
        body_of(error="invalid_grant", error_description="Invalid login credentials"),
        "wrong_password",
    ),
    "unconfirmed": (400, body_of(code="email_not_confirmed", message="x"), "unconfirmed_address"),
    "unconfirmed, older server": (
        400,
        body_of(error="invalid_grant", error_description="Email not confirmed"),
        "unconfirmed_address",
    ),
    "wrong key": (401, body_of(message="Invalid API key", hint="x"), "wrong_api_key"),
    "gateway's words": (401, body_of(message="Unauthorized"), "wrong_api_key"),
    "no route": (404, body_of(message="no Route matched with those values"), "wrong_url"),
    "another server's 404": (404, "<html>Not Found</html>", "wrong_url"),
    "another server's JSON": (200, body_of(hello="world"), "not_supabase"),
    "paused": (540, "<html>Project paused</html>", "project_paused"),
    "paused, in JSON": (540, body_of(message="Project paused"), "project_paused"),
    "provider off": (400, body_of(code="provider_disabled", message="x"), "provider_disabled"),
    "passwords off": (
        422,
        body_of(code="email_provider_disabled", message="x"),
        "provider_disabled",
    ),
    "not enabled": (
        400,
        body_of(code="validation_failed", message="Unsupported provider: provider is not enabled"),
        "provider_disabled",
    ),
    "data service": (
        404,
        body_of(code="PGRST125", message="Invalid path specified in request URL"),
        "wrong_url",
    ),
    "another code": (400, body_of(code="signup_disabled", message="x"), None),
    "a code that is none": (400, body_of(code="kari@example.org " * 9, message="x"), None),
}
#: What the line of the log says where no cause is known.
IN_THE_LOG = {"another code": "signup_disabled", "a code that is none": "sign_in_failed"}


@pytest.mark.parametrize("locale", ["nb", "nn", "en"])
def test_HST_4_a_failed_sign_in_tells_its_cause(
    phones: MakePhone, person: Person, directory: DirectoryFixtures, library: Library, locale: str
) -> None:
    texts: dict[str | None, str] = {}
    app = phones(locale=locale).start()
    for name, (status, body, cause) in ANSWERS.items():
        lines = heard(library, 3)
        directory.control.respond("/auth/v1/token", status, body=body, times=1)
        app.sign_in_complete({"email": person.email, "password": "not-the-password"})
        app.settle()
        assert told(app) == ("sign_in", "sign_in_failed", cause), name
        text = (app.screen["message"] or {"text": ""})["text"]
        assert texts.setdefault(cause, text) == text, name
        [(level, line)] = failures(lines)
        assert level == 1, name
        assert (cause or IN_THE_LOG[name]) in line, name
        assert str(status) in line, name
        assert "@" not in line, name
    # An unknown cause has the general text
    assert len(set(texts.values())) == len(texts) == 8


def test_HST_4_the_server_itself_refuses_a_password_and_a_key(
    phones: MakePhone, person: Person
) -> None:
    """Without scripted answers: what the test server says."""
    app = phones().start()
    app.sign_in_complete({"email": person.email, "password": "not-the-password"})
    app.settle()
    assert told(app)[2] == "wrong_password"
    wrong = phones()
    wrong.config["backend"]["api_key"] = "sb_publishable_of_another_project"
    app = wrong.start()
    app.sign_in_complete({"email": person.email, "password": "not-the-password"})
    app.settle()
    assert told(app)[2] == "wrong_api_key"


@pytest.mark.parametrize("word", ["refused", "tls", "timeout", "dns", "offline", "cancelled"])
def test_HST_4_a_sign_in_without_a_response_tells_the_word_of_the_client(
    phone: Phone, person: Person, library: Library, word: str
) -> None:
    lines: list[tuple[int, str]] = []
    library.set_log(3, lambda level, line: lines.append((level, line)))
    app = phone.start()
    silence: Answer = {"error": word}  # type: ignore[typeddict-item]
    phone.network.instead.append(lambda request: silence)
    finish(app, browse(begin(app)["url"]))
    if app.screen["screen"] == "wait":
        settle_sign_in(app)
    message = app.screen["message"]
    assert message is not None
    reason = "sign_in_offline" if word in {"dns", "offline"} else "sign_in_unreachable"
    named = None if word in {"offline", "cancelled"} else word
    assert (why(app.screen), message.get("cause")) == (reason, named)
    assert any(f"sign_in, status 0, {word}" in line for level, line in lines if level == 3)
    [(level, line)] = [each for each in lines if "the sign-in failed" in each[1]]
    host = phone.config["backend"]["url"].split("//")[1]
    assert level == 1
    assert reason in line and line.endswith(f"host {host}")
    assert named is None or named in line


def test_HST_4_a_callback_that_names_a_provider_that_is_off_tells_it(
    phone: Phone, library: Library
) -> None:
    lines = heard(library, 1)
    app = phone.start()
    begin(app)
    query = "error=server_error&error_code=provider_disabled"
    app.sign_in_complete({"callback_url": f"{app.phone.config['redirect_url']}?{query}"})
    assert told(app) == ("sign_in", "sign_in_failed", "provider_disabled")
    [(level, line)] = failures(lines)
    assert (level, "provider_disabled" in line) == (1, True)


def test_HST_4_a_sign_in_that_succeeds_is_no_line_of_the_log(
    phone: Phone, person: Person, library: Library
) -> None:
    lines = heard(library, 1)
    app = phone.start()
    finish(app, browse(begin(app)["url"]))
    assert app.screen["screen"] == "home"
    assert failures(lines) == []


# Other servers, and what is tried again --------------------------------------------------------


#: What stands in the way of the first request, and the cause that the waiting user is told.
ON_THE_WAY: dict[str, tuple[Answer, str]] = {
    "nothing listens": ({"error": "refused"}, "refused"),
    "another certificate": ({"error": "tls"}, "tls"),
    "no answer": ({"error": "timeout"}, "timeout"),
    "a page": ({"status": 200, "headers": HTML, "body": "<html>"}, "not_supabase"),
    "a page that forbids": ({"status": 403, "headers": HTML, "body": "<html>"}, "not_supabase"),
    "elsewhere": ({"status": 302, "headers": {"location": "/"}, "body": ""}, "not_supabase"),
}


@pytest.mark.parametrize("address", ON_THE_WAY)
def test_HST_4_who_waits_for_a_sign_in_learns_at_once_why_it_is_tried_again(
    phone: Phone, person: Person, library: Library, address: str
) -> None:
    given, cause = ON_THE_WAY[address]
    lines: list[str] = []
    app = phone.start()
    library.set_log(1, lambda level, line: lines.append(line))
    phone.network.instead.append(lambda request: given)
    start = phone.monotonic_ms
    finish(app, browse(begin(app)["url"]))
    app.settle()
    assert phone.monotonic_ms - start < 1000
    assert told(app) == ("wait", "signing_in", cause)
    message = app.screen["message"]
    assert message is not None
    assert message["text"] == "Vi har ikke fått kontakt ennå. Vi prøver fortsatt …"
    assert [line for line in lines if "tried again" in line and cause in line], lines
    decisions = len(app.of_type("screen"))
    for _ in range(25):
        if phone.network.count("sign_in") == 1:
            app.wait(1)
    assert phone.network.count("sign_in") > 1
    assert len(app.of_type("screen")) == decisions
    phone.network.instead.clear()
    app.settle_until("screen", within_s=30)
    assert app.screen["screen"] == "home"


def test_HST_4_a_server_that_is_not_supabase_ends_the_sign_in(phone: Phone, person: Person) -> None:
    app = phone.start()
    given: list[Answer] = []
    phone.network.instead.append(lambda request: given[-1])
    for status in (501, 405):
        for body in ("<html>Unsupported method", body_of(detail="no")):
            given.append({"status": status, "headers": HTML, "body": body})
            app.sign_in_complete({"email": person.email, "password": PASSWORD})
            app.settle()
            assert told(app) == ("sign_in", "sign_in_failed", "not_supabase"), given[-1]


def test_HST_4_a_page_instead_of_an_answer_is_waited_out_and_then_named(
    phone: Phone, person: Person
) -> None:
    page: Answer = {"status": 200, "headers": HTML, "body": "<html>"}
    app = phone.start()
    phone.network.instead.append(lambda request: page)
    callback = browse(begin(app)["url"])
    finish(app, callback)
    assert app.screen["screen"] == "wait"
    settle_sign_in(app)
    assert told(app) == ("sign_in", "sign_in_failed", "not_supabase")


def test_HST_4_a_page_and_then_silence_is_not_named_after_the_page(
    phone: Phone, person: Person
) -> None:
    answers: list[Answer] = [{"status": 200, "headers": HTML, "body": "<html>"}]
    silence: Answer = {"error": "timeout"}
    app = phone.start()
    phone.network.instead.append(lambda request: answers.pop() if answers else silence)
    finish(app, browse(begin(app)["url"]))
    settle_sign_in(app)
    assert why(app.screen) == "sign_in_unreachable"
    assert (app.screen["message"] or {}).get("cause") == "timeout"


# Over an open session ---------------------------------------------------------------------------


@pytest.mark.parametrize("ends", ["refused", "offline", "expired"])
def test_HST_4_a_sign_in_that_fails_over_an_open_session_tells_why(
    user: SignedIn, directory: DirectoryFixtures, ends: str
) -> None:
    app = user.app
    shown = len(app.of_type("screen"))
    if ends == "expired":
        user.phone.network.instead.append(
            lambda request: {"error": "timeout"} if request["purpose"] == "sign_in" else None
        )
    app.sign_in_complete({"email": user.person.email, "password": "not-the-password"})
    if ends == "offline":
        user.phone.network.up = False
        app.network_report({"online": False})
    app.settle()
    if ends == "expired":
        settle_sign_in(app)
    reason = {"offline": "sign_in_offline", "expired": "sign_in_unreachable"}
    expected = ("sign_in", reason.get(ends, "sign_in_failed"))
    assert seen(app.screen) == expected
    assert (app.screen["message"] or {}).get("cause") == {
        "refused": "wrong_password",
        "expired": "timeout",
    }.get(ends)
    if ends == "offline":
        app.go_online()
    app.settle()
    app.wait(TOKEN_S)
    assert directory.refreshes() == 1
    decisions = app.of_type("screen")[shown:]
    waits = ["signing_in"] if ends == "expired" else []  # it tells why it is tried again
    assert [why(event["screen"]) for event in decisions] == [*waits, expected[1]]
    # while the session stays open, and its data can be used;
    assert app.session_status()["state"] == "active"
    app.register()
    assert app.sign_in_cancel()["screen"]["screen"] == "home"
    app.settle()
    assert app.screen["screen"] == "home"


@pytest.mark.parametrize("change", ["lock", "logout", "elsewhere", "return", "sign-in"])
def test_HST_4_a_failed_sign_in_over_an_open_session_gives_way(user: SignedIn, change: str) -> None:
    """It stays only until the session changes, or the app asks for a decision."""
    app = user.app
    app.sign_in_complete({"email": user.person.email, "password": "not-the-password"})
    app.settle()
    assert why(app.screen) == "sign_in_failed"
    if change == "lock":
        app.session_lock()
    elif change == "logout":
        app.session_logout()
    elif change == "elsewhere":
        with Holdfast(
            user.phone.config, user.phone.key_store, library=user.phone.library
        ) as second:
            second.clock_set({"now_ms": user.phone.now_ms, "monotonic_ms": user.phone.monotonic_ms})
            second.session_lock()
    elif change == "return":
        app.session_background()
        app.session_foreground()
    else:
        app.sign_in_complete({"email": user.person.email, "password": PASSWORD})
    app.settle()
    expected = {"lock": "unlock", "logout": "sign_in", "elsewhere": "unlock"}
    assert app.screen["screen"] == expected.get(change, "home")
    assert why(app.screen) != "sign_in_failed"
