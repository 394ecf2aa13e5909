"""Logout with failures, and the next user."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from holdfast.keystore import KEY_FAILED, KEY_LOCKED

from support import children
from support.directory_fixtures import DirectoryFixtures, Person
from support.phone import TOKEN_S
from support.screens import why
from support.users import MakeUser, SignedIn


@pytest.fixture
def other(directory: DirectoryFixtures) -> Person:
    """The next user of the phone."""
    return directory.person(directory.organisation("Sørlandet"))


def revoke_under_way(user: SignedIn) -> Any:  # noqa: ANN401
    """The revoke request of the next poll."""
    [request] = [r for r in user.app.poll()["requests"] if r["purpose"] == "revoke"]
    return request


@pytest.mark.parametrize("token", ["expired", "expired offline", "refused"])
def test_KEEP_4_logging_out_without_a_valid_token_revokes_the_session(
    user: SignedIn, directory: DirectoryFixtures, token: str
) -> None:
    if token == "expired offline":
        user.app.go_offline()
    if token == "refused":
        body = '{"code":"bad_jwt","message":"x"}'
        directory.control.respond("/auth/v1/logout", 403, body=body, times=1)
    else:
        user.phone.pass_time(TOKEN_S + 60)
    user.app.session_logout()
    user.app.go_online()
    directory.control.clear_requests()
    user.app.settle()
    assert directory.refreshes() == 1
    assert directory.control.sessions(user.person.id) == []
    assert user.app.session_status()["owed"] == []
    assert user.app.session_status()["state"] == "signed_out"


@pytest.mark.parametrize("answers", [[KEY_FAILED] * 3, [KEY_LOCKED], [KEY_FAILED] * 50])
def test_KEEP_4_a_key_that_could_not_be_erased_does_not_serve_the_next_user(
    user: SignedIn, other: Person, answers: list[int]
) -> None:
    user.phone.keychain.answer("erase", "biometric", *answers)
    user.app.session_logout()
    user.app.sign_in(other)
    user.app.wait(60)
    assert "biometric" in user.phone.keychain.names()
    user.app.session_lock()
    assert user.app.touch()["screen"] in {"home", "wait"}
    user.app.settle()
    assert user.app.session_status()["user_id"] == other.id


@pytest.mark.parametrize("stride", [30, pytest.param(3, marks=pytest.mark.slow)])
def test_KEEP_4_killed_at_any_write_the_next_user_is_untouched(
    sign_in: MakeUser, directory: DirectoryFixtures, killer: Path, tmp_path: Path, stride: int
) -> None:
    number = 0
    finished = False
    while not finished:
        number += stride
        assert number < 300
        user = sign_in()
        queued = user.offline().register()
        user.phone.close()
        twin = user.phone.twin(tmp_path / f"next-{number}")
        env = {"LD_PRELOAD": str(killer)}
        arguments = [twin.spec(), "session_logout", "{}", str(number)]
        ended = children.run("die_during.py", *arguments, env=env)
        assert not ended.crashed, ended.errors
        finished = not ended.killed
        other = directory.person(directory.organisation())
        app = twin.start()
        app.sign_in(other)
        twin.pass_time(60)
        app.settle()
        assert directory.control.sessions(user.person.id) == [], number
        assert len(directory.control.sessions(other.id)) == 1
        assert app.session_status()["user_id"] == other.id
        assert app.session_status()["owed"] == []
        assert app.screen["screen"] == "home"
        assert directory.activities(user.person) == []
        assert app.queue_list()["items"] == []
        app.session_logout()
        app.sign_in(user.person)
        if not app.of_type("sync_completed"):
            app.settle_until("sync_completed")
        assert [str(row["id"]) for row in directory.activities(user.person)] == [queued]
        twin.close()


@pytest.mark.parametrize("sent", [False, True])
def test_KEEP_4_a_process_killed_during_the_revoke_revokes_later(
    user: SignedIn, directory: DirectoryFixtures, other: Person, sent: bool
) -> None:
    user.app.session_logout()
    request = revoke_under_way(user)
    if sent:
        assert user.phone.network(request)["status"] == 204
    user.restart()
    user.app.sign_in(other)
    user.app.wait(120)
    assert directory.control.sessions(user.person.id) == []
    assert len(directory.control.sessions(other.id)) == 1
    assert user.app.session_status()["owed"] == []
    assert user.app.session_status()["user_id"] == other.id


def test_SES_8_several_pending_revokes_are_sent(
    user: SignedIn, directory: DirectoryFixtures
) -> None:
    people = [user.person]
    for _ in range(2):
        user.app.go_offline()
        user.app.session_logout()
        user.phone.network.up = True
        people.append(directory.person(directory.organisation()))
        user.app.session_adopt({"session": directory.session(people[-1])})
    user.app.go_offline()
    user.app.session_logout()
    user.phone.network.up = True
    directory.control.respond("/auth/v1/logout", 503, body="busy", times=2)
    user.restart()
    for _ in range(6):
        user.app.settle()
        user.phone.pass_time(310)
    assert [directory.control.sessions(person.id) for person in people] == [[], [], []]
    assert user.app.session_status()["owed"] == []


def test_KEEP_4_logging_out_twice_succeeds(user: SignedIn) -> None:
    user.app.session_logout()
    reply = user.app.session_logout()
    assert (reply["unsent"], reply["screen"]["screen"]) == (0, "sign_in")


def test_KEEP_4_logging_out_while_locked_erases_everything(user: SignedIn, other: Person) -> None:
    # Given a locked session: its tokens cannot be read
    user.app.register()
    user.app.session_lock()
    reply = user.app.session_logout()
    assert reply["screen"]["screen"] == "sign_in"
    assert "biometric" not in user.phone.keychain.names()
    assert why(user.restart().screen) == "session_missing"
    user.app.sign_in(other)
    assert user.app.session_status()["user_id"] == other.id
