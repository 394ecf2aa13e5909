"""Logout, and sessions that the server ends."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from holdfast.keystore import KEY_FAILED

from conftest import MakeUser, SignedIn
from support import children, tamper
from support.directory_fixtures import DirectoryFixtures
from support.errors import error_of
from support.phone import TOKEN_S, Phone

SESSION_COLUMNS = ["tokens", "wrap_session", "wrap_biometric", "choice", "memberships", "owner"]


def left(phone: Phone) -> set[str]:
    """The columns of the session row that are not NULL."""
    return {name for name in SESSION_COLUMNS if tamper.read(phone.folder, name) is not None}


def session_of(reply: dict[str, Any]) -> str:
    """The id of the session that a token reply began."""
    _, claims, _ = reply["access_token"].split(".")
    return str(json.loads(base64.urlsafe_b64decode(claims + "=="))["session_id"])


def test_KEEP_4_logging_out_online(sign_in: MakeUser, directory: DirectoryFixtures) -> None:
    user = sign_in(contacts=3)
    assert len(directory.control.sessions(user.person.id)) == 1
    reply = user.app.session_logout()
    assert reply["unsent"] == 0
    assert (reply["screen"]["screen"], reply["screen"]["reason"]) == ("sign_in", "signed_out")
    assert left(user.phone) == set()
    assert "biometric" not in user.phone.keychain.names()
    assert user.app.session_status()["state"] == "signed_out"
    assert error_of(user.app.contact_search, {"query": ""}).code == "session.none"
    user.app.settle()
    assert directory.control.sessions(user.person.id) == []
    assert user.app.session_status()["owed"] == []
    screen = user.restart().screen
    assert (screen["screen"], screen["reason"]) == ("sign_in", "session_missing")


def test_KEEP_4_logging_out_offline(sign_in: MakeUser, directory: DirectoryFixtures) -> None:
    user = sign_in()
    user.app.go_offline()
    user.app.session_logout()
    assert left(user.phone) == set()
    assert "biometric" not in user.phone.keychain.names()
    assert user.app.session_status()["owed"] == ["revoke"]
    assert len(directory.control.sessions(user.person.id)) == 1
    user.phone.pass_time(2 * TOKEN_S)
    user.phone.network.up = True
    app = user.restart()
    assert app.screen["screen"] == "sign_in"
    app.settle()
    assert directory.control.sessions(user.person.id) == []
    assert app.session_status()["owed"] == []


def test_KEEP_4_a_global_logout_ends_all_sessions(
    sign_in: MakeUser, directory: DirectoryFixtures
) -> None:
    user = sign_in()
    directory.session(user.person)
    assert len(directory.control.sessions(user.person.id)) == 2
    user.app.session_logout({"scope": "global"})
    user.app.settle()
    assert directory.control.sessions(user.person.id) == []


def test_KEEP_4_a_delayed_global_logout_spares_the_users_newer_session(
    sign_in: MakeUser, directory: DirectoryFixtures
) -> None:
    user = sign_in()
    directory.session(user.person)
    user.app.go_offline()
    user.app.session_logout({"scope": "global"})
    newer = directory.session(user.person)
    user.app.session_adopt({"session": newer})
    user.app.go_online()
    user.app.settle()
    (left_over,) = directory.control.sessions(user.person.id)
    assert left_over["id"] == session_of(newer)
    assert user.app.session_status()["owed"] == []
    user.phone.pass_time(2 * TOKEN_S)
    user.app.settle()
    assert user.app.screen["screen"] == "home"
    assert user.app.session_status()["state"] == "active"


def test_KEEP_4_a_delayed_global_logout_waits_while_the_newer_session_is_locked(
    sign_in: MakeUser, directory: DirectoryFixtures
) -> None:
    user = sign_in()
    directory.session(user.person)
    user.app.go_offline()
    user.app.session_logout({"scope": "global"})
    newer = directory.session(user.person)
    user.app.session_adopt({"session": newer})
    user.app.session_lock()
    user.app.go_online()
    user.phone.pass_time(60)
    user.app.settle()
    # Then nothing ended, because only the locked token can spare its own session
    assert len(directory.control.sessions(user.person.id)) == 3
    assert user.app.session_status()["owed"] == ["revoke"]
    user.app.touch()
    user.phone.pass_time(60)
    user.app.settle()
    (left_over,) = directory.control.sessions(user.person.id)
    assert left_over["id"] == session_of(newer)


def test_KEEP_4_a_delayed_global_logout_is_global_when_another_user_has_signed_in(
    sign_in: MakeUser, directory: DirectoryFixtures
) -> None:
    user = sign_in()
    directory.session(user.person)
    user.app.go_offline()
    user.app.session_logout({"scope": "global"})
    stranger = directory.person(directory.organisation())
    user.app.session_adopt({"session": directory.session(stranger)})
    user.app.go_online()
    user.app.settle()
    assert directory.control.sessions(user.person.id) == []
    assert len(directory.control.sessions(stranger.id)) == 1


def test_KEEP_4_a_refused_logout_of_the_others_is_repeated(
    sign_in: MakeUser, directory: DirectoryFixtures
) -> None:
    user = sign_in()
    user.app.go_offline()
    user.app.session_logout({"scope": "global"})
    user.app.session_adopt({"session": directory.session(user.person)})
    directory.control.respond("/auth/v1/logout", 403, body={"code": "session_not_found"})
    user.app.go_online()
    user.app.settle()
    # Then the logout is sent again: the refusal says nothing about the other sessions
    user.phone.pass_time(600)
    user.app.settle()
    assert len(directory.control.sessions(user.person.id)) == 1
    assert user.app.session_status()["owed"] == []


def test_KEEP_4_a_local_logout_ends_only_this_session(
    sign_in: MakeUser, directory: DirectoryFixtures
) -> None:
    user = sign_in()
    directory.session(user.person)
    user.app.session_logout({"scope": "local"})
    user.app.settle()
    assert len(directory.control.sessions(user.person.id)) == 1


def test_KEEP_4_a_key_store_that_does_not_erase_is_asked_again(sign_in: MakeUser) -> None:
    user = sign_in()
    user.phone.keychain.answer("erase", "biometric", KEY_FAILED)
    user.app.session_logout()
    assert left(user.phone) == set()
    app = user.restart()
    app.settle()
    assert "biometric" not in user.phone.keychain.names()


@pytest.mark.parametrize("stride", [8, pytest.param(1, marks=pytest.mark.slow)])
def test_KEEP_4_a_process_killed_at_any_write_of_a_logout_leaves_all_or_nothing(
    sign_in: MakeUser, killer: Path, tmp_path: Path, stride: int
) -> None:
    user = sign_in(contacts=2)
    user.app.go_offline()
    user.phone.close()

    def attempt(number: int) -> tuple[children.Ended, Phone]:
        twin = user.phone.twin(tmp_path / f"logout-{number}")
        env = {"LD_PRELOAD": str(killer)}
        return run_logout(twin, str(number), env), twin

    outcomes: dict[str, int] = {"in": 0, "out": 0}
    for number in range(1, 300, stride):
        ended, twin = attempt(number)
        app = twin.start(online=False)
        screen = app.screen["screen"]
        app.settle()
        twin.close()
        if screen == "home":
            outcomes["in"] += 1
            assert left(twin) == set(SESSION_COLUMNS)
            assert "biometric" in twin.keychain.names()
        else:
            # or nothing of it is, and no key but the device's (LCK-2)
            outcomes["out"] += 1
            assert (screen, left(twin)) == ("sign_in", set())
            assert twin.keychain.names() == {"device"}
        if not ended.killed:
            ended.check()
            assert screen == "sign_in"
            break
    else:
        raise AssertionError("the process died at every change")
    assert outcomes["in"] >= 1, "no process died before the commit: the killer did not work"
    assert outcomes["out"] >= 2, "no process died after the commit"


def run_logout(phone: Phone, point: str, env: dict[str, str]) -> children.Ended:
    """Run a child that resumes, logs out and dies at this point."""
    ended = children.run("die_during.py", phone.spec(), "session_logout", "{}", point, env=env)
    assert not ended.crashed, ended.errors
    return ended


def test_KEEP_4_a_process_killed_during_the_erase_leaves_no_session(
    sign_in: MakeUser, killer: Path, tmp_path: Path
) -> None:
    user = sign_in()
    user.app.go_offline()
    user.phone.close()
    twin = user.phone.twin(tmp_path / "twin")
    ended = run_logout(twin, "erase biometric", {"LD_PRELOAD": str(killer)})
    assert ended.killed
    assert "biometric" in twin.keychain.names()
    app = twin.start(online=False)
    assert app.screen["screen"] == "sign_in"
    app.settle()
    assert "biometric" not in twin.keychain.names()
    assert left(twin) == set()
    twin.close()


def refused_at_refresh(user: SignedIn) -> None:
    """The access token expires during use, and the refresh is refused."""
    user.phone.pass_time(TOKEN_S + 60)
    user.app.settle()


def refused_at_return(user: SignedIn) -> None:
    """The app returns to the foreground and validates the session."""
    user.app.session_background()
    user.phone.pass_time(60)
    user.app.session_foreground()
    user.app.settle()


def refused_at_start(user: SignedIn) -> None:
    """The app starts and validates the session."""
    events = user.app.events
    user.restart().events[:0] = events
    user.app.settle()


@pytest.mark.parametrize(
    "refused",
    [
        refused_at_refresh,
        refused_at_return,
        refused_at_start,
    ],
)
def test_KEEP_7_a_session_ended_by_the_server_signs_out_once(
    sign_in: MakeUser, directory: DirectoryFixtures, refused: Callable[[SignedIn], None]
) -> None:
    user = sign_in()
    user.app.go_offline()
    queued = user.app.register()
    directory.control.revoke_sessions(user.person.id)
    user.app.go_online()
    directory.control.add_fault("respond", path="/rest/v1/activities", status=503, times=-1)
    refused(user)
    app = user.app
    assert len(app.of_type("session_ended")) == 1
    assert (app.screen["screen"], app.screen["reason"]) == ("sign_in", "session_ended")
    app.settle()
    user.phone.pass_time(3600)
    app.settle()
    assert len(app.of_type("session_ended")) == 1
    # the tokens are erased,
    assert left(user.phone) == set()
    assert app.session_status()["state"] == "signed_out"
    assert "biometric" not in user.phone.keychain.names()
    directory.control.clear_faults()
    app.sign_in(user.person)
    if not app.of_type("sync_completed"):
        app.settle_until("sync_completed")
    assert [str(row["id"]) for row in directory.activities(user.person)] == [queued]


def test_KEEP_7_session_ended_is_told_again_until_it_is_followed(
    sign_in: MakeUser, directory: DirectoryFixtures
) -> None:
    user = sign_in()
    directory.control.revoke_sessions(user.person.id)
    user.phone.pass_time(TOKEN_S + 60)
    seen = None
    while seen is None:
        thing = user.app.next(0)
        assert "wake_in_ms" not in thing, "the notice did not arrive"
        if "request" in thing:
            user.app.answer(thing["request"], user.phone.network(thing["request"]))
        seen = thing.get("notice")
    assert seen["type"] == "session_ended"
    assert seen["text"]
    app = user.restart()
    app.settle()
    assert app.of_type("session_ended") == [seen]
    user.restart().settle()
    assert user.app.of_type("session_ended") == []


def test_KEEP_7_other_refusals_do_not_end_the_session(
    sign_in: MakeUser, directory: DirectoryFixtures
) -> None:
    user = sign_in()
    refusals = [
        (500, '{"code":"unexpected_failure","message":"x"}'),
        (401, "<html>Captive portal</html>"),
        (429, '{"code":"over_request_rate_limit","message":"slow down"}'),
        (400, "Bad Request"),
    ]
    for status, body in refusals:
        directory.control.respond("/auth/v1", status, body=body, times=-1)
        refused_at_return(user)
        directory.control.clear_faults()
        assert user.app.of_type("session_ended") == []
        assert user.app.session_status()["state"] == "active"
        user.phone.pass_time(600)
        user.app.settle()
    assert user.app.screen["screen"] == "home"
