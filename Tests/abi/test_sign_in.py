"""Signing in: BankID and Vipps in a browser, identity tokens, passwords."""

from __future__ import annotations

import urllib.parse
from typing import Any, cast

import pytest

from support.directory_fixtures import PASSWORD, DirectoryFixtures, Person
from support.errors import error_of
from support.phone import METHODS, Phone
from support.screens import seen, why
from support.sign_in import begin, browse, finish, refused
from support.users import MakePhone


@pytest.mark.both_flavours
@pytest.mark.parametrize("method", ["bankid", "vipps"])
def test_RES_6_signing_in_with_bankid_or_vipps(
    phone: Phone, person: Person, directory: DirectoryFixtures, method: str
) -> None:
    app = phone.start()
    begun = begin(app, method)
    query = urllib.parse.parse_qs(urllib.parse.urlsplit(begun["url"]).query)
    assert query["provider"] == [method]
    assert query["code_challenge_method"] == ["s256"]
    finish(app, browse(begun["url"]))
    assert seen(app.screen) == ("home", None)
    assert app.session_status()["user_id"] == person.id
    assert len(directory.control.sessions(person.id)) == 1


def test_SES_13_a_sign_in_survives_a_kill_while_the_browser_is_open(
    phone: Phone, person: Person
) -> None:
    begun = begin(phone.start())
    callback = browse(begun["url"])
    phone.pass_time(120)
    app = phone.start()
    finish(app, callback)
    assert app.screen["screen"] == "home"
    assert refused(app, callback) == "sign_in.state_mismatch"
    assert app.session_status()["state"] == "active"


def test_SES_13_an_expired_sign_in_is_refused(phone: Phone, person: Person) -> None:
    app = phone.start()
    callback = browse(begin(app)["url"])
    phone.pass_time(901)
    assert refused(app, callback) == "sign_in.expired"
    assert app.session_status()["state"] == "signed_out"


def test_SES_13_a_cancelled_browser_sign_in_shows_its_reason(
    phone: Phone, person: Person, directory: DirectoryFixtures
) -> None:
    directory.control.refuse_sign_in()
    app = phone.start()
    callback = browse(begin(app)["url"])
    assert "error" in callback
    screen = app.sign_in_complete({"callback_url": callback})
    assert seen(screen) == ("sign_in", "sign_in_cancelled")
    assert screen["message"] is not None
    app.settle()
    assert why(app.screen) == "sign_in_cancelled"
    finish(app, browse(begin(app)["url"]))
    assert app.screen["screen"] == "home"


@pytest.mark.both_flavours
def test_RES_6_signing_in_with_a_password(phone: Phone, person: Person) -> None:
    app = phone.start()
    assert begin(app, "email") == {"needs": ["email", "password"]}
    app.sign_in_complete({"email": person.email, "password": "wrong-wrong"})
    app.settle()
    told = [why(event["screen"]) for event in app.of_type("screen")]
    assert told == ["sign_in_failed"]
    assert seen(app.screen) == ("sign_in", "sign_in_failed")
    app.sign_in_complete({"email": person.email, "password": PASSWORD})
    app.settle()
    assert app.screen["screen"] == "home"


def test_RES_6_a_nonce_is_stored_and_completes_one_sign_in(
    phones: MakePhone, person: Person, directory: DirectoryFixtures
) -> None:
    native = {"id": "vipps-app", "provider": "vipps", "flow": "id_token", "label": "Vipps"}
    phone = phones(auth_methods=[*METHODS, native])
    app = phone.start()
    begun = begin(app, "vipps-app")
    assert begun["needs"] == ["id_token", "nonce"]
    token = directory.control.identity_token(person.email, nonce=begun["nonce"])

    def mismatch(nonce: str) -> None:
        error = error_of(app.sign_in_complete, {"id_token": token, "nonce": nonce})
        assert (error.code, error.field) == ("sign_in.state_mismatch", "/nonce")

    mismatch("another-nonce-than-asked")
    # It outlives the process, as a state does
    app = phone.start()
    app.sign_in_complete({"id_token": token, "nonce": begun["nonce"], "method": "vipps-app"})
    app.settle()
    assert app.screen["screen"] == "home"
    mismatch(begun["nonce"])
    late = begin(app, "vipps-app")["nonce"]
    phone.pass_time(901)
    request: Any = {"id_token": token, "nonce": late}
    assert error_of(app.sign_in_complete, request).code == "sign_in.expired"


def test_ATK_15_signing_in_without_a_network_is_answered_at_once(
    phone: Phone, person: Person
) -> None:
    app = phone.start()
    callback = browse(begin(app)["url"])
    app.go_offline()
    for request in ({"callback_url": callback}, {"email": person.email, "password": PASSWORD}):
        screen = app.sign_in_complete(cast(Any, request))
        assert seen(screen) == ("sign_in", "sign_in_offline")
        assert screen["message"] is not None
        assert app.poll()["wake_in_ms"] is None
    app.go_online()
    finish(app, callback)
    assert app.screen["screen"] == "home"


@pytest.mark.parametrize("told", ["by a response", "by the host"])
def test_ATK_15_a_network_that_goes_while_signing_in_ends_the_wait_at_once(
    phone: Phone, person: Person, told: str
) -> None:
    app = phone.start()
    screen = app.sign_in_complete({"email": person.email, "password": PASSWORD})
    assert screen["screen"] == "wait"
    if told == "by a response":
        phone.network.up = False
        app.settle()
    else:
        [request] = app.poll()["requests"]
        app.go_offline()
        app.settle()
    [event] = app.of_type("screen")
    decision = event["screen"]
    assert seen(decision) == ("sign_in", "sign_in_offline")
    assert app.poll()["requests"] == []
    if told == "by the host":
        phone.network.up = True
        app.complete(cast(Any, {"id": request["id"], **phone.network(request)}))
        app.settle()
        assert app.screen["screen"] == "sign_in"
        app.reconnect()
        assert app.session_status()["owed"] == []
    phone.network.up = True
    app.network_report({"online": True})
    app.sign_in_complete({"email": person.email, "password": PASSWORD})
    app.settle()
    assert app.screen["screen"] == "home"


def test_ATK_15_a_sign_in_that_is_not_answered_in_time_promises_nothing(
    phone: Phone, person: Person, directory: DirectoryFixtures
) -> None:
    directory.control.respond("/auth/v1/token", 503, times=-1)
    app = phone.start()
    app.sign_in_complete({"email": person.email, "password": PASSWORD})
    for _ in range(13):
        app.settle()
        phone.pass_time(5)
    app.settle()
    assert seen(app.screen) == ("sign_in", "sign_in_unreachable")
    assert app.poll()["requests"] == []


def test_SES_13_sign_ins_that_ran_out_together_end_at_one_poll(
    phone: Phone, person: Person
) -> None:
    app = phone.start()
    callbacks = [browse(begin(app, method)["url"]) for method in ("bankid", "vipps")]
    app.sign_in_complete({"email": person.email, "password": PASSWORD})
    for callback in callbacks:
        app.sign_in_complete({"callback_url": callback})
    assert len(app.poll()["requests"]) == 1
    phone.pass_time(120)
    polled = app.poll()
    assert polled["requests"] == []
    [decision] = [event["screen"] for event in polled["events"] if event["type"] == "screen"]
    assert seen(decision) == ("sign_in", "sign_in_unreachable")
    assert polled["wake_in_ms"] != 0


def test_ABI_3_requests_that_mix_two_forms_are_refused(phone: Phone) -> None:
    app = phone.start()
    code = "app.example://signed-in?code=1"
    mixed: list[tuple[str, dict[str, Any]]] = [
        ("sign_in_complete", {"callback_url": code, "email": "a@b"}),
        ("sign_in_complete", {"callback_url": code, "method": "vipps"}),
        ("sign_in_complete", {"email": "a@b", "password": "x", "nonce": "z"}),
        ("sign_in_complete", {"email": "a@b", "password": "x", "id_token": "y", "nonce": "z"}),
        ("sign_in_complete", {"email": "a@b"}),
        ("sign_in_complete", {}),
        ("complete", {"id": 1, "status": 200, "error": "offline"}),
        ("complete", {"id": 1, "error": "offline", "body": "x"}),
        ("complete", {"id": 1}),
    ]
    for operation, request in mixed:
        error = error_of(getattr(app, operation), request)
        assert error.status == 1, request
        assert error.code.startswith("request."), (request, error.code)
