"""Key stores that answer OK and lie (LCK-7), and the built-in one, asked for by name."""

from __future__ import annotations

import ctypes
import json
from typing import Any

import pytest
from holdfast import Holdfast, HoldfastError, Library
from holdfast.keystore import DESTROY, KeyStoreStruct, struct_for

from conftest import MakePhone, MakeUser
from support import tamper
from support.directory_fixtures import DirectoryFixtures
from support.liar import with_liar
from support.phone import Phone


@pytest.mark.parametrize("lie", ["forgets", "changes", "shortens"])
@pytest.mark.parametrize("since", ["the first call", "the sign-in"])
def test_LCK_7_nothing_is_acknowledged_on_a_key_that_is_not_kept(
    phones: MakePhone, directory: DirectoryFixtures, lie: str, since: str
) -> None:
    # Given a key store that answers OK and does not keep what it is given
    phone = phones()
    keychain = with_liar(phone)
    session = directory.session(directory.person(directory.organisation()))
    app = phone.open()
    if since == "the sign-in":
        app.session_resume()
    keychain.lie = lie
    # When the host signs in, then it gets an error, and nothing is stored
    with pytest.raises(HoldfastError) as caught:
        app.session_start({"session": session})
    assert caught.value.code == "keystore.failed"
    assert tamper.read(phone.folder) is None
    # and it works when the store does
    keychain.lie = ""
    app.session_start({"session": session})
    app.settle()
    assert app.screen["screen"] == "home"


def test_LCK_7_a_key_store_that_knows_one_key_only_loses_no_device_key(
    phones: MakePhone, directory: DirectoryFixtures
) -> None:
    # Given a key store that was written for one key, and puts every key in its place
    phone = phones()
    keychain = with_liar(phone)
    app = phone.open()
    app.session_resume()
    device = keychain.load("device")
    keychain.lie = "mixes"
    with pytest.raises(HoldfastError) as caught:
        app.session_start(
            {"session": directory.session(directory.person(directory.organisation()))}
        )
    assert caught.value.code == "keystore.failed"
    assert keychain.load("device") == device


@pytest.mark.parametrize("end", ["session_lock", "session_logout"])
def test_LCK_7_a_key_that_is_still_there_after_an_erase_is_owed(
    sign_in: MakeUser, end: str
) -> None:
    # Given a key store that answers OK to an erase, and keeps the key
    user = sign_in()
    keychain = with_liar(user.phone)
    app = user.restart()
    keychain.lie = "keeps"
    getattr(app, end)()
    # Then the library finds that out, says so, and asks again
    assert "erasure_owed" in [banner["code"] for banner in app.screen["banners"]]
    assert "erase" in app.session_status()["owed"]
    keychain.lie = ""
    assert "erase" not in app.session_status()["owed"]
    assert keychain.names() == {"device", "biometric"} - (
        {"biometric"} if end == "session_logout" else set()
    )
    app.settle()
    assert "erasure_owed" not in [banner["code"] for banner in app.screen["banners"]]


def refusal(library: Library, config: dict[str, Any], store: KeyStoreStruct | None) -> list[str]:
    """Code and field of the error of an open()."""
    handle, (_, reply) = library.open(json.dumps(config).encode(), store)
    assert handle == 0
    error = json.loads(reply or b"")["error"]
    return [error["code"], error["field"]]


def test_finding_4_the_key_files_must_be_asked_for_by_name(phone: Phone) -> None:
    files = {"keystore": {"kind": "file"}}
    preferred = {"policy": {"biometric": "preferred"}}
    config = {key: phone.config[key] for key in ("data_dir", "backend", "redirect_url")}
    assert refusal(phone.library, config, None) == ["request.missing_field", "/keystore"]
    # "required" would open the lock with a key that lies beside the data
    assert refusal(phone.library, {**config, **files}, None) == [
        "request.invalid_value",
        "/policy/biometric",
    ]
    functions = struct_for(phone.keychain)
    assert refusal(phone.library, {**config, **files, **preferred}, functions) == [
        "request.invalid_value",
        "/keystore/kind",
    ]
    assert not phone.folder.exists(), "a refused configuration created files"
    # and the reply says which one is in use
    assert phone.open().opened["keystore"] == "host"
    phone.close()
    other: Any = {**config, **files, **preferred, "data_dir": f"{phone.folder}-2"}
    with Holdfast(other, library=phone.library) as app:
        assert app.opened["keystore"] == "file"


def test_ABI_2_destroy_is_called_once_when_the_context_is_free(phone: Phone) -> None:
    calls: list[int] = []
    struct = struct_for(phone.keychain)
    struct.context = ctypes.c_void_p(42)
    destroy = DESTROY(calls.append)
    struct.destroy = destroy
    config = json.dumps(phone.config).encode()
    # After close
    handle, _ = phone.library.open(config, struct)
    assert phone.library.call("session_resume", handle, None)[0] == 0
    assert calls == []
    phone.library.close(handle)
    phone.library.close(handle)
    assert calls == [42]
    # and when open fails
    assert phone.library.open(b"{}", struct)[0] == 0
    assert calls == [42, 42]
