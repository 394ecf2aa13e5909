"""Key stores that answer OK and lie (LCK-7), the built-in one, asked for by name, and what a key
store is asked for: the prompt comes before an unlock, and no call waits for a person."""

from __future__ import annotations

import contextlib
import ctypes
import json
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from holdfast import Holdfast, HoldfastError, Library
from holdfast.keystore import (
    DESTROY,
    KEY_CANCELLED,
    KEY_FAILED,
    KEY_INVALIDATED,
    KEY_LOCKED,
    KEY_NOT_FOUND,
    KEY_UNAVAILABLE,
    KeyStoreStruct,
    struct_for,
)

from support.errors import error_of_open
from support.liar import with_liar
from support.loop import Host
from support.phone import App, Phone
from support.screens import seen
from support.users import MakePhone, SignedIn


@pytest.mark.parametrize("end", ["session_lock", "session_logout"])
def test_LCK_7_a_key_that_is_still_there_after_an_erase_is_owed(user: SignedIn, end: str) -> None:
    keychain = with_liar(user.phone)
    app = user.restart()
    keychain.lie = "keeps"
    getattr(app, end)()
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
    error = error_of_open(library, config, store)
    return [error["code"], error["field"]]


@pytest.mark.parametrize("missing", ["load", "save", "erase"])
def test_a_key_store_that_is_refused_is_destroyed_once(phone: Phone, missing: str) -> None:
    destroyed: list[Any] = []
    functions = struct_for(phone.keychain)
    functions.destroy = DESTROY(destroyed.append)
    setattr(functions, missing, type(getattr(functions, missing))())
    assert refusal(phone.library, phone.config, functions) == [
        "request.missing_field",
        "/keystore",
    ]
    assert len(destroyed) == 1


def test_the_key_files_must_be_asked_for_by_name(phone: Phone) -> None:
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
    assert phone.library.open(b"{}", struct)[0] == 0
    assert calls == [42, 42]


# The key behind presence -----------------------------------------------------------------------


@pytest.mark.parametrize(("locale", "text"), [("nb", "Lås opp"), ("en", "Unlock")])
def test_API_3_the_open_reply_has_the_text_of_the_prompt(
    phones: MakePhone, locale: str, text: str
) -> None:
    opened: Any = phones(locale=locale).open().opened
    assert opened["unlock_prompt"].startswith(text)


def test_API_3_biometric_is_loaded_by_an_unlock_and_looked_for_after_its_erasure(
    user: SignedIn,
) -> None:
    """The host prompts before an unlock. Every other load must do without a prompt."""
    keychain = user.phone.keychain
    loads: list[str] = []
    steps = ["start"]

    def watch(call: str, name: str) -> None:
        if (call, name) == ("load", "biometric"):
            loads.append(steps[-1])

    keychain.watch = watch
    app = user.restart()
    outcomes: list[Any] = ["cancelled", "lockout", "success"]
    for outcome in outcomes:
        steps.append(outcome)
        app.session_lock()
        keychain.present_finger()
        app.unlock(outcome)
        app.settle()
    assert app.screen["screen"] == "home"
    steps.append("background")
    app.session_background()
    user.phone.pass_time(301)
    app.session_foreground()
    steps.append("logout")
    app.session_logout()
    app.settle()
    assert loads == ["cancelled", "lockout", "success", "logout"]
    assert app.session_status()["owed"] == []


@pytest.mark.parametrize(
    ("answer", "is_owed"), [(KEY_CANCELLED, True), (KEY_NOT_FOUND, False), (KEY_INVALIDATED, False)]
)
def test_API_3_a_load_without_a_prompt_says_whether_biometric_is_erased(
    user: SignedIn, answer: int, is_owed: bool
) -> None:
    user.phone.keychain.answer("load", "biometric", answer, answer)
    user.app.session_logout()
    user.phone.keychain.forget_script()
    banners = [banner["code"] for banner in user.app.screen["banners"]]
    assert (banners == ["erasure_owed"]) is is_owed
    # The next call looks again
    user.app.session_status()
    assert "erase" not in user.app.session_status()["owed"]


@pytest.mark.parametrize("answer", [KEY_FAILED, KEY_LOCKED, KEY_UNAVAILABLE])
def test_API_3_a_device_key_that_is_not_saved_is_tried_again_after_a_pause(
    phones: MakePhone, answer: int
) -> None:
    phone = phones()
    phone.keychain.answer("save", "device", *[answer] * 20)
    app = phone.start()
    assert app.screen["screen"] == "wait"
    polled = app.poll()
    assert polled["wake_in_ms"] is not None
    assert 0 < polled["wake_in_ms"] <= 10_000, "the host is not kept busy"
    phone.keychain.forget_script()
    app.settle_until("screen", within_s=30)
    assert seen(app.screen) == ("sign_in", "session_missing")


def test_API_3_handles_that_start_together_make_one_device_key(phones: MakePhone) -> None:
    phone = phones()
    looked = threading.Barrier(3)

    def watch(call: str, name: str) -> None:
        # Each thread looks before any of them has saved, as far as the file's lock lets it
        if (call, name) == ("load", "device") and not phone.keychain.names():
            with contextlib.suppress(threading.BrokenBarrierError):
                looked.wait(0.05)

    phone.keychain.watch = watch
    with contextlib.ExitStack() as stack:
        apps = [
            stack.enter_context(Host(phone.config, phone.keychain, library=phone.library))
            for _ in range(3)
        ]
        with ThreadPoolExecutor(3) as pool:
            shown = list(pool.map(lambda app: app.session_resume()["screen"], apps))
    assert shown == ["sign_in"] * 3
    assert phone.keychain.calls["save", "device"] == 1


@pytest.mark.parametrize("call", ["load", "save", "erase"])
def test_ABI_2_a_callback_that_calls_the_library_is_refused_on_every_handle(
    user: SignedIn, phones: MakePhone, call: str
) -> None:
    phone = phones()
    other = phone.open()
    answers: list[str] = []

    def open_and_close() -> None:
        App(phone, phone.config).close()

    def call_back(called: str, _name: str) -> None:
        if called == call:
            for attempt in (
                other.session_status,
                other.poll,
                lambda: App(phone, phone.config).close(),
            ):
                try:
                    attempt()
                    answers.append("served")
                except HoldfastError as error:
                    answers.append(error.code)

    user.phone.keychain.watch = call_back
    user.app.session_lock()
    user.app.touch()
    user.phone.keychain.watch = lambda _call, _name: None
    assert answers
    assert set(answers) == {"handle.reentered"}
    assert other.session_status()["state"] == "signed_out"
    assert user.app.session_status()["state"] == "active"
