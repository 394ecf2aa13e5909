"""Issue 16, point 5: the mistakes of hosts that were written from the documentation alone (HST-4).

Each is refused with the field, and with a message that says what is right.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from holdfast import HoldfastError, Library
from holdfast.transport import Answer

from conftest import MakePhone, MakeUser
from support import contract
from support.directory_fixtures import DirectoryFixtures, Person
from support.phone import Phone
from support.sign_in import begin, browse, finish, settle_sign_in

#: What is configured, the code, the field, and what the message says.
MISTAKES: dict[str, tuple[dict[str, Any], str, str, list[str]]] = {
    "no role": (
        {"routes": {}},
        "request.invalid_value",
        "/routes",
        ["at least one role"],
    ),
    "routes as a list": (
        {"routes": ["/home"]},
        "request.wrong_type",
        "/routes",
        ["an object of roles"],
    ),
    "a route as a string": (
        {"routes": {"user": "/home"}},
        "request.wrong_type",
        "/routes/user",
        ["an object", "home, screens"],
    ),
    "a key store as a string": (
        {"keystore": "file"},
        "request.wrong_type",
        "/keystore",
        ["an object", "kind"],
    ),
    "key files by another name": (
        {"keystore": {"kind": "files"}},
        "request.invalid_value",
        "/keystore/kind",
        ["file, host", 'did you mean "file"?', "file: key files"],
    ),
    "a keychain": (
        {"keystore": {"kind": "keychain"}},
        "request.invalid_value",
        "/keystore/kind",
        ["file, host", "host: your keychain, asked in poll"],
    ),
    "the driver's key store": (
        {"keystore": {"kind": "secret_service"}},
        "request.invalid_value",
        "/keystore/kind",
        ["file, host", "secret_service: the desktop's keyring, of holdfast_http_open"],
    ),
    "no key store": (
        {},
        "request.missing_field",
        "/keystore",
        ['"keystore":{"kind":"host"}', '"keystore":{"kind":"file"}', '"biometric":"off"'],
    ),
    "methods as strings": (
        {"auth_methods": ["password"]},
        "request.wrong_type",
        "/auth_methods/0",
        ["an object", "id, provider, flow, label"],
    ),
    "methods as a string": (
        {"auth_methods": "password"},
        "request.wrong_type",
        "/auth_methods",
        ["an array"],
    ),
    "a method without a flow": (
        {"auth_methods": [{"id": "password"}]},
        "request.missing_field",
        "/auth_methods/0/flow",
        ["required", "pkce, id_token, password"],
    ),
    "a boolean for a choice": (
        {"policy": {"biometric": False}},
        "request.wrong_type",
        "/policy/biometric",
        ["required, preferred, off"],
    ),
    "an empty choice": (
        {"policy": {"biometric": ""}},
        "request.invalid_value",
        "/policy/biometric",
        ["required, preferred, off"],
    ),
    "another language": (
        {"locale": "sv-SE"},
        "request.invalid_value",
        "/locale",
        ["nb, nn, en"],
    ),
    "no language tag": ({"locale": 1}, "request.wrong_type", "/locale", ["nb, nn, en"]),
}


def refusal(phone: Phone, config: dict[str, Any]) -> dict[str, Any]:
    """The error of an open(), which must leave nothing behind."""
    handle, (_, reply) = phone.library.open(json.dumps(config).encode(), None)
    assert handle == 0
    error: dict[str, Any] = json.loads(reply or b"")["error"]
    return error


@pytest.mark.parametrize("mistake", MISTAKES)
def test_HST_4_a_mistake_in_the_configuration_names_the_field_and_what_is_right(
    phone: Phone, mistake: str
) -> None:
    """Newcomer's list: the message named neither the values of a choice nor the fields."""
    change, code, field, said = MISTAKES[mistake]
    error = refusal(phone, {**phone.config, **change})
    assert (error["code"], error["field"]) == (code, field)
    for words in said:
        assert words in error["message"], error
    assert not phone.folder.exists(), "a refused configuration created files"


@pytest.mark.parametrize(
    ("name", "right"),
    [
        ("anon_key", "api_key"),
        ("anonKey", "api_key"),
        ("supabase_key", "api_key"),
        ("publishable_key", "api_key"),
        ("supabaseUrl", "url"),
        ("base_url", "url"),
    ],
)
def test_HST_4_the_names_of_other_clients_lead_to_ours(phone: Phone, name: str, right: str) -> None:
    """Newcomer's list: `anon_key` is what Supabase's pages call it, and was an unknown field."""
    config = json.loads(json.dumps(phone.config))
    config["backend"][name] = config["backend"].pop(right)
    error = refusal(phone, config)
    assert (error["code"], error["field"]) == ("request.unknown_field", f"/backend/{name}")
    assert f'"{right}"' in error["message"]


@pytest.mark.parametrize(
    ("tag", "text"),
    [
        ("nb", "Logg inn"),
        ("nb-NO", "Logg inn"),
        ("nb_NO", "Logg inn"),
        ("NB-no", "Logg inn"),
        ("nn-NO", "Logg inn"),
        ("en", "Sign in"),
        ("en-GB", "Sign in"),
        ("en-Latn-US-x-private", "Sign in"),
    ],
)
def test_HST_4_a_language_tag_is_taken_by_its_language(
    phones: MakePhone, tag: str, text: str
) -> None:
    """Newcomer's list: platforms report `nb-NO`, and the library knew `nb` alone (BCP 47)."""
    app = phones(locale=tag).start()
    assert text in (app.screen["message"] or {"text": ""})["text"]


@pytest.mark.parametrize("tag", ["nbx", "n", "", "english", "sv", "-NO", "e-n"])
def test_HST_4_another_language_is_refused(phone: Phone, tag: str) -> None:
    error = refusal(phone, {**phone.config, "locale": tag})
    assert (error["code"], error["field"]) == ("request.invalid_value", "/locale")


@pytest.mark.parametrize("place", ["~", "~/data", "~kari/data"])
def test_HST_4_a_home_folder_that_no_shell_expands_is_refused(phone: Phone, place: str) -> None:
    """Newcomer's list: `~/data` made a folder that is called `~`."""
    error = refusal(phone, {**phone.config, "data_dir": place})
    assert (error["code"], error["field"]) == ("request.invalid_value", "/data_dir")
    assert "~" in error["message"]
    assert not Path("~").exists()


@pytest.mark.parametrize("below", [False, True])
def test_HST_4_a_file_in_the_place_of_the_folder_is_named(
    phones: MakePhone, library: Library, below: bool
) -> None:
    """Newcomer's list: it was a failure of the storage, with an errno."""
    phone = phones()
    phone.folder.write_text("a file")
    place = str(phone.folder / "data") if below else str(phone.folder)
    with pytest.raises(HoldfastError) as caught:
        phone.config["data_dir"] = place
        phone.open()
    assert (caught.value.code, caught.value.field) == ("request.invalid_value", "/data_dir")
    assert "a file" in caught.value.message
    assert phone.folder.read_text() == "a file"
    phone.folder.unlink()


def test_HST_4_an_unknown_method_is_answered_with_a_near_one_or_all(phone: Phone) -> None:
    """Newcomer's list: `no such method`, and nothing else."""
    app = phone.start()
    for call, more in (
        (app.sign_in_begin, {}),
        (app.sign_in_complete, {"email": "a@example.org", "password": "x"}),
    ):
        with pytest.raises(HoldfastError) as caught:
            call({"method": "bankidd" if not more else "emai", **more})
        assert (caught.value.code, caught.value.field) == ("sign_in.unknown_method", "/method")
        assert ('"bankid"' if not more else '"email"') in caught.value.message
        with pytest.raises(HoldfastError) as caught:
            call({"method": "magic-link", **more})
        assert caught.value.code == "sign_in.unknown_method"
        assert "did you mean" not in caught.value.message
        expected = "bankid, vipps, email" if not more else "email"
        assert f"one of {expected} is expected" in caught.value.message


def test_HST_4_an_app_without_methods_signs_in_with_a_session(
    phones: MakePhone, directory: DirectoryFixtures
) -> None:
    """An empty list is for a host that obtains the session itself: it is accepted, and says so."""
    phone = phones(auth_methods=[])
    del phone.config["redirect_url"]
    app = phone.start()
    assert app.screen["methods"] == []
    with pytest.raises(HoldfastError) as caught:
        app.sign_in_begin({"method": "bankid"})
    assert "auth_methods is empty" in caught.value.message
    assert app.sign_in(directory.person(directory.organisation()))["screen"] == "home"


def test_HST_4_an_unknown_kind_is_answered_with_a_near_one_or_all(sign_in: MakeUser) -> None:
    """Newcomer's list: `no such kind`, and nothing else."""
    app = sign_in().app
    for kind, said in (
        ("activty", 'did you mean "activity"?'),
        ("visit", "one of activity, contact, contact_details is expected"),
    ):
        with pytest.raises(HoldfastError) as caught:
            app.queue_add({"kind": kind, "payload": {}, "occurred_at_ms": 0})
        assert (caught.value.code, caught.value.field) == ("queue.unknown_kind", "/kind")
        assert said in caught.value.message
    assert "suggests a near name" in contract.DOCUMENT["x-errors"]["queue.unknown_kind"]


def test_HST_4_a_lock_of_the_user_is_not_a_lost_key_without_biometrics(sign_in: MakeUser) -> None:
    """Newcomer's list: `session_lock` answered `key_lost`, as if the key store had failed."""
    user = sign_in(policy={"biometric": "off"})
    screen = user.app.session_lock()
    assert (screen["screen"], screen["reason"]) == ("sign_in", "biometric_off")
    # and so does the next start
    app = user.restart()
    assert (app.screen["screen"], app.screen["reason"]) == ("sign_in", "biometric_off")
    assert app.session_status()["state"] == "locked"
    app.sign_in(user.person)
    assert app.screen["screen"] == "home"


def test_HST_4_a_lock_of_the_user_is_not_a_lost_key_without_a_finger(
    phones: MakePhone, directory: DirectoryFixtures
) -> None:
    """The same for a device on which no finger is enrolled."""
    phone = phones(policy={"biometric": "preferred"})
    phone.keychain.enrolled = False
    app = phone.start()
    assert app.sign_in(directory.person(directory.organisation()))["screen"] == "home"
    screen = app.session_lock()
    assert (screen["screen"], screen["reason"]) == ("sign_in", "biometric_not_enrolled")


def test_HST_4_a_lost_biometric_key_stays_the_reason_after_a_lock_of_the_user(
    sign_in: MakeUser,
) -> None:
    """Where the key was lost indeed, the next start says so."""
    user = sign_in()
    assert user.app.session_lock()["screen"] == "unlock"
    user.phone.keychain.change_enrolment()
    screen = user.app.touch()
    assert (screen["screen"], screen["reason"]) == ("sign_in", "key_lost")
    assert user.restart().screen["reason"] == "key_lost"


@pytest.mark.parametrize(
    ("operation", "screen", "reason"),
    [("session_lock", "unlock", "user_locked"), ("session_background", "home", "active")],
)
def test_HST_4_the_examples_of_the_schema_are_what_the_library_answers(
    sign_in: MakeUser, operation: str, screen: str, reason: str
) -> None:
    """Newcomer's list: the schema showed `session_window` for both."""
    [example] = contract.OPERATIONS[operation]["examples"]
    heard = getattr(sign_in(locale="en").app, operation)()
    assert (heard["screen"], heard["reason"]) == (screen, reason)
    shown = example["reply"]
    assert (shown["screen"], shown["reason"]) == (screen, reason)
    assert shown["message"] == heard["message"]


def sign_in_lines(lines: list[tuple[int, str]]) -> list[tuple[int, str]]:
    return [(level, line) for level, line in lines if "the sign-in failed" in line]


#: What the server answers, and what the line says.
REFUSALS = {
    "wrong password": (400, {"code": "invalid_credentials", "message": "x"}, "wrong_password"),
    "wrong key": (401, {"message": "Invalid API key"}, "wrong_api_key"),
    "wrong URL": (404, {"message": "no Route matched"}, "wrong_url"),
    "paused": (540, {"message": "Project paused"}, "project_paused"),
    "unknown": (400, {"code": "signup_disabled", "message": "x"}, "signup_disabled"),
    "long code": (400, {"code": "kari@example.org " * 9, "message": "x"}, "sign_in_failed"),
}


@pytest.mark.parametrize("mistake", REFUSALS)
def test_HST_4_a_failed_sign_in_is_one_line_of_the_log(
    phone: Phone, person: Person, directory: DirectoryFixtures, library: Library, mistake: str
) -> None:
    """Newcomer's list: with the log at level 1 a failed sign-in said nothing."""
    status, body, said = REFUSALS[mistake]
    lines: list[tuple[int, str]] = []
    library.set_log(3, lambda level, line: lines.append((level, line)))
    app = phone.start()
    directory.control.respond("/auth/v1/token", status, body=json.dumps(body), times=1)
    app.sign_in_complete({"email": person.email, "password": "not-the-password"})
    app.settle()
    assert app.screen["reason"] == "sign_in_failed"
    [(level, line)] = sign_in_lines(lines)
    assert level == 1
    assert said in line
    assert str(status) in line
    assert "@" not in line


def test_HST_4_a_sign_in_without_an_answer_is_one_line_of_the_log(
    phone: Phone, person: Person, library: Library
) -> None:
    lines: list[tuple[int, str]] = []
    library.set_log(1, lambda level, line: lines.append((level, line)))
    silence: Answer = {"error": "timeout"}
    app = phone.start()
    phone.network.instead.append(lambda request: silence)
    finish(app, browse(begin(app)["url"]))
    settle_sign_in(app)
    assert app.screen["reason"] == "sign_in_unreachable"
    [(level, line)] = sign_in_lines(lines)
    assert (level, "sign_in_unreachable" in line) == (1, True)


def test_HST_4_a_refused_callback_is_one_line_of_the_log(phone: Phone, library: Library) -> None:
    lines: list[tuple[int, str]] = []
    library.set_log(1, lambda level, line: lines.append((level, line)))
    app = phone.start()
    begin(app)
    query = "error=server_error&error_code=provider_disabled"
    app.sign_in_complete({"callback_url": f"{app.phone.config['redirect_url']}?{query}"})
    [(level, line)] = sign_in_lines(lines)
    assert (level, "provider_disabled" in line) == (1, True)


def test_HST_4_a_sign_in_that_succeeds_is_no_line_of_the_log(
    phone: Phone, person: Person, library: Library
) -> None:
    lines: list[tuple[int, str]] = []
    library.set_log(1, lambda level, line: lines.append((level, line)))
    app = phone.start()
    finish(app, browse(begin(app)["url"]))
    assert app.screen["screen"] == "home"
    assert sign_in_lines(lines) == []
