"""Exactly one refresh, with several processes and with processes that die."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from support import children
from support.directory_fixtures import DirectoryFixtures
from support.held import taken
from support.phone import TOKEN_S, Phone
from support.screens import seen
from support.sizes import sized
from support.users import MakeUser, SignedIn

PROCESSES = 8


def expired(user: SignedIn) -> Phone:
    """A phone with a closed app and an expired access token."""
    user.phone.pass_time(TOKEN_S + 60)
    user.phone.close()
    return user.phone


@pytest.mark.parametrize("attempt", sized(range(1), range(3)))
def test_SES_4_eight_processes_need_a_refresh_at_once(
    sign_in: MakeUser, directory: DirectoryFixtures, attempt: int
) -> None:
    user = sign_in(policy={"biometric": "off"})
    directory.control.set(reuse_interval=0)
    phone = expired(user)
    directory.control.clear_requests()
    started = [
        subprocess.Popen(
            children.command("refresh_together.py", phone.spec()),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=children.environment(),
        )
        for _ in range(PROCESSES)
    ]
    try:
        for child in started:
            assert child.stdout is not None
            assert child.stdout.readline() == "ready\n", child.communicate()[1]
        for child in started:
            assert child.stdin is not None
            child.stdin.write("go\n")
            child.stdin.flush()
        outputs = [child.communicate(timeout=90 * children.PATIENCE) for child in started]
    finally:
        for child in started:
            child.kill()
            child.wait()
    assert [child.returncode for child in started] == [0] * PROCESSES, outputs
    ends = [json.loads(output) for output, _ in outputs]
    assert directory.refreshes() == 1
    assert sum(end["refreshes"] for end in ends) == 1
    assert {(end["state"], end["ended"]) for end in ends} == {("active", 0)}
    assert len({(end["generation"], end["expires_ms"]) for end in ends}) == 1
    app = phone.start()
    app.settle()
    assert app.screen["screen"] == "home"
    assert len(directory.control.sessions(user.person.id)) == 1


def outcome(twin: Phone, directory: DirectoryFixtures, person: str) -> int:
    """Start the app; returns how many refreshes it needs. The user stays at home."""
    directory.control.clear_requests()
    app = twin.start()
    assert seen(app.screen) == ("home", None)
    app.settle()
    assert app.screen["screen"] == "home"
    assert app.of_type("session_ended") == []
    status = app.session_status()
    assert (status["state"], status["stale"], status["owed"]) == ("active", False, [])
    assert len(directory.control.sessions(person)) == 1
    twin.close()
    return directory.refreshes()


@pytest.mark.parametrize(("step", "again"), [("asked", 1), ("sent", 1), ("stored", 0)])
def test_SES_3_the_refreshing_process_is_killed_between_its_steps(
    sign_in: MakeUser, directory: DirectoryFixtures, killer: Path, step: str, again: int
) -> None:
    user = sign_in(policy={"biometric": "off"})
    directory.control.set(reuse_interval=0)
    phone = expired(user)
    env = {"LD_PRELOAD": str(killer)}
    ended = children.run("die_refreshing.py", phone.spec(), step, "0", env=env)
    assert ended.killed, ended.errors
    assert outcome(phone, directory, user.person.id) == again


@pytest.mark.parametrize(
    ("step", "stride"),
    [
        ("complete", 3),
        pytest.param("poll", 1, marks=pytest.mark.slow),
        pytest.param("complete", 1, marks=pytest.mark.slow),
    ],
)
def test_SES_3_the_refreshing_process_is_killed_at_any_write(
    sign_in: MakeUser,
    directory: DirectoryFixtures,
    killer: Path,
    tmp_path: Path,
    step: str,
    stride: int,
) -> None:
    user = sign_in(policy={"biometric": "off"})
    arguments = expired(user), tmp_path, killer, "die_refreshing.py", step
    needed = [
        outcome(twin, directory, user.person.id)
        for twin, _ in children.deaths(*arguments, stride=stride)
    ]
    assert needed[0] == 1, "no process died before the commit: the killer did not work"
    assert needed[-1] == 0
    assert set(needed) == {0, 1}
    assert len(needed) >= 3


def test_SES_2_an_already_used_token_does_not_end_a_newer_stored_session(
    sign_in: MakeUser, directory: DirectoryFixtures
) -> None:
    user = sign_in(policy={"biometric": "off"})
    first = user.app
    user.phone.app = None
    user.phone.pass_time(TOKEN_S + 60)
    first.clock_set({"now_ms": user.phone.now_ms, "monotonic_ms": user.phone.monotonic_ms})
    [request] = first.poll()["requests"]
    assert request["purpose"] == "refresh"
    # When the other refreshes meanwhile (the first one's lease has ended), and the server then
    # reports that the first one's token was already used
    user.phone.pass_time(60)
    second = user.phone.start()
    second.settle()
    assert second.session_status()["owed"] == []
    body = '{"code":"refresh_token_already_used","message":"x"}'
    first.complete({"id": request["id"], "status": 400, "headers": {}, "body": body})
    assert first.session_status()["state"] == "active"
    assert first.session_status()["generation"] == second.session_status()["generation"]
    second.settle()
    assert second.of_type("session_ended") == []
    assert first.of_type("session_ended") == []
    first.close()


def test_SES_3_a_stored_refresh_intent_is_completed_with_a_valid_token(
    user: SignedIn, directory: DirectoryFixtures
) -> None:
    body = '{"code":"PGRST301","message":"JWSError"}'
    directory.control.respond("/rest/v1", 401, body=body, times=1)
    directory.control.clear_requests()
    user.app.sync_now()
    assert user.phone.network(taken(user, "refresh"))["status"] == 200
    assert directory.refreshes() == 1
    app = user.restart()
    assert "refresh" in app.session_status()["owed"]
    app.settle()
    assert directory.refreshes() == 2
    assert app.session_status()["owed"] == []
    assert app.screen["screen"] == "home"
    assert app.of_type("session_ended") == []
