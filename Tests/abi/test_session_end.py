"""Logout, and sessions that the server ends."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import pytest

from support import children, tamper
from support.directory_fixtures import DirectoryFixtures
from support.errors import error_of
from support.phone import TOKEN_S, Phone
from support.screens import seen, why
from support.users import MakeUser, SignedIn

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
    assert seen(reply["screen"]) == ("sign_in", "signed_out")
    assert left(user.phone) == set()
    assert "biometric" not in user.phone.keychain.names()
    assert user.app.session_status()["state"] == "signed_out"
    assert error_of(user.app.contact_search, {"query": ""}).code == "session.none"
    user.app.settle()
    assert directory.control.sessions(user.person.id) == []
    assert user.app.session_status()["owed"] == []
    screen = user.restart().screen
    assert seen(screen) == ("sign_in", "session_missing")


def test_KEEP_4_logging_out_offline(user: SignedIn, directory: DirectoryFixtures) -> None:
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


@pytest.mark.parametrize(("scope", "left"), [("local", 1), ("global", 0)])
def test_KEEP_4_a_local_logout_ends_one_session_and_a_global_one_all(
    user: SignedIn, directory: DirectoryFixtures, scope: Literal["local", "global"], left: int
) -> None:
    directory.session(user.person)
    assert len(directory.control.sessions(user.person.id)) == 2
    user.app.session_logout({"scope": scope})
    user.app.settle()
    assert len(directory.control.sessions(user.person.id)) == left


@pytest.mark.parametrize("locked", [False, True])
def test_KEEP_4_a_delayed_global_logout_spares_the_users_newer_session(
    user: SignedIn, directory: DirectoryFixtures, locked: bool
) -> None:
    directory.session(user.person)
    user.app.go_offline()
    user.app.session_logout({"scope": "global"})
    newer = directory.session(user.person)
    user.app.session_adopt({"session": newer})
    if locked:
        user.app.session_lock()
    user.app.go_online()
    user.app.wait(60)
    if locked:
        # Only the locked token can spare its own session.
        assert len(directory.control.sessions(user.person.id)) == 3
        assert user.app.session_status()["owed"] == ["revoke"]
        user.app.touch()
        user.app.wait(60)
    (left_over,) = directory.control.sessions(user.person.id)
    assert left_over["id"] == session_of(newer)
    assert user.app.session_status()["owed"] == []
    user.app.wait(2 * TOKEN_S)
    assert user.app.screen["screen"] == "home"
    assert user.app.session_status()["state"] == "active"


def test_KEEP_4_a_delayed_global_logout_is_global_when_another_user_has_signed_in(
    user: SignedIn, directory: DirectoryFixtures
) -> None:
    directory.session(user.person)
    user.app.go_offline()
    user.app.session_logout({"scope": "global"})
    stranger = directory.person(directory.organisation())
    user.app.session_adopt({"session": directory.session(stranger)})
    user.app.reconnect()
    assert directory.control.sessions(user.person.id) == []
    assert len(directory.control.sessions(stranger.id)) == 1


def test_KEEP_4_a_refused_logout_of_the_others_is_repeated(
    user: SignedIn, directory: DirectoryFixtures
) -> None:
    user.app.go_offline()
    user.app.session_logout({"scope": "global"})
    user.app.session_adopt({"session": directory.session(user.person)})
    directory.control.respond("/auth/v1/logout", 403, body={"code": "session_not_found"})
    user.app.reconnect()
    # Then the logout is sent again: the refusal says nothing about the other sessions
    user.app.wait(600)
    assert len(directory.control.sessions(user.person.id)) == 1
    assert user.app.session_status()["owed"] == []


#: A process that resumes and logs out.
LOGOUT = ("die_during.py", "session_logout", "{}")


@pytest.mark.parametrize("stride", [8, pytest.param(1, marks=pytest.mark.slow)])
def test_KEEP_4_a_process_killed_at_any_write_of_a_logout_leaves_all_or_nothing(
    sign_in: MakeUser, killer: Path, tmp_path: Path, stride: int
) -> None:
    user = sign_in(contacts=2)
    user.app.go_offline()
    user.phone.close()
    shown = []
    for twin, _ in children.deaths(user.phone, tmp_path, killer, *LOGOUT, stride=stride):
        app = twin.start(online=False)
        shown.append(app.screen["screen"])
        app.settle()
        twin.close()
        if shown[-1] == "home":
            assert left(twin) == set(SESSION_COLUMNS)
            assert "biometric" in twin.keychain.names()
        else:
            # No key but the device's is left (LCK-2).
            assert (shown[-1], left(twin)) == ("sign_in", set())
            assert twin.keychain.names() == {"device"}
    assert shown[0] == "home", "no process died before the commit: the killer did not work"
    assert shown[-2:] == ["sign_in"] * 2, "no process died after the commit"


def test_KEEP_4_a_process_killed_during_the_erase_leaves_no_session(
    user: SignedIn, killer: Path
) -> None:
    user.app.go_offline()
    user.phone.close()
    script, *arguments = LOGOUT
    point, env = "erase biometric", {"LD_PRELOAD": str(killer)}
    assert children.run(script, user.phone.spec(), *arguments, point, env=env).killed
    assert "biometric" in user.phone.keychain.names()
    app = user.restart(online=False)
    assert app.screen["screen"] == "sign_in"
    app.settle()
    assert "biometric" not in user.phone.keychain.names()
    assert left(user.phone) == set()


def test_KEEP_7_a_process_killed_during_the_erase_of_an_ended_session_leaves_no_key(
    user: SignedIn, directory: DirectoryFixtures, killer: Path
) -> None:
    user.phone.close()
    directory.control.revoke_sessions(user.person.id)
    arguments, env = ("go_online+wait", "60", "erase biometric"), {"LD_PRELOAD": str(killer)}
    assert children.run("die_during.py", user.phone.spec(), *arguments, env=env).killed
    assert "biometric" in user.phone.keychain.names()
    user.restart().settle()
    assert why(user.app.screen) == "session_ended"
    assert user.phone.keychain.names() == {"device"}


def refused_at_refresh(user: SignedIn) -> None:
    """The access token expires during use, and the refresh is refused."""
    user.app.wait(TOKEN_S + 60)


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


@pytest.mark.parametrize("refused", [refused_at_refresh, refused_at_return, refused_at_start])
def test_KEEP_7_a_session_ended_by_the_server_signs_out_once(
    user: SignedIn, directory: DirectoryFixtures, refused: Callable[[SignedIn], None]
) -> None:
    queued = user.offline().register()
    directory.control.revoke_sessions(user.person.id)
    user.app.go_online()
    directory.control.add_fault("respond", path="/rest/v1/activities", status=503, times=-1)
    refused(user)
    app = user.app
    assert len(app.of_type("session_ended")) == 1
    assert seen(app.screen) == ("sign_in", "session_ended")
    app.settle()
    app.wait(3600)
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
    user: SignedIn, directory: DirectoryFixtures
) -> None:
    directory.control.revoke_sessions(user.person.id)
    user.phone.pass_time(TOKEN_S + 60)
    notice = None
    while notice is None:
        thing = user.app.next(0)
        assert "wake_in_ms" not in thing, "the notice did not arrive"
        if "request" in thing:
            user.app.answer(thing["request"], user.phone.network(thing["request"]))
        notice = thing.get("notice")
    assert notice["type"] == "session_ended"
    assert notice["text"]
    app = user.restart()
    app.settle()
    assert app.of_type("session_ended") == [notice]
    assert seen(app.screen) == ("sign_in", "session_ended")
    user.restart().settle()
    assert user.app.of_type("session_ended") == []
