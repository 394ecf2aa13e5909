"""The biometric prompt and its outcomes."""

from __future__ import annotations

from typing import Literal

import pytest

from support import tamper
from support.directory_fixtures import DirectoryFixtures, Person
from support.errors import error_of
from support.phone import TOKEN_S, App
from support.screens import seen, why
from support.users import MakePhone, MakeUser, SignedIn

#: The reason for each outcome of a prompt, and whether another prompt may open the session: the
#: cause passes by itself, and the key is there.
OUTCOMES = {
    "failed": ("biometric_failed", True),
    "cancelled": ("biometric_cancelled", True),
    "lockout": ("biometric_lockout", True),
    "unavailable": ("biometric_unavailable", True),
    "lockout_permanent": ("biometric_lockout_permanent", False),
    "not_enrolled": ("biometric_not_enrolled", False),
    "invalidated": ("key_lost", False),
}


def signed_in_without_a_finger(
    phones: MakePhone, person: Person, biometric: Literal["required", "preferred"]
) -> App:
    """An app at home on a device on which no finger is enrolled."""
    phone = phones(policy={"biometric": biometric})
    phone.keychain.enrolled = False
    app = phone.start()
    assert app.sign_in(person)["screen"] == "home"
    return app


def expired(user: SignedIn, *, online: bool = True) -> SignedIn:
    """An app that started with an expired token and shows the prompt."""
    user.phone.pass_time(TOKEN_S + 60)
    app = user.restart(online=online)
    assert why(app.screen) == "token_expired"
    return user


@pytest.mark.both_flavours
def test_RES_3_biometrics_bring_a_new_session_and_home(sign_in: MakeUser) -> None:
    user = expired(sign_in())
    app, directory = user.app, user.phone.directory
    generation = app.session_status()["generation"]
    directory.control.clear_requests()
    screen = app.touch()
    assert screen["screen"] in {"wait", "home"}
    assert (screen["deadline_ms"] is not None) == (screen["screen"] == "wait")
    app.settle()
    assert (app.screen["screen"], app.screen["route"]) == ("home", user.home)
    assert seen(app.screen) == ("home", None)
    assert directory.refreshes() == 1
    assert user.phone.keychain.calls["load", "biometric"] == 1
    status = app.session_status()
    assert status["state"] == "active"
    assert status["owed"] == []
    assert status["generation"] > generation
    app = user.restart()
    assert seen(app.screen) == ("home", None)
    app.settle()
    assert directory.refreshes() == 1


def test_RES_3_the_old_refresh_token_is_not_used_again(user: SignedIn) -> None:
    # Two refreshes, far apart: the server ends the session if the second uses the old token.
    user.phone.directory.control.set(reuse_interval=0)
    for _ in range(3):
        expired(user)
        user.app.touch()
        user.app.settle()
        assert user.app.screen["screen"] == "home"
    assert user.phone.directory.refreshes() == 3
    assert len(user.phone.directory.control.sessions(user.person.id)) == 1


def test_SES_9_a_lost_key_that_the_call_finds_which_locks_stays_lost(user: SignedIn) -> None:
    # Given an open session whose window is over, which nobody has locked yet
    user.app.wait(13 * 3600)
    screen = user.app.unlock("invalidated")
    assert seen(screen) == ("sign_in", "key_lost")
    screen = user.restart().screen
    assert seen(screen) == ("sign_in", "key_lost")


def test_SES_9_both_keys_of_a_session_that_nothing_opens_are_erased(user: SignedIn) -> None:
    user.app.session_lock()
    assert why(user.app.unlock("invalidated")) == "key_lost"
    assert user.phone.keychain.names() == {"device"}
    assert user.app.session_status()["owed"] == []


@pytest.mark.parametrize("online", [True, False])
def test_FIX_27_no_call_that_is_made_twice_undoes_an_unlock(
    sign_in: MakeUser, online: bool
) -> None:
    user = sign_in()
    user.app.session_lock()
    app = user.app if online else user.offline()
    app.touch()
    for call in (app.session_resume, app.touch, app.session_resume):
        call()
        app.settle()
        assert (app.screen["screen"], app.session_status()["state"]) == ("home", "active")


@pytest.mark.parametrize("column", ["tokens", "cache_key"])
def test_RES_5_the_prompt_opens_no_record_that_is_damaged(user: SignedIn, column: str) -> None:
    user.app.session_lock()
    stored = tamper.stored(user.phone.folder, column)
    tamper.write(user.phone.folder, tamper.flipped(stored, len(stored) - 1), column)
    user.app.settle()
    screen = user.app.touch()
    assert seen(screen) == ("sign_in", "session_corrupt")
    assert user.app.session_status()["state"] == "signed_out"
    assert user.phone.keychain.names() == {"device"}


@pytest.mark.parametrize("outcome", OUTCOMES)
def test_RES_6_a_failed_prompt_leads_to_the_sign_in_and_says_whether_another_one_may_help(
    sign_in: MakeUser, outcome: str
) -> None:
    user = expired(sign_in())
    app = user.app
    reason, again = OUTCOMES[outcome]
    assert app.screen["can_unlock"]
    screen = app.unlock(outcome)
    assert seen(screen) == ("sign_in", reason)
    assert screen["can_unlock"] == again
    assert {"bankid", "vipps"} <= {method["id"] for method in screen["methods"]}
    assert screen["message"] is not None
    assert (screen["message"]["code"], bool(screen["message"]["text"])) == (reason, True)
    assert app.session_status()["state"] == "locked"
    app.settle()
    assert seen(app.screen) == ("sign_in", reason)
    assert app.of_type("screen") == []
    for restarted in [False, True] if again else []:
        if restarted:
            app = expired(user).app
            app.unlock(outcome)
            app = user.restart()
            assert why(app.screen) == "token_expired"
        app.touch()
        app.settle()
        assert app.screen["screen"] == "home"
        assert not app.screen["can_unlock"]


def test_RES_6_signing_in_after_a_failed_prompt_keeps_the_user_s_data(sign_in: MakeUser) -> None:
    user = sign_in(contacts=2)
    queued = user.offline().register()
    expired(user, online=False)
    user.app.unlock("lockout_permanent")
    user.app.go_online()
    user.app.sign_in(user.person)
    assert user.app.screen["screen"] == "home"
    user.app.settle()
    assert [str(row["id"]) for row in user.phone.directory.activities(user.person)] == [queued]
    assert user.app.contact_search({"query": ""})["total"] == 2


def test_RES_6_a_sign_in_that_fails_still_offers_the_prompt(sign_in: MakeUser) -> None:
    user = expired(sign_in())
    app = user.app
    app.unlock("cancelled")
    waiting = app.sign_in_complete({"email": user.person.email, "password": "wrong-wrong"})
    assert (waiting["screen"], waiting["can_unlock"]) == ("wait", False)
    app.settle()
    assert (why(app.screen), app.screen["can_unlock"]) == ("sign_in_failed", True)
    app.sign_in_begin({"method": "bankid"})
    denied = "app.example://signed-in?error=access_denied"
    screen = app.sign_in_complete({"callback_url": denied})
    assert (why(screen), screen["can_unlock"]) == ("sign_in_cancelled", True)
    app.network_report({"online": False})
    screen = app.sign_in_complete({"email": user.person.email, "password": "x"})
    assert (why(screen), screen["can_unlock"]) == ("sign_in_offline", True)
    app.network_report({"online": True})
    app.touch()
    app.settle()
    assert app.screen["screen"] == "home"


def test_RES_6_without_a_session_no_prompt_is_offered(user: SignedIn) -> None:
    assert not user.app.screen["can_unlock"]
    decision = user.app.session_logout()["screen"]
    assert (decision["screen"], decision["can_unlock"]) == ("sign_in", False)
    assert not user.app.unlock("cancelled")["can_unlock"]


def test_HST_4_a_lock_of_the_user_is_not_a_lost_key_without_biometrics(sign_in: MakeUser) -> None:
    user = sign_in(policy={"biometric": "off"})
    screen = user.app.session_lock()
    assert seen(screen) == ("sign_in", "biometric_off")
    app = user.restart()
    assert seen(app.screen) == ("sign_in", "biometric_off")
    assert app.session_status()["state"] == "locked"
    app.sign_in(user.person)
    assert app.screen["screen"] == "home"


def test_HST_4_a_lock_of_the_user_is_not_a_lost_key_without_a_finger(
    phones: MakePhone, person: Person
) -> None:
    screen = signed_in_without_a_finger(phones, person, "preferred").session_lock()
    assert seen(screen) == ("sign_in", "biometric_not_enrolled")


def test_HST_4_a_lost_biometric_key_stays_the_reason_after_a_lock_of_the_user(
    user: SignedIn,
) -> None:
    assert user.app.session_lock()["screen"] == "unlock"
    user.phone.keychain.change_enrolment()
    screen = user.app.touch()
    assert seen(screen) == ("sign_in", "key_lost")
    assert why(user.restart().screen) == "key_lost"


def refused_at_the_start(phones: MakePhone, person: Person, *, online: bool) -> tuple[App, str]:
    """An app with an item that was refused at its start: no finger is enrolled."""
    app = signed_in_without_a_finger(phones, person, "required")
    app.settle()
    item = app.register()
    app.phone.close()
    app.phone.pass_time(TOKEN_S + 60)
    app = app.phone.start(online=online)
    assert seen(app.screen) == ("sign_in", "biometric_not_enrolled")
    return app, item


@pytest.mark.parametrize("online", [False, True])
def test_RES_2_a_start_that_was_refused_lets_nobody_in_later(
    phones: MakePhone, person: Person, directory: DirectoryFixtures, *, online: bool
) -> None:
    app, item = refused_at_the_start(phones, person, online=online)
    app.settle()
    app.network_report({"online": not online})
    app.settle()
    assert app.of_type("screen") == []
    assert app.session_status()["state"] == "locked"
    app.session_background()
    if not online:
        app.network_report({"online": False})
    assert error_of(app.contact_search, {"query": ""}).code == "session.locked"
    app.go_online()
    app.sign_in(person)
    app.settle()
    assert app.screen["screen"] == "home"
    assert [row["id"] for row in directory.activities(person)] == [item]


def test_RES_2_a_return_after_a_start_that_was_refused_is_refused(
    phones: MakePhone, person: Person
) -> None:
    app, _ = refused_at_the_start(phones, person, online=False)
    checked = app.route_check({"route": "/mentor"})["screen"]  # type: ignore[typeddict-item]
    for screen in (app.session_foreground(), checked):
        assert seen(screen) == ("sign_in", "biometric_not_enrolled")
    app.settle()
    assert app.session_status()["state"] == "locked"
