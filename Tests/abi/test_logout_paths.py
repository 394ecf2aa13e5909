"""Logging out when everything goes wrong, and who comes after."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from holdfast.keystore import KEY_FAILED, KEY_LOCKED

from conftest import MakeUser, SignedIn
from support import children
from support.directory_fixtures import DirectoryFixtures, Person
from support.phone import TOKEN_S


@pytest.fixture
def other(directory: DirectoryFixtures) -> Person:
    """Who uses the phone next."""
    return directory.person(directory.organisation("Sørlandet"))


def revoke_under_way(user: SignedIn) -> Any:  # noqa: ANN401
    """The revoke that the next poll asks for."""
    [request] = [r for r in user.app.poll()["requests"] if r["purpose"] == "revoke"]
    return request


@pytest.mark.parametrize("online", [True, False])
def test_KEEP_4_logging_out_with_an_expired_token(
    sign_in: MakeUser, directory: DirectoryFixtures, online: bool
) -> None:
    # Given an access token that has run out
    user = sign_in()
    if not online:
        user.app.go_offline()
    user.phone.pass_time(TOKEN_S + 60)
    user.app.session_logout()
    user.app.go_online()
    # When the server is told
    directory.control.clear_requests()
    user.app.settle()
    # Then the session is renewed once to end it, and it is over
    assert directory.refreshes() == 1
    assert directory.control.sessions(user.person.id) == []
    assert user.app.session_status()["owed"] == []
    assert user.app.session_status()["state"] == "signed_out"


def test_KEEP_4_an_access_token_that_the_server_no_longer_takes(
    sign_in: MakeUser, directory: DirectoryFixtures
) -> None:
    user = sign_in()
    body = '{"code":"bad_jwt","message":"x"}'
    directory.control.respond("/auth/v1/logout", 403, body=body, times=1)
    user.app.session_logout()
    user.app.settle()
    assert directory.refreshes() == 1
    assert directory.control.sessions(user.person.id) == []


@pytest.mark.parametrize("answers", [[KEY_FAILED] * 3, [KEY_LOCKED], [KEY_FAILED] * 50])
def test_KEEP_4_a_key_that_could_not_be_erased_is_not_the_next_user_s(
    sign_in: MakeUser, other: Person, answers: list[int]
) -> None:
    # Given a key store that does not erase at the logout
    user = sign_in()
    user.phone.keychain.answer("erase", "biometric", *answers)
    user.app.session_logout()
    # When the next user signs in before it was asked again
    user.app.sign_in(other)
    user.phone.pass_time(60)
    user.app.settle()
    # Then this user's key is there, and opens
    assert "biometric" in user.phone.keychain.names()
    user.app.session_lock()
    assert user.app.touch()["screen"] in {"home", "wait"}
    user.app.settle()
    assert user.app.session_status()["user_id"] == other.id


def test_KEEP_4_killed_at_any_write_the_next_user_is_untouched(
    sign_in: MakeUser, directory: DirectoryFixtures, killer: Path, tmp_path: Path
) -> None:
    # Given users who log out offline, in a process that dies before its n-th change of a file
    number = 0
    finished = False
    while not finished:
        number += 3
        assert number < 300
        user = sign_in()
        user.app.go_offline()
        queued = user.app.register()
        user.phone.close()
        twin = user.phone.twin(tmp_path / f"next-{number}")
        env = {"LD_PRELOAD": str(killer)}
        arguments = [twin.spec(), "session_logout", "{}", str(number)]
        ended = children.run("die_during.py", *arguments, env=env)
        assert not ended.crashed, ended.errors
        finished = not ended.killed
        # When another user signs in after the next start
        other = directory.person(directory.organisation())
        app = twin.start()
        app.sign_in(other)
        twin.pass_time(60)
        app.settle()
        # Then the first one's session is over on the server, and the second one's is untouched,
        assert directory.control.sessions(user.person.id) == [], number
        assert len(directory.control.sessions(other.id)) == 1
        assert app.session_status()["user_id"] == other.id
        assert app.session_status()["owed"] == []
        assert app.screen["screen"] == "home"
        # and the first one's unsent work is neither sent nor lost
        assert directory.activities(user.person) == []
        assert app.queue_list()["items"] == []
        app.session_logout()
        app.sign_in(user.person)
        if not app.of_type("sync_completed"):
            app.settle_until("sync_completed")
        assert [str(row["id"]) for row in directory.activities(user.person)] == [queued]
        twin.close()


@pytest.mark.parametrize("sent", [False, True])
def test_KEEP_4_killed_while_the_server_is_told(
    sign_in: MakeUser, directory: DirectoryFixtures, other: Person, sent: bool
) -> None:
    # Given a revoke that was asked for, and sent or not, when the process dies
    user = sign_in()
    user.app.session_logout()
    request = revoke_under_way(user)
    if sent:
        assert user.phone.network(request)["status"] == 204
    # When another user signs in after the next start
    user.restart()
    user.app.sign_in(other)
    user.phone.pass_time(120)
    user.app.settle()
    # Then the first session is over, and the second is untouched
    assert directory.control.sessions(user.person.id) == []
    assert len(directory.control.sessions(other.id)) == 1
    assert user.app.session_status()["owed"] == []
    assert user.app.session_status()["user_id"] == other.id


def test_SES_8_the_same_user_signs_in_again_before_the_revoke(
    sign_in: MakeUser, directory: DirectoryFixtures
) -> None:
    # Given a user who logged out offline, and signs in again
    user = sign_in()
    user.app.go_offline()
    user.app.session_logout()
    user.phone.network.up = True
    user.app.session_start({"session": directory.session(user.person)})
    # When the phone is online again
    user.app.go_online()
    user.app.settle()
    # Then the old session is over, and the new one goes on
    assert len(directory.control.sessions(user.person.id)) == 1
    assert user.app.session_status()["state"] == "active"
    user.phone.pass_time(TOKEN_S + 60)
    user.app.settle()
    assert user.app.session_status()["owed"] == []
    assert user.app.of_type("session_ended") == []


def test_SES_8_several_sessions_wait_for_their_end(
    sign_in: MakeUser, directory: DirectoryFixtures
) -> None:
    # Given three users in a row who logged out offline, over a restart and a server that fails
    user = sign_in()
    people = [user.person]
    for _ in range(2):
        user.app.go_offline()
        user.app.session_logout()
        user.phone.network.up = True
        people.append(directory.person(directory.organisation()))
        user.app.session_start({"session": directory.session(people[-1])})
    user.app.go_offline()
    user.app.session_logout()
    user.phone.network.up = True
    directory.control.respond("/auth/v1/logout", 503, body="busy", times=2)
    # When the app is online again
    user.restart()
    for _ in range(6):
        user.app.settle()
        user.phone.pass_time(310)
    # Then all of them are over
    assert [directory.control.sessions(person.id) for person in people] == [[], [], []]
    assert user.app.session_status()["owed"] == []


def test_KEEP_4_logging_out_twice_or_signed_out_is_no_error(sign_in: MakeUser) -> None:
    user = sign_in()
    user.app.session_logout()
    reply = user.app.session_logout()
    assert (reply["unsent"], reply["decision"]["screen"]) == (0, "sign_in")


def test_KEEP_4_logging_out_of_a_locked_phone(sign_in: MakeUser, other: Person) -> None:
    # Given a locked session: its tokens cannot be read
    user = sign_in()
    user.app.register()
    user.app.session_lock()
    # When the user logs out
    reply = user.app.session_logout()
    # Then everything is gone from the phone all the same
    assert reply["decision"]["screen"] == "sign_in"
    assert "biometric" not in user.phone.keychain.names()
    assert user.restart().screen["reason"] == "session_missing"
    user.app.sign_in(other)
    assert user.app.session_status()["user_id"] == other.id
