"""Start and stop: in parallel, with kept data, and without orphans however the owner dies."""

from __future__ import annotations

import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator

import local_supabase
import psycopg
import pytest
from local_supabase import LocalSupabase, demo
from patience import eventually, patience

import web
from people import Person, activity

SERVER = pathlib.Path(local_supabase.__file__).parents[1]

OWNER = """
import sys, time
from local_supabase import LocalSupabase
backend = LocalSupabase(data_dir=sys.argv[1] or None).start()
print(backend.pid, backend.control.sql("show data_directory")[0]["data_directory"], flush=True)
time.sleep(600)
"""


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    state = pathlib.Path(f"/proc/{pid}/stat")
    return not state.exists() or state.read_text().rsplit(") ", 1)[1][0] != "Z"


def postmaster(data: str) -> int:
    return int(pathlib.Path(data, "postmaster.pid").read_text().split("\n")[0])


@pytest.fixture
def kept() -> Iterator[pathlib.Path]:
    """A folder of its own to keep data in.

    Not pytest's: under root, PostgreSQL runs as another user, who could not reach it.
    """
    folder = pathlib.Path(tempfile.mkdtemp(prefix="local-supabase-kept-"))
    yield folder
    shutil.rmtree(folder)


@pytest.mark.parametrize("victims", ["owner", "server", "owner and server"])
def test_kill_leaves_no_orphans(victims: str) -> None:
    """Given SIGKILL to the test process, the server or both, then PostgreSQL ends and its folder is removed."""
    data = kill_and_wait(victims, "")
    eventually(lambda: not data.exists(), what="the folder is removed")


def kill_and_wait(victims: str, folder: str) -> pathlib.Path:
    """Start an owner of a server, kill the victims, wait until nothing runs; return the data directory."""
    owner = subprocess.Popen(
        [sys.executable, "-c", OWNER, folder],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(SERVER)},
    )
    try:
        assert owner.stdout is not None
        server_text, data = owner.stdout.readline().split()
        server, database = int(server_text), postmaster(data)
        assert alive(server)
        assert alive(database)
        if "owner" in victims:
            owner.kill()
        if "server" in victims:
            os.kill(server, signal.SIGKILL)
        # More than the guard waits before it uses force
        eventually(lambda: not alive(server), within_s=240, what="the server has ended")
        eventually(lambda: not alive(database), within_s=240, what="PostgreSQL has ended")
        return pathlib.Path(data)
    finally:
        owner.kill()
        owner.wait()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_command_line_and_signals(number: int) -> None:
    """Given a server started by hand, then one JSON line describes it, and a signal ends everything."""
    process = subprocess.Popen(
        [sys.executable, "-m", "local_supabase", "--demo"],
        stdout=subprocess.PIPE,
        stdin=subprocess.DEVNULL,
        env={**os.environ, "PYTHONPATH": str(SERVER)},
    )
    try:
        assert process.stdout is not None
        ready = json.loads(process.stdout.readline())
        assert set(ready) == {"url", "anon_key", "service_key", "jwt_secret", "dsn", "pid"}
        assert web.get(f"{ready['url']}/auth/v1/health").status_code == 200
        with psycopg.connect(ready["dsn"]) as connection:
            row = connection.execute("show data_directory").fetchone()
        assert row is not None
        database = postmaster(row[0])
        process.send_signal(number)
        process.wait(patience(120))
        assert not alive(database)
        assert not pathlib.Path(row[0]).exists()
    finally:
        process.kill()
        process.wait()


def test_kept_data(kept: pathlib.Path) -> None:
    """Given a data folder, when a server restarts on it, then users, sessions and rows are still there."""
    with LocalSupabase(demo=True, data_dir=kept) as first:
        person = Person(first, "solo@example.org")
        assert person.insert(activity(demo.ORG_3)).status_code == 201
    with LocalSupabase(demo=True, data_dir=kept) as second:
        again = web.post(
            f"{second.auth_url}/token?grant_type=refresh_token",
            headers={"apikey": second.anon_key},
            json={"refresh_token": person.session["refresh_token"]},
        )
        assert again.status_code == 200
        assert len(Person(second, "solo@example.org").activities()) == 1
