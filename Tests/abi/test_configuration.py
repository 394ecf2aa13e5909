"""A mistake in the configuration is refused with its field, and with what is right (HST-4)."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from holdfast import Holdfast, Library, Runner

from support.directory_fixtures import PASSWORD, DirectoryFixtures
from support.errors import error_of, error_of_open
from support.phone import POLICY, Phone
from support.users import MakePhone

#: What is configured, the code, the field, and what the message says.
MISTAKES: dict[str, tuple[dict[str, Any], str, str, list[str]]] = {
    "no role": ({"routes": {}}, "request.invalid_value", "/routes", ["at least one role"]),
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
        ["file is expected", "host and secret_service"],
    ),
    "a keychain": (
        {"keystore": {"kind": "keychain"}},
        "request.invalid_value",
        "/keystore/kind",
        ["file is expected", "the driver's, holdfast_http.h"],
    ),
    "the driver's keyring": (
        {"keystore": {"kind": "secret_service"}},
        "request.invalid_value",
        "/keystore/kind",
        ["file is expected", "secret_service are the driver's, holdfast_http.h"],
    ),
    "the driver's mailbox": (
        {"keystore": {"kind": "host"}},
        "request.invalid_value",
        "/keystore/kind",
        ["file is expected", "host and secret_service are the driver's"],
    ),
    "no key store": (
        {},
        "request.missing_field",
        "/keystore",
        ["pass a key store", '"development":true keeps key files'],
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
    "another language": ({"locale": "sv-SE"}, "request.invalid_value", "/locale", ["nb, nn, en"]),
    "no language tag": ({"locale": 1}, "request.wrong_type", "/locale", ["nb, nn, en"]),
}


def refusal(phone: Phone, config: dict[str, Any]) -> dict[str, Any]:
    return error_of_open(phone.library, config)


def test_HST_4_a_mistake_names_the_field_and_what_is_right(phone: Phone) -> None:
    for mistake, (change, code, field, said) in MISTAKES.items():
        error = refusal(phone, {**phone.config, **change})
        assert (error["code"], error["field"]) == (code, field), mistake
        for words in said:
            assert words in error["message"], (mistake, error)
        assert not phone.folder.exists(), f"{mistake}: a refused configuration created files"


def test_HST_4_the_names_of_other_clients_lead_to_ours(phone: Phone) -> None:
    for name, right in (
        ("anon_key", "api_key"),
        ("anonKey", "api_key"),
        ("supabase_key", "api_key"),
        ("publishable_key", "api_key"),
        ("supabaseUrl", "url"),
        ("base_url", "url"),
    ):
        config = json.loads(json.dumps(phone.config))
        config["backend"][name] = config["backend"].pop(right)
        error = refusal(phone, config)
        assert (error["code"], error["field"]) == ("request.unknown_field", f"/backend/{name}")
        assert f'"{right}"' in error["message"], name


def test_HST_4_the_address_of_a_service_is_not_the_project_s(phone: Phone) -> None:
    base = phone.config["backend"]["url"]
    for service in ("rest", "auth", "storage", "functions"):
        for end in ("", "/"):
            backend = {**phone.config["backend"], "url": f"{base}/{service}/v1{end}"}
            error = refusal(phone, {**phone.config, "backend": backend})
            assert (error["code"], error["field"]) == ("request.invalid_value", "/backend/url")
            assert f'"{base}" is expected' in error["message"], service


def test_HST_4_a_prefix_of_a_proxy_is_taken(phones: MakePhone) -> None:
    for path in ("/supabase", "/functions/v1/proxy", "/rest/v1beta"):
        phone = phones()
        phone.config["backend"]["url"] += path
        phone.start()


#: Every form of this machine's addresses, and names that stay on it (RFC 6761).
THIS_MACHINE = [
    "127.0.0.1", "127.255.255.254", "localhost", "LocalHost", "a.b.localhost",
    "[::1]", "[0:0:0:0:0:0:0:1]", "[0::0001]", "[::0.0.0.1]",
]  # fmt: skip
#: What looks like them from its beginning or its end.
OTHER_MACHINES = [
    "127.", "127", "127.1", "127.0.0", "127.0.0.1.", "127.0.0.1.1", "127.0.0.999999", "127.0.0.256",
    "127.0.0.01", "127..0.1", "127.0.0.1.evil.example", "127.evil.example", "1270.0.0.1",
    "2130706433", "0x7f.0.0.1", "0x7f000001", "128.0.0.1", "0.0.0.0",
    "localhost.evil.example", "localhost.", "xlocalhost", "evil-localhost", ".localhost",
    "a..localhost", "localhost.localdomain",
    "[::]", "[::2]", "[::1:1]", "[1::1]", "[::1", "[::1]x", "[::1].evil.example", "[:::1]",
    "[::1::]", "[127.0.0.1]", "[1]", "[::127.0.0.1]", "[fe80::1]",
]  # fmt: skip


@pytest.mark.parametrize("port", ["", ":8000"])
def test_FIX_19_plain_http_is_for_addresses_of_this_machine_alone(
    phones: MakePhone, port: str
) -> None:
    """An address is parsed: its first or last letters prove nothing."""
    phone = phones()
    keys = {"keystore": {"kind": "file"}, "policy": {**POLICY, "biometric": "off"}}

    def refused(*, url: str = "http://localhost", redirect: str = "http://localhost/in") -> Any:  # noqa: ANN401
        """The field and the code of the refusal of an open(), if any; in a new folder each time."""
        backend = {**phone.config["backend"], "url": url}
        config = {**phone.config, **keys, "backend": backend, "redirect_url": redirect}
        handle, (_, reply) = phone.library.open(json.dumps(config).encode(), None)
        if handle == 0:
            error = json.loads(reply or b"")["error"]
            return error["field"], error["code"]
        phone.library.close(handle)
        shutil.rmtree(phone.folder)
        return None

    def places(host: str) -> list[Any]:
        """What is refused of that host, as the server's and as the redirect's."""
        at = f"http://{host}{port}"
        return [refused(url=at), refused(redirect=f"{at}/in")]

    invalid = [(field, "request.invalid_value") for field in ("/backend/url", "/redirect_url")]
    assert {host: found for host in THIS_MACHINE if (found := places(host)) != [None, None]} == {}
    assert {host: found for host in OTHER_MACHINES if (found := places(host)) != invalid} == {}
    assert not phone.folder.exists()


def test_HST_4_a_language_tag_is_taken_by_its_language(phones: MakePhone) -> None:
    for tag, text in (
        ("nb", "Logg inn"),
        ("nb-NO", "Logg inn"),
        ("nb_NO", "Logg inn"),
        ("NB-no", "Logg inn"),
        ("nn-NO", "Logg inn"),
        ("en", "Sign in"),
        ("en-GB", "Sign in"),
        ("en-Latn-US-x-private", "Sign in"),
    ):
        app = phones(locale=tag).start()
        assert text in (app.screen["message"] or {"text": ""})["text"], tag


def test_HST_4_another_language_is_refused(phone: Phone) -> None:
    for tag in ("nbx", "n", "", "english", "sv", "-NO", "e-n"):
        error = refusal(phone, {**phone.config, "locale": tag})
        assert (error["code"], error["field"]) == ("request.invalid_value", "/locale"), tag


def test_HST_4_a_home_folder_that_no_shell_expands_is_refused(phone: Phone) -> None:
    for place in ("~", "~/data", "~kari/data"):
        error = refusal(phone, {**phone.config, "data_dir": place})
        assert (error["code"], error["field"]) == ("request.invalid_value", "/data_dir"), place
        assert "~" in error["message"], place
        assert not Path("~").exists(), place


@pytest.mark.parametrize("below", [False, True])
def test_HST_4_a_file_in_the_place_of_the_folder_is_named(
    phones: MakePhone, library: Library, below: bool
) -> None:
    phone = phones()
    phone.folder.write_text("a file")
    place = str(phone.folder / "data") if below else str(phone.folder)
    phone.config["data_dir"] = place
    error = error_of(phone.open)
    assert (error.code, error.field) == ("request.invalid_value", "/data_dir")
    assert "a file" in error.message
    assert phone.folder.read_text() == "a file"
    phone.folder.unlink()


def test_HST_4_an_app_without_methods_signs_in_with_a_session(
    phones: MakePhone, directory: DirectoryFixtures
) -> None:
    """An empty list is for a host that obtains the session itself: it is accepted, and says so."""
    phone = phones(auth_methods=[])
    del phone.config["redirect_url"]
    app = phone.start()
    assert app.screen["methods"] == []
    assert "auth_methods is empty" in error_of(app.sign_in_begin, {"method": "bankid"}).message
    assert app.sign_in(directory.person(directory.organisation()))["screen"] == "home"


def test_HST_4_a_first_try_takes_three_fields(
    library: Library, directory: DirectoryFixtures, tmp_path: Path
) -> None:
    person = directory.person(directory.organisation())
    backend = {"url": directory.backend.url, "api_key": directory.backend.anon_key}
    config = {"data_dir": tmp_path / "app", "development": True, "backend": backend}
    with Holdfast(config, library=library) as app, Runner(app):
        for thing in app:
            screen = thing.get("screen") or {}
            if screen.get("screen") == "sign_in":
                assert [one["flow"] for one in screen["methods"]] == ["password"]
                app.sign_in_complete({"email": person.email, "password": PASSWORD})
            elif screen.get("screen") == "home":
                break
        assert (screen["route"], screen["org"], screen["orgs"]) == ("/", None, [])
        assert app.route_check({"route": "/any"}) == {"allow": True}
        visit: Any = {"kind": "activity", "payload": {"minutes": 5}}
        assert error_of(app.queue_add, visit).code == "queue.unknown_kind"


def test_HST_4_an_unknown_method_is_answered_with_a_near_one_or_all(phone: Phone) -> None:
    app = phone.start()
    for call, more in (
        (app.sign_in_begin, {}),
        (app.sign_in_complete, {"email": "a@example.org", "password": "x"}),
    ):
        error = error_of(call, {"method": "bankidd" if not more else "emai", **more})
        assert (error.code, error.field) == ("sign_in.unknown_method", "/method")
        assert ('"bankid"' if not more else '"email"') in error.message
        error = error_of(call, {"method": "magic-link", **more})
        assert error.code == "sign_in.unknown_method"
        assert "did you mean" not in error.message
        expected = "bankid, vipps, email" if not more else "email"
        assert f"auth_methods has {expected}" in error.message
