"""Logging out, and sessions that end elsewhere."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import cast

import pytest
from holdfast import HoldfastError
from holdfast.keystore import KEY_FAILED
from holdfast.types import CompleteRequest

from conftest import MakeUser, SignedIn
from support import children, tamper
from support.directory_fixtures import DirectoryFixtures
from support.phone import TOKEN_S, Phone

SESSION_COLUMNS = ["tokens", "wrap_device", "wrap_biometric", "choice", "memberships", "owner"]


def left(phone: Phone) -> set[str]:
    """The columns of the session row that still hold something."""
    return {name for name in SESSION_COLUMNS if tamper.read(phone.folder, name) is not None}


def test_KEEP_4_logging_out_online(sign_in: MakeUser, directory: DirectoryFixtures) -> None:
    # Given a user who is signed in, online
    user = sign_in(contacts=3)
    assert len(directory.control.sessions(user.person.id)) == 1
    # When the user logs out
    reply = user.app.session_logout()
    # Then tokens and the biometric credential are gone at once
    assert reply["unsent"] == 0
    assert (reply["decision"]["screen"], reply["decision"]["reason"]) == ("sign_in", "signed_out")
    assert left(user.phone) == set()
    assert "biometric" not in user.phone.keychain.names()
    assert user.app.session_status()["state"] == "signed_out"
    with pytest.raises(HoldfastError) as caught:
        user.app.contact_search({"query": ""})
    assert caught.value.code == "session.none"
    # and the server's session is ended as soon as the host sends what is asked
    user.app.settle()
    assert directory.control.sessions(user.person.id) == []
    assert user.app.session_status()["owed"] == []
    screen = user.restart().screen
    assert (screen["screen"], screen["reason"]) == ("sign_in", "session_missing")


def test_KEEP_4_logging_out_offline(sign_in: MakeUser, directory: DirectoryFixtures) -> None:
    # Given a user who is signed in, offline
    user = sign_in()
    user.app.go_offline()
    # When the user logs out
    user.app.session_logout()
    # Then the phone has forgotten the session, and the server not yet
    assert left(user.phone) == set()
    assert "biometric" not in user.phone.keychain.names()
    assert user.app.session_status()["owed"] == ["revoke"]
    assert len(directory.control.sessions(user.person.id)) == 1
    # and it is ended when the phone is online again, also a start and an expired token later
    user.phone.pass_time(2 * TOKEN_S)
    user.phone.network.up = True
    app = user.restart()
    assert app.screen["screen"] == "sign_in"
    app.settle()
    assert directory.control.sessions(user.person.id) == []
    assert app.session_status()["owed"] == []


def test_KEEP_4_logging_out_everywhere(sign_in: MakeUser, directory: DirectoryFixtures) -> None:
    user = sign_in()
    directory.session(user.person)
    assert len(directory.control.sessions(user.person.id)) == 2
    user.app.session_logout({"scope": "global"})
    user.app.settle()
    assert directory.control.sessions(user.person.id) == []


def test_KEEP_4_only_this_device_is_logged_out(
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


def test_KEEP_4_the_process_dies_at_any_write_of_a_logout(
    sign_in: MakeUser, directory: DirectoryFixtures, killer: Path, tmp_path: Path
) -> None:
    # Given a user who is signed in
    user = sign_in(contacts=2)
    user.app.go_offline()
    user.phone.close()

    def attempt(number: int) -> tuple[children.Ended, Phone]:
        twin = user.phone.twin(tmp_path / f"logout-{number}")
        env = {"LD_PRELOAD": str(killer)}
        return run_logout(twin, str(number), env), twin

    outcomes: dict[str, int] = {"in": 0, "out": 0}
    number = 0
    while True:
        # When the process dies before its n-th change of a file while logging out, for every n
        number += 1
        ended, twin = attempt(number)
        app = twin.start(online=False)
        screen = app.screen["screen"]
        app.settle()
        twin.close()
        if screen == "home":
            # Then either all of the session is still there,
            outcomes["in"] += 1
            assert left(twin) == set(SESSION_COLUMNS)
            assert "biometric" in twin.keychain.names()
        else:
            # or nothing of it is, nor of the biometric credential
            outcomes["out"] += 1
            assert (screen, left(twin)) == ("sign_in", set())
            assert "biometric" not in twin.keychain.names()
        if not ended.killed:
            ended.check()
            assert screen == "sign_in"
            break
        assert number < 300
    assert outcomes["in"] >= 1, "no death came before the commit: the killer did not work"
    assert outcomes["out"] >= 2, "no death came after the commit"


def run_logout(phone: Phone, point: str, env: dict[str, str]) -> children.Ended:
    """A child that resumes and logs out, and dies at the point."""
    ended = children.run("die_during.py", phone.spec(), "session_logout", "{}", point, env=env)
    assert not ended.crashed, ended.errors
    return ended


def test_KEEP_4_the_process_dies_while_the_key_store_erases(
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
    """The access token runs out while the app is used: the refresh is refused."""
    user.phone.pass_time(TOKEN_S + 60)
    user.app.settle()


def refused_at_return(user: SignedIn) -> None:
    """The app comes back and the server is asked whether the session is still good."""
    user.app.session_background()
    user.phone.pass_time(60)
    user.app.session_foreground()
    user.app.settle()


def refused_at_start(user: SignedIn) -> None:
    """The app starts and the server is asked."""
    events = user.app.events
    user.restart().events[:0] = events
    user.app.settle()


@pytest.mark.parametrize("refused", [refused_at_refresh, refused_at_return, refused_at_start])
def test_KEEP_7_a_session_that_ended_elsewhere(
    sign_in: MakeUser, directory: DirectoryFixtures, refused: Callable[[SignedIn], None]
) -> None:
    # Given queued work, and a session that the server has ended elsewhere
    user = sign_in()
    user.app.go_offline()
    queued = user.app.register()
    directory.control.revoke_sessions(user.person.id)
    user.app.go_online()
    directory.control.add_fault("respond", path="/rest/v1/activities", status=503, times=-1)
    # When a request is refused for that reason
    refused(user)
    # Then session_ended comes once,
    app = user.app
    assert len(app.of_type("session_ended")) == 1
    assert (app.screen["screen"], app.screen["reason"]) == ("sign_in", "session_ended")
    app.settle()
    user.phone.pass_time(3600)
    app.settle()
    assert len(app.of_type("session_ended")) == 1
    # the tokens are gone,
    assert left(user.phone) == set()
    assert app.session_status()["state"] == "signed_out"
    assert "biometric" not in user.phone.keychain.names()
    # and the queue is kept for the owner's next sign-in
    directory.control.clear_faults()
    app.sign_in(user.person)
    if not app.of_type("sync_completed"):
        app.settle_until("sync_completed")
    assert [str(row["id"]) for row in directory.activities(user.person)] == [queued]


def test_KEEP_7_the_event_waits_for_a_host_that_did_not_see_it(
    sign_in: MakeUser, directory: DirectoryFixtures
) -> None:
    # Given a session that ended, and a host that died before it acknowledged the event
    user = sign_in()
    directory.control.revoke_sessions(user.person.id)
    user.phone.pass_time(TOKEN_S + 60)
    app = user.app
    seen: list[int] = []
    for _ in range(10):
        step = app.poll()
        for request in step["requests"]:
            answer = user.phone.network(request)
            app.complete(cast(CompleteRequest, {"id": request["id"], **answer}))
        seen += [event["seq"] for event in step["events"] if event["type"] == "session_ended"]
    assert seen, "the event never came"
    assert len(set(seen)) == 1
    # When the app starts again
    app = user.restart()
    again = [event for event in app.poll()["events"] if event["type"] == "session_ended"]
    # Then the event is told again, until it is acknowledged
    assert [event["seq"] for event in again] == seen[:1]
    assert [e for e in app.poll({"ack": seen[0]})["events"] if e["type"] == "session_ended"] == []
    app = user.restart()
    assert [e for e in app.poll()["events"] if e["type"] == "session_ended"] == []


def test_KEEP_7_other_refusals_do_not_end_the_session(
    sign_in: MakeUser, directory: DirectoryFixtures
) -> None:
    # Given a server that answers with anything but proof of an end
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
        # Then nobody is signed out
        assert user.app.of_type("session_ended") == []
        assert user.app.session_status()["state"] == "active"
        user.phone.pass_time(600)
        user.app.settle()
    assert user.app.screen["screen"] == "home"
