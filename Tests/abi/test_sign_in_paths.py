"""Sign-ins that are slow, repeated, forged, or for another app."""

from __future__ import annotations

import base64
import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from holdfast import HoldfastError

from support import scan
from support.directory_fixtures import DirectoryFixtures, Person
from support.errors import error_of
from support.phone import App, Phone
from support.screens import why
from support.sign_in import begin, browse, finish, refused
from support.users import MakePhone, SignedIn


def message(app: App) -> tuple[str, str]:
    """The shown (code, text)."""
    shown = app.screen["message"]
    assert shown is not None
    return shown["code"], shown["text"]


def test_SES_13_a_slow_dialogue_has_its_own_message(
    phone: Phone, person: Person, directory: DirectoryFixtures
) -> None:
    app = phone.start()
    callback = browse(begin(app)["url"])
    body = {"code": "flow_state_expired", "message": "x"}
    directory.control.respond("/auth/v1/token", 422, body=json.dumps(body), times=1)
    finish(app, callback)
    assert why(app.screen) == "sign_in_expired"
    expired = message(app)
    directory.control.respond("/auth/v1/token", 400, body='{"code":"user_banned"}', times=1)
    finish(app, browse(begin(app)["url"]))
    failed = message(app)
    assert (expired[0], failed[0]) == ("sign_in_expired", "sign_in_failed")
    assert expired[1] != failed[1]


def test_SES_13_a_callback_works_once_across_processes(
    phone: Phone, person: Person, directory: DirectoryFixtures
) -> None:
    """The server takes a code once. The process that comes second shows what the first one got."""
    first = phone.start()
    callback = browse(begin(first)["url"])
    second = phone.another()
    try:
        assert second.sign_in_complete({"callback_url": callback})["screen"] == "wait"
        assert first.sign_in_complete({"callback_url": callback})["screen"] == "wait"
        second.settle()
        first.settle()
        assert (first.screen["screen"], second.screen["screen"]) == ("home", "home")
        assert len(directory.control.sessions(person.id)) == 1
        for app in (first, second):
            assert refused(app, callback) == "sign_in.state_mismatch"
    finally:
        first.close()


def test_SES_13_logging_out_ends_open_sign_ins(phone: Phone, person: Person) -> None:
    app = phone.start()
    callback = browse(begin(app)["url"])
    app.session_logout()
    assert refused(app, callback) == "sign_in.state_mismatch"


def test_SES_13_no_verifier_is_readable(phone: Phone, person: Person, tmp_path: Path) -> None:
    app = phone.start()
    callback = browse(begin(app)["url"])
    phone.close()
    shutil.copytree(phone.folder, tmp_path / "copy")
    app = phone.start()
    finish(app, callback)
    [sent] = [r for r in phone.network.sent if "grant_type=pkce" in r["url"]]
    verifier = json.loads(sent["body"] or "")["code_verifier"]
    # Then they do not hold it, and it has at least 43 characters (RFC 7636)
    assert len(verifier) >= 43
    assert scan.scan_files(tmp_path / "copy", verifier) == []
    assert scan.scan_files(phone.folder, verifier) == []


#: What is no callback of this app: other forms of its own, and other addresses with its code.
CALLBACKS_OF_OTHERS = [
    "nonsense",
    "app.example://signed-in",
    "app.example://signed-in?state=x",
    "app.example://signed-in?kode={code}",
    "app.example://signed-in/deeper?code={code}&state=x",
    "app.example:signed-in?code={code}&state=x",
    "app.example.evil://signed-in?code={code}",
    "evil.example://signed-in?code={code}",
    "https://app.example/signed-in?code={code}",
    "app.example://user@signed-in?code={code}",
    "app.example://signed-in:8080?code={code}",
    "javascript:alert(1)",
]


def test_SES_13_a_callback_of_another_app_is_refused(phone: Phone, person: Person) -> None:
    app = phone.start()
    right = browse(begin(app)["url"])
    code = right.partition("code=")[2]
    for callback in CALLBACKS_OF_OTHERS:
        assert refused(app, callback.format(code=code)) == "sign_in.foreign_callback", callback
        assert app.session_status()["state"] == "signed_out", callback
    finish(app, right)
    assert app.screen["screen"] == "home"


#: What is passed, and the field that is wrong.
INVALID: list[tuple[dict[str, Any], str]] = [
    ({"email": "a@b", "password": "x", "method": "bankid"}, "/method"),
    ({"id_token": "x", "nonce": "y", "method": "email"}, "/method"),
    ({"id_token": "x", "nonce": "y", "method": "nobody"}, "/method"),
    ({"id_token": "x"}, "/nonce"),
    ({"email": "", "password": "x"}, "/email"),
    ({"email": "a@b"}, "/password"),
    ({"callback_url": "com.example.app:/in?code=1", "method": "bankid"}, "/method"),
]


def test_SES_13_an_invalid_sign_in_request_names_the_field(phones: MakePhone) -> None:
    native = {"id": "app", "provider": "vipps", "flow": "id_token", "label": "Vipps"}
    email = {"id": "email", "provider": "email", "flow": "password", "label": "E-post"}
    bankid = {"id": "bankid", "provider": "bankid", "flow": "pkce", "label": "BankID"}
    app = phones(auth_methods=[bankid, native, email]).start()
    for request, field in INVALID:
        with pytest.raises(HoldfastError) as caught:
            app.sign_in_complete(request)  # type: ignore[arg-type]
        assert (caught.value.status, caught.value.field) == (1, field), request
        assert app.poll()["requests"] == [], request
        assert app.session_status()["state"] == "signed_out", request


@pytest.mark.parametrize(
    ("request_", "field", "flow"),
    [
        ({"email": "a@b", "password": "x"}, "/password", "password"),
        ({"id_token": "x", "nonce": "y"}, "/id_token", "id_token"),
        ({"callback_url": "app.example://signed-in?code=1"}, "/callback_url", "pkce"),
    ],
)
def test_HST_7_a_flow_of_no_configured_method_is_refused(
    phones: MakePhone, request_: dict[str, Any], field: str, flow: str
) -> None:
    methods = [{"id": name, "flow": name} for name in ("password", "id_token", "pkce")]
    app = phones(auth_methods=[one for one in methods if one["id"] != flow]).start()
    with pytest.raises(HoldfastError) as caught:
        app.sign_in_complete(request_)  # type: ignore[arg-type]
    assert (caught.value.code, caught.value.field) == ("sign_in.unknown_method", field)
    assert app.poll()["requests"] == []
    error = error_of(app.sign_in_begin, {"method": flow})
    assert (error.code, error.field) == ("sign_in.unknown_method", "/method")


def forged(token: str, **claims: Any) -> str:  # noqa: ANN401
    """The token with changed claims; None removes a claim."""
    head, body, tail = token.split(".")
    held = json.loads(base64.urlsafe_b64decode(body + "=="))
    held.update(claims)
    held = {name: value for name, value in held.items() if value is not None}
    text = base64.urlsafe_b64encode(json.dumps(held).encode()).decode().rstrip("=")
    return f"{head}.{text}.{tail}"


@pytest.mark.parametrize("fault", ["garbage", "two parts", "not base64", "other user", "no end"])
def test_KEEP_1_a_garbled_or_forged_token_is_refused(
    user: SignedIn, directory: DirectoryFixtures, fault: str
) -> None:
    before = user.app.session_status()
    session = directory.session(user.person)
    token = session["access_token"]
    session["access_token"] = {
        "garbage": "garbage",
        "two parts": ".".join(token.split(".")[:2]),
        "not base64": token.replace(".", ".!", 1),
        "other user": forged(token, sub="01976b36-0000-7000-8000-00000000abcd"),
        "no end": forged(token, exp=None),
    }[fault]
    error = error_of(user.app.session_adopt, {"session": session})
    assert (error.code, error.field) == ("session.invalid", "/session/access_token")
    assert user.app.session_status() == before
