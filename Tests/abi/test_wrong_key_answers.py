"""A key store that answers wrongly, once or for a while, costs nobody the session (KEEP-1, RES-7).

An error changes nothing; and no single answer about `session` or `biometric` is a proof of loss.
"""

from __future__ import annotations

from typing import Any

import pytest
from holdfast import Holdfast, HoldfastError
from holdfast.keystore import (
    KEY_CANCELLED,
    KEY_FAILED,
    KEY_INVALIDATED,
    KEY_LOCKED,
    KEY_LOCKOUT,
    KEY_LOCKOUT_PERMANENT,
    KEY_NOT_FOUND,
    KeyStoreAnswer,
)

from support.directory_fixtures import PASSWORD, DirectoryFixtures
from support.errors import error_of
from support.missing import ALWAYS, WAIT, until_lost
from support.queue import stored
from support.screens import seen, shown, why
from support.users import MakeUser, SignedIn

HOME = ("home", None)


def refused(user: SignedIn) -> HoldfastError:
    """The error of a sign-in by a session that the host passes."""
    assert user.phone.app is not None
    error = error_of(user.phone.app.session_adopt, {"session": user.phone.session(user.person)})
    assert error.code in {"keystore.failed", "keystore.locked"}
    return error


# A sign-in that is refused --------------------------------------------------------------------


@pytest.mark.parametrize("policy", ["off", "required"])
@pytest.mark.parametrize("answer", [KEY_FAILED, KEY_LOCKED, KEY_CANCELLED])
@pytest.mark.parametrize("way", ["session_adopt", "password"])
def test_KEEP_1_a_sign_in_over_a_session_that_the_store_says_nothing_about_changes_nothing(
    sign_in: MakeUser, directory: DirectoryFixtures, policy: str, answer: int, way: str
) -> None:
    user = sign_in(policy={"biometric": policy})
    keychain = user.phone.keychain
    keychain.answer("load", "session", *[answer] * ALWAYS)
    app = user.restart()
    assert app.screen["screen"] == "wait"
    keys = keychain.path.read_bytes()
    if way == "session_adopt":
        error = refused(user)
        word = {KEY_FAILED: "failed", KEY_LOCKED: "locked", KEY_CANCELLED: "cancelled"}[answer]
        assert error.detail == {"key": "session", "operation": "load", "answer": word}
    else:
        app.sign_in_complete({"email": user.person.email, "password": PASSWORD})
        for _ in range(4):
            app.settle()
            user.phone.pass_time(15)
        assert why(app.screen).startswith("keystore_")
        assert user.phone.network.count("sign_in") == 1
    assert keychain.path.read_bytes() == keys
    keychain.forget_script()
    assert app.session_resume()["screen"] == "home"
    app.settle()
    assert way != "password" or len(directory.control.sessions(user.person.id)) == 1
    assert shown(user.restart()) == HOME


def test_KEEP_1_a_sign_in_of_one_handle_takes_no_session_from_another(sign_in: MakeUser) -> None:
    user = sign_in(policy={"biometric": "off"})
    phone, keychain = user.phone, user.phone.keychain
    with Holdfast(phone.config, keychain, library=phone.library) as second:
        second.clock_set({"now_ms": phone.now_ms, "monotonic_ms": phone.monotonic_ms})
        keychain.answer("load", "session", *[KEY_FAILED] * ALWAYS)
        with pytest.raises(HoldfastError):
            second.session_adopt({"session": phone.session(user.person)})
        keychain.forget_script()
    assert user.app.session_resume()["screen"] == "home"
    assert shown(user.restart()) == HOME


@pytest.mark.parametrize(
    ("policy", "state"),
    [
        ("off", "waiting"),
        ("off", "open"),
        ("required", "waiting"),
        ("required", "open"),
        ("required", "locked"),
    ],
)
def test_KEEP_1_one_failing_call_of_a_refused_sign_in_costs_no_session(
    sign_in: MakeUser, policy: str, state: str
) -> None:
    user = sign_in(policy={"biometric": policy})
    keychain = user.phone.keychain
    failed = []
    for place in range(1, 30):
        if state == "waiting":
            keychain.answer("load", "session", KEY_FAILED)
        user.restart(online=False)
        if state == "locked":
            user.app.session_lock()
        app = user.phone.app
        assert app is not None
        count = 0

        def fail(call: str, name: str, place: int = place) -> None:
            nonlocal count
            count += 1
            if count == place:
                failed.append((call, name))
                raise KeyStoreAnswer(KEY_FAILED)

        keychain.watch = fail
        try:
            app.session_adopt({"session": user.phone.session(user.person)})
        except HoldfastError as error:
            assert error.code == "keystore.failed", failed[-1]
        keychain.watch = lambda _call, _name: None
        if count < place:
            break
        if state == "locked" and app.session_resume()["screen"] == "unlock":
            app.touch()
        app.reconnect()
        assert app.session_resume()["screen"] == "home", failed[-1]
        assert user.restart(online=False).screen["screen"] == "home", failed[-1]
        if policy == "required":
            user.app.session_lock()
            assert user.app.touch()["screen"] == "home", failed[-1]
    assert ("save", "session") in failed
    assert (("save", "biometric") in failed) == (policy == "required")


# The session's key ----------------------------------------------------------------------------

WRONG = ["not_found", "invalidated", "other_key"]


def misanswer(user: SignedIn, wrong: str, times: int = ALWAYS) -> Any:  # noqa: ANN401
    """The store has the key of the session, and does not give it; the result brings it back."""
    keychain = user.phone.keychain
    if wrong == "other_key":
        real = keychain.stored("session")
        keychain.replace("session", bytes(range(32)))
        return lambda: keychain.replace("session", real)
    answer = KEY_NOT_FOUND if wrong == "not_found" else KEY_INVALIDATED
    keychain.answer("load", "session", *[answer] * times)
    return keychain.forget_script


@pytest.mark.parametrize("wrong", WRONG)
@pytest.mark.parametrize("until", ["waiting", "lost"])
@pytest.mark.parametrize(
    "back", ["session_resume", "session_foreground", "background", "time", "restart"]
)
def test_RES_7_one_wrong_answer_about_the_session_s_key_is_no_proof(
    sign_in: MakeUser, wrong: str, until: str, back: str
) -> None:
    user = sign_in(policy={"biometric": "off"})
    user.phone.close()
    heal = misanswer(user, wrong)
    app = user.restart(online=False)
    assert shown(app) == WAIT
    if until == "lost":
        until_lost(app)
    if back == "background":
        app.session_background()
        app.session_foreground()
        app.session_background()
    heal()
    match back:
        case "time":
            app.settle_until("screen", within_s=30)
        case "restart":
            app = user.restart(online=False)
        case "background":
            app.session_foreground()
        case call:
            getattr(app, call)()
    assert shown(app) == HOME
    assert app.session_status()["state"] == "active"
    assert shown(user.restart()) == HOME


@pytest.mark.parametrize("wrong", WRONG)
def test_RES_7_a_background_without_the_session_s_key_erases_none(
    sign_in: MakeUser, wrong: str
) -> None:
    user = sign_in(policy={"biometric": "off", "lock_on_background": "at_once"})
    heal = misanswer(user, wrong)
    user.app.session_background()
    assert "session" in user.phone.keychain.names()
    heal()
    assert user.app.session_foreground()["screen"] == "home"
    assert shown(user.restart()) == HOME


@pytest.mark.parametrize("wrong", WRONG)
def test_RES_7_a_session_whose_key_is_really_lost_is_signed_in_over(
    sign_in: MakeUser, directory: DirectoryFixtures, wrong: str
) -> None:
    user = sign_in(policy={"biometric": "off"})
    item = user.offline().register()
    user.phone.close()
    misanswer(user, wrong, times=30)
    app = user.restart(online=False)
    # While it counts as no answer, no sign-in takes the key's place
    assert shown(app) == WAIT
    assert refused(user).detail is not None
    until_lost(app)
    user.phone.keychain.forget_script()
    user.phone.keychain.erase("session")
    app.session_adopt({"session": user.phone.session(user.person)})
    app.reconnect()
    assert app.screen["screen"] == "home"
    assert stored(directory, user.person) == [item]


@pytest.mark.parametrize("wrong", WRONG)
@pytest.mark.parametrize("arrival", ["session_resume", "session_foreground"])
def test_RES_7_with_a_finger_the_prompt_is_shown_and_the_store_is_asked_again(
    user: SignedIn, wrong: str, arrival: str
) -> None:
    user.phone.close()
    heal = misanswer(user, wrong)
    app = user.restart(online=False)
    assert app.screen["screen"] == "unlock"
    heal()
    assert getattr(app, arrival)()["screen"] == "home"
    user.phone.close()
    misanswer(user, wrong, times=1)
    assert user.restart(online=False).screen["screen"] == "unlock"
    assert user.app.touch()["screen"] == "home"


# The biometric key ----------------------------------------------------------------------------


def shown_after(user: SignedIn) -> tuple[str, str]:
    """What a touch of the finger leads to."""
    screen = user.app.touch()
    return seen(screen)


@pytest.mark.parametrize("again", ["finger", "restart"])
def test_SES_10_another_biometric_key_is_no_proof_that_the_right_one_is_lost(
    user: SignedIn, again: str
) -> None:
    keychain = user.phone.keychain
    user.app.session_lock()
    right = keychain.stored("biometric")
    keychain.replace("biometric", bytes(range(32)))
    for _ in range(2):
        assert shown_after(user) == ("unlock", "biometric_withheld")
        assert user.app.session_status()["state"] == "locked"
    keychain.replace("biometric", right)
    app = user.restart() if again == "restart" else user.app
    assert app.screen["screen"] == "unlock"
    assert app.touch()["screen"] == "home"


def stale(user: SignedIn, answer: int) -> None:
    """`biometric` answers this to everything until it is erased."""

    def refuse(call: str, name: str) -> None:
        if name == "biometric" and call == "erase":
            user.phone.keychain.watch = lambda _call, _name: None
        elif name == "biometric":
            raise KeyStoreAnswer(answer)

    user.phone.keychain.watch = refuse


@pytest.mark.parametrize("policy", ["required", "preferred"])
@pytest.mark.parametrize("state", ["signed_out", "locked", "open"])
def test_KEEP_2_a_stale_biometric_key_is_erased_and_made_anew_by_a_sign_in(
    sign_in: MakeUser, policy: str, state: str
) -> None:
    user = sign_in(policy={"biometric": policy})
    if state != "open":
        user.app.session_lock()
    stale(user, KEY_INVALIDATED)
    if state == "signed_out":
        user.app.unlock("invalidated")
    app = user.app
    app.sign_in(user.person)
    assert app.screen["screen"] == "home"
    app.session_lock()
    assert app.touch()["screen"] == "home"


@pytest.mark.parametrize("policy", ["required", "preferred"])
def test_KEEP_2_a_biometric_key_that_stays_stale_refuses_no_sign_in(
    sign_in: MakeUser, policy: str
) -> None:
    user = sign_in(policy={"biometric": policy})
    user.app.session_lock()
    user.phone.keychain.answer("save", "biometric", *[KEY_INVALIDATED] * ALWAYS)
    assert user.app.sign_in(user.person)["screen"] == "home"
    assert shown(user.restart()) == HOME
    user.app.session_lock()
    assert user.app.screen["screen"] == "sign_in"
    user.phone.keychain.forget_script()
    user.app.sign_in(user.person)
    user.app.session_lock()
    assert user.app.touch()["screen"] == "home"


@pytest.mark.parametrize(
    "answer",
    [KEY_NOT_FOUND, KEY_LOCKED, KEY_CANCELLED, KEY_FAILED, KEY_LOCKOUT, KEY_LOCKOUT_PERMANENT, 77],
)
@pytest.mark.parametrize("state", ["locked", "open"])
@pytest.mark.parametrize("policy", ["required", "preferred"])
def test_KEEP_2_no_refusal_of_the_biometric_key_refuses_a_sign_in(
    sign_in: MakeUser, policy: str, answer: int, state: str
) -> None:
    user = sign_in(policy={"biometric": policy})
    if state == "locked":
        user.app.session_lock()
    user.phone.keychain.answer("save", "biometric", *[answer] * ALWAYS)
    assert user.app.sign_in(user.person)["screen"] == "home"
    assert shown(user.restart()) == HOME
    user.app.session_lock()
    assert user.app.screen["screen"] == "sign_in"
    assert "biometric" not in user.phone.keychain.names()
