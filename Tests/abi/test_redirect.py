"""The redirect of a sign-in in the browser: HST-7, and finding 13 of the review of the lock.

The URL is sent exactly as configured, and PKCE alone binds the answer to this device.
"""

from __future__ import annotations

import json
import urllib.parse
from collections.abc import Callable, Iterator

import pytest
from holdfast import HoldfastError

from support.directory_fixtures import PASSWORD, DirectoryFixtures, Person
from support.errors import error_of
from support.held import answer
from support.phone import METHODS, App, Phone
from support.screens import seen, shown
from support.sign_in import begin, browse, finish, refused
from support.users import MakePhone, SignedIn

BACK = "app.example://signed-in"
JUNK = f"{BACK}?code=00000000-0000-0000-0000-000000000000"
DENIED = f"{BACK}?error=access_denied&error_code=access_denied#error=access_denied"


@pytest.fixture
def allow(directory: DirectoryFixtures) -> Iterator[Callable[[str], None]]:
    """Lets the project allow exactly this redirect: with another one the browser goes elsewhere."""
    yield lambda url: directory.control.set(redirect_allow_list=[url]) and None
    directory.control.set(redirect_allow_list=None)


@pytest.fixture
def foreign(phones: MakePhone, directory: DirectoryFixtures) -> str:
    """A callback that somebody obtained on another device, with an account of the same project."""
    other = directory.person(directory.organisation())
    directory.control.sign_in_as(other.email)
    callback = browse(begin(phones().start())["url"])
    assert callback.startswith(f"{BACK}?code=")
    return callback


@pytest.fixture
def victim(phones: MakePhone, foreign: str, directory: DirectoryFixtures) -> App:
    """The app of the person whom the provider signs in from now on."""
    person = directory.person(directory.organisation())
    directory.control.sign_in_as(person.email)
    return phones().start()


def told(app: App) -> list[tuple[str, str]]:
    """The decisions that came as events."""
    return [seen(e["screen"]) for e in app.of_type("screen")]


def complete(app: App, callback: str) -> tuple[str, str]:
    """Pass the callback; returns the decision that answers."""
    reply = app.sign_in_complete({"callback_url": callback})
    return seen(reply)


# The URL ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "redirect",
    [
        "app.example://signed-in",
        "com.example.app:/signed-in",
        "com.example.my_app://signed-in/here?from=app",
        "https://app.example.org/signed-in?from=a%20b",
        "http://127.0.0.1:7777/signed-in",
    ],
)
def test_HST_7_the_redirect_url_is_sent_exactly_as_configured(
    phones: MakePhone, person: Person, allow: Callable[[str], None], redirect: str
) -> None:
    allow(redirect)
    app = phones(redirect_url=redirect).start()
    begun = begin(app)
    assert set(begun) == {"url"}
    query = urllib.parse.parse_qs(urllib.parse.urlsplit(begun["url"]).query)
    assert query["redirect_to"] == [redirect]
    callback = browse(begun["url"])
    assert urllib.parse.urlsplit(callback)[:3] == urllib.parse.urlsplit(redirect)[:3]
    finish(app, callback)
    assert shown(app) == ("home", None)


NOT_A_REDIRECT = [
    "javascript:alert(1)",
    "javascript://app.example.org/%0aalert(1)",
    "data:text/html,x",
    "holdfast://signed-in",
    "myapp://signed-in",
    "file:///etc/passwd",
    "http://app.example.org/signed-in",
    "http://127.0.0.1.example.org/",
    "http://user@127.0.0.1/",
    "https://",
    "https:signed-in",
    "https://user@app.example.org/",
    "https://app.example.org/#signed-in",
    "https://app.example.org/?code=1",
    "https://app.example.org/?error=1",
    "com.example.app:signed-in",
    "com.example.app:",
    "com.example.app://",
    "com..app:/signed-in",
    ".example.app:/signed-in",
    "com.example.:/signed-in",
    "com.example.app:/signed in",
    "com.example.app:/å",
    "signed-in",
    "",
]


def test_HST_7_a_redirect_url_that_is_no_redirect_is_refused(phone: Phone) -> None:
    """Also where no method needs it: a wrong one is a mistake all the same."""
    for redirect in NOT_A_REDIRECT:
        phone.config["redirect_url"] = redirect
        for methods in (METHODS, [METHODS[2]]):
            phone.config["auth_methods"] = methods
            error = error_of(phone.open)
            assert (error.code, error.field) == ("request.invalid_value", "/redirect_url"), redirect


def test_HST_7_sign_ins_in_a_browser_need_a_redirect_url(phone: Phone) -> None:
    """No default: a scheme that all apps share delivers one app's answer to another."""
    del phone.config["redirect_url"]
    error = error_of(phone.open)
    assert (error.code, error.field) == ("request.missing_field", "/redirect_url")
    assert '"bankid", "vipps"' in error.message
    # The default, a password, needs none; other methods need none either
    del phone.config["auth_methods"]
    phone.open()
    phone.config["auth_methods"] = [METHODS[2]]
    app = phone.start()
    assert refused(app, JUNK) == "sign_in.unknown_method"


# A foreign code -----------------------------------------------------------------------------------


def test_HST_7_another_device_s_code_is_refused_and_the_sign_in_goes_on(
    phones: MakePhone, victim: App, foreign: str
) -> None:
    own = browse(begin(victim)["url"])
    assert complete(victim, foreign) == ("wait", "signing_in")
    victim.settle()
    assert shown(victim) == ("sign_in", "sign_in_foreign")
    assert victim.screen["message"] is not None
    assert victim.session_status()["state"] == "signed_out"
    again = victim.phone.start()
    finish(again, own)
    assert again.screen["screen"] == "home"


def test_HST_7_a_foreign_code_does_not_disturb_an_exchange(
    victim: App, foreign: str, directory: DirectoryFixtures
) -> None:
    assert complete(victim, browse(begin(victim)["url"])) == ("wait", "signing_in")
    [request] = victim.poll()["requests"]
    for number in range(8):
        assert complete(victim, f"{JUNK}{number}") == ("wait", "signing_in")
    assert complete(victim, foreign) == ("wait", "signing_in")
    assert complete(victim, DENIED) == ("wait", "signing_in")
    assert victim.poll()["requests"] == []
    answer(victim, request)
    victim.settle()
    assert [screen for screen, _ in told(victim)] == ["home"]
    assert victim.screen["screen"] == "home"
    assert victim.session_status()["owed"] == []
    assert not directory.control.requests("/auth/v1/logout", "POST")


def test_HST_7_the_right_callback_follows_a_foreign_one_at_once(victim: App, foreign: str) -> None:
    own = browse(begin(victim)["url"])
    complete(victim, foreign)
    [request] = victim.poll()["requests"]
    assert complete(victim, own) == ("wait", "signing_in")
    assert complete(victim, own) == ("wait", "signing_in")
    answer(victim, request)
    victim.settle()
    assert [screen for screen, _ in told(victim)] == ["home"]
    assert len(verifiers(victim.phone)) == 2


def test_HST_7_a_callback_does_not_replace_a_sign_in_with_a_password(
    victim: App, foreign: str, directory: DirectoryFixtures
) -> None:
    person = directory.person(directory.organisation())
    begin(victim)
    victim.sign_in_complete({"email": person.email, "password": PASSWORD})
    [request] = victim.poll()["requests"]
    assert complete(victim, foreign) == ("wait", "signing_in")
    answer(victim, request)
    victim.settle()
    assert victim.session_status()["user_id"] == person.id
    assert [screen for screen, _ in told(victim)] == ["home"]


@pytest.mark.parametrize("kind", ["another device's code", "a code that nobody issued", "an error"])
def test_HST_7_a_foreign_callback_over_a_session_shows_the_session_again(
    user: SignedIn, foreign: str, kind: str
) -> None:
    app = user.app
    begin(app)
    callback = {"another device's code": foreign, "an error": DENIED}.get(kind, JUNK)
    app.sign_in_complete({"callback_url": callback})
    app.settle()
    assert (app.screen["screen"], app.screen["route"]) == ("home", user.home)
    assert app.session_status()["state"] == "active"
    # A lock stays a lock
    app.session_lock()
    app.sign_in_complete({"callback_url": callback})
    app.settle()
    assert app.screen["screen"] == "unlock"
    app.touch()
    app.settle()
    assert app.screen["screen"] == "home"


@pytest.mark.parametrize("mark", ["?", "#"])
def test_HST_7_an_error_in_a_callback_ends_no_sign_in(victim: App, mark: str) -> None:
    """Any app and any page can open the redirect URL with an error: it proves nothing."""
    own = browse(begin(victim)["url"])
    # The user is told, since it may be true
    for error, reason in (
        ("access_denied&error_code=access_denied", "sign_in_cancelled"),
        ("server_error&error_code=flow_state_expired", "sign_in_expired"),
        ("server_error", "sign_in_failed"),
    ):
        assert complete(victim, f"{BACK}{mark}error={error}") == ("sign_in", reason)
    finish(victim, own)
    assert victim.screen["screen"] == "home"


def test_HST_7_without_a_sign_in_under_way_a_callback_is_refused(
    phone: Phone, foreign: str
) -> None:
    app = phone.start()
    for callback in (foreign, DENIED):
        assert refused(app, callback) == "sign_in.state_mismatch"
    begin(app)
    app.sign_in_cancel()
    for callback in (foreign, DENIED):
        assert refused(app, callback) == "sign_in.cancelled"
    phone.pass_time(901)
    for callback in (foreign, DENIED):
        assert refused(app, callback) == "sign_in.expired"
    assert app.poll()["requests"] == []


@pytest.mark.parametrize(
    ("answer", "name"),
    [
        ("?code=11111111-1111-4111-8111-111111111111&code={code}", "code"),
        ("?code={code}&code=11111111-1111-4111-8111-111111111111", "code"),
        ("?code={code}&c%6Fde={code}", "code"),
        ("?error=access_denied&error=server_error", "error"),
        ("?error=access_denied&error_code=a&error_code=b", "error_code"),
        ("#error=x&error_description=a&error_description=b", "error_description"),
    ],
)
def test_HST_7_a_callback_with_a_repeated_parameter_is_refused(
    victim: App, answer: str, name: str
) -> None:
    own = browse(begin(victim)["url"])
    [code] = urllib.parse.parse_qs(urllib.parse.urlsplit(own).query)["code"]
    with pytest.raises(HoldfastError, match=f"the parameter {name} comes more than once") as caught:
        victim.sign_in_complete({"callback_url": BACK + answer.format(code=code)})
    error = caught.value
    assert (error.code, error.field) == ("request.invalid_value", "/callback_url")
    assert verifiers(victim.phone) == []
    finish(victim, own)
    assert victim.screen["screen"] == "home"


# Which sign-in a code belongs to ------------------------------------------------------------------


def verifiers(phone: Phone) -> list[str]:
    """The verifiers that were tried, in order."""
    sent = [r for r in phone.network.sent if "grant_type=pkce" in r["url"]]
    return [json.loads(r["body"] or "")["code_verifier"] for r in sent]


@pytest.mark.parametrize("which", [0, 1, 2])
def test_HST_7_the_verifier_of_a_code_is_found_by_trying(
    phone: Phone, person: Person, which: int
) -> None:
    app = phone.start()
    callbacks = []
    for method in ("bankid", "vipps", "bankid"):
        callbacks.append(browse(begin(app, method)["url"]))
        phone.pass_time(1)
    finish(app, callbacks[which])
    assert app.screen["screen"] == "home"
    assert len(verifiers(phone)) == len(set(verifiers(phone))) == 3 - which
    assert [screen for screen, _ in told(app)] == ["home"]
    for callback in callbacks:
        assert refused(app, callback) == "sign_in.state_mismatch"


def test_HST_7_a_code_is_tried_with_few_verifiers(phone: Phone, foreign: str) -> None:
    """Each try is a request, and the server counts them."""
    app = phone.start()
    for _ in range(20):
        begin(app)
        phone.pass_time(1)
    complete(app, foreign)
    app.settle()
    assert shown(app) == ("sign_in", "sign_in_foreign")
    assert 1 < len(verifiers(phone)) <= 8


def test_HST_7_a_code_that_nobody_issued_is_tried_once(phone: Phone, person: Person) -> None:
    """The server looks the code up before it compares verifiers."""
    app = phone.start()
    begin(app)
    own = browse(begin(app)["url"])
    complete(app, JUNK)
    app.settle()
    assert shown(app) == ("sign_in", "sign_in_expired")
    assert len(verifiers(phone)) == 1
    finish(app, own)
    assert app.screen["screen"] == "home"


def test_HST_7_an_older_server_refuses_a_foreign_code_without_a_code(
    phone: Phone, person: Person, directory: DirectoryFixtures
) -> None:
    """Servers before v2.164.0 have only the text."""
    app = phone.start()
    own = browse(begin(app)["url"])
    body = '{"code":400,"msg":"code challenge does not match previously saved code verifier"}'
    directory.control.respond("/auth/v1/token", 400, body=body, times=1)
    complete(app, own)
    app.settle()
    assert shown(app) == ("sign_in", "sign_in_foreign")
    finish(app, own)
    assert app.screen["screen"] == "home"


def test_HST_7_a_method_that_is_no_longer_configured_is_not_completed(
    phone: Phone, person: Person
) -> None:
    app = phone.start()
    callback = browse(begin(app, "vipps")["url"])
    phone.config["auth_methods"] = [METHODS[0]]
    app = phone.start()
    assert refused(app, callback) == "sign_in.state_mismatch"
