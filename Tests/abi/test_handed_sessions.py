"""A session that the host hands over is read as tolerantly as an answer of the server."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from holdfast import HoldfastError

from support.phone import App, Phone
from support.users import MakePhone, MakeUser

#: A number that neither 64 bits nor a double hold, and nesting that no reader here follows.
HUGE = "12345678901234567000"
DEEP = "[" * 65 + "]" * 65

MANY = "[" + "{}," * 140_000 + "{}]"

#: Members beside those that the server sent, as text.
ODD: dict[str, str] = {
    "huge number": f'"x": {HUGE}',
    "beyond a double": '"x": [1e400, -1e400]',
    "nested": f'"x": {DEEP}',
    "nested and huge": '"x": ' + '{"a":' * 70 + HUGE + "}" * 70,
    "many values": f'"x": {{"y": {MANY}}}',
    "same key twice": '"x": 1, "x": 2, "access_token": "old"',
    "of another library": '"expires_at_iso": "2026-01-01T00:00:00Z", "provider_token": null',
}
#: The same in the user, whose id is needed.
OF_USER: dict[str, str] = {
    "huge number": f'"user_metadata": {{"x": {HUGE}}}',
    "nested": f'"user_metadata": {{"x": {DEEP}}}',
    "many values": f'"identities": {MANY}',
    "same key twice": '"role": 1, "role": 2',
    "no metadata": '"user_metadata": null, "app_metadata": 7, "factors": "none"',
}
#: Numbers in the forms in which libraries and redirects pass them.
NUMBERS = ["3600", "3600.0", "3.6e3", '"3600"', '"3600.5"']


def texts(session: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """The session in all these forms, each with a name."""
    for name, text in ODD.items():
        yield name, "{" + text + ", " + json.dumps(session)[1:]
    for name, text in OF_USER.items():
        user = f'"user": {{"id": "{session["user"]["id"]}", {text}}}'
        rest = {key: value for key, value in session.items() if key != "user"}
        yield f"user, {name}", "{" + json.dumps(rest)[1:-1] + f", {user}}}"
    for number in NUMBERS:
        rest = {key: value for key, value in session.items() if key != "expires_in"}
        yield f"expires_in {number}", json.dumps(rest)[:-1] + f', "expires_in": {number}}}'
    for end in [f'"{session["expires_at"]}"', HUGE, "null", '"2026-01-01T00:00:00Z"', "{}"]:
        rest = {key: value for key, value in session.items() if key != "expires_at"}
        yield f"expires_at {end}", json.dumps(rest)[:-1] + f', "expires_at": {end}}}'


def start(app: App, session: str) -> tuple[int, dict[str, Any]]:
    """Hand over this text as the session."""
    request = f'{{"session": {session}}}'.encode()
    status, reply = app.library.call("session_adopt", app._handle, request)
    return status, json.loads(reply or "{}")


def given(phone: Phone, sign_in: MakeUser) -> dict[str, Any]:
    """A session as the server sent it, of a user of the backend."""
    return dict(phone.session(sign_in().person))


@pytest.mark.both_flavours
def test_a_handed_session_is_read_as_tolerantly_as_an_answer(
    phones: MakePhone, sign_in: MakeUser
) -> None:
    session = given(phones(), sign_in)
    refused = []
    for name, text in texts(session):
        app = phones(policy={"biometric": "off"}).start(online=False)
        status, reply = start(app, text)
        if status != 0 or app.session_status()["user_id"] != session["user"]["id"]:
            refused.append((name, reply))
        app.phone.close()
    assert not refused


def test_the_end_of_a_handed_session_may_be_a_text(phones: MakePhone, sign_in: MakeUser) -> None:
    session = given(phones(), sign_in)
    left = []
    for member, value in [
        ("expires_in", "1800"),
        ("expires_at", str(session["expires_at"] - 1800)),
    ]:
        app = phones(policy={"biometric": "off"}).start(online=False)
        changed = {**session, member: value}
        if member == "expires_in":
            del changed["expires_at"]
        status, reply = start(app, json.dumps(changed))
        assert status == 0, reply
        left.append(app.session_status()["expires_ms"] - app.phone.now_ms)
        app.phone.close()
    assert all(1_700_000 < each < 1_900_000 for each in left), left


def test_a_handed_session_without_what_is_needed_is_refused_by_name(
    phones: MakePhone, sign_in: MakeUser
) -> None:
    session = given(phones(), sign_in)
    app = phones().start(online=False)
    for field in ("access_token", "refresh_token", "expires_in", "user"):
        for value in [..., None, "", [], HUGE, "x" * 16_385, "-1", "1e9999", "0x10"]:
            if field == "refresh_token" and value in ("-1", "1e9999", "0x10", HUGE):
                continue  # any visible text may be one
            changed = {**session, field: value}
            if value is ...:
                del changed[field]
            text = json.dumps(changed)[:-1] + f', "x": {HUGE}, "y": {DEEP}}}'
            status, reply = start(app, text)
            assert status == 1, (field, value)
            assert reply["error"]["code"] == "session.invalid", (field, value, reply)
            assert reply["error"]["field"].startswith(f"/session/{field}"), (field, value, reply)
    assert app.session_status()["state"] == "signed_out"


def test_the_request_around_a_handed_session_is_read_strictly(
    phones: MakePhone, sign_in: MakeUser
) -> None:
    """Only what the server wrote is read tolerantly: a slip of the host is named."""
    session = json.dumps(given(phones(), sign_in))
    app = phones().start(online=False)
    for text, code in [
        (f'{{"session": {session}, "sesion": 1}}', "request.unknown_field"),
        ('{"session": 7}', "session.invalid"),
        ('{"session": null}', "request.missing_field"),
        ("{}", "request.missing_field"),
        (f'{{"session": {session}', "request.not_json"),
        (f"[{session}]", "request.not_an_object"),
        (f'{{"session": {session[:-1]}, }}}}', "request.not_json"),
    ]:
        with pytest.raises(HoldfastError) as caught:
            status, reply = app.library.call("session_adopt", app._handle, text.encode())
            app._decode("session_adopt", status, reply)
        assert caught.value.code == code, (text[-40:], caught.value)
    assert app.session_status()["state"] == "signed_out"
