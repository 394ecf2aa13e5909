"""A call waits at most 5 s for locks of other processes, however many it meets (ABI-1).

The child's clock is one that sleeping moves on, so no test waits.
"""

from __future__ import annotations

import contextlib
import json
import sqlite3

import pytest

from support import children
from support.elsewhere import program, said, started, tell
from support.users import MakeUser, SignedIn

CALLS = """
import ctypes, json, sys
from holdfast import HoldfastError
from holdfast.keystore import KEY_FAILED
from support.phone import Phone

slept = ctypes.c_longlong.in_dll(ctypes.CDLL(None), "slept_ns")
phone = Phone.from_spec(sys.argv[1])
app = phone.start()
assert app.screen["screen"] in {"home", "wait"}, app.screen
if sys.argv[2] == "owed":
    phone.keychain.answer("erase", "session", *[KEY_FAILED] * 99)
    app.session_background()
print("ready", flush=True)
for line in sys.stdin:
    before = slept.value
    try:
        getattr(app, line.strip())()
        code = ""
    except HoldfastError as error:
        code = error.code
    print(json.dumps([(slept.value - before) // 1000000, code]), flush=True)
"""


@pytest.mark.parametrize("state", ["open", "owed"])
def test_ABI_1_a_call_waits_once_for_what_others_hold(
    sign_in: MakeUser, sleepless: dict[str, str], state: str
) -> None:
    user = sign_in(policy={"lock_on_background": "at_once"})
    user.phone.close()
    with started(program(CALLS, user, state), sleepless) as process:
        assert process.stdin and process.stdout
        assert said(process) == "ready"
        database = sqlite3.connect(user.phone.folder / "holdfast.db", isolation_level=None)
        waits: dict[str, tuple[int, str]] = {}
        with contextlib.closing(database):
            database.execute("BEGIN IMMEDIATE")
            for call in ("session_status", "poll", "session_background", "session_lock"):
                process.stdin.write(f"{call}\n")
                process.stdin.flush()
                waits[call] = tuple(json.loads(process.stdout.readline()))
            database.execute("ROLLBACK")
        process.stdin.close()
        assert process.wait(60 * children.PATIENCE) == 0
    assert all(wait <= 5100 for wait, _ in waits.values()), waits
    assert waits["session_lock"][1] == "storage.busy"
    assert waits["session_lock"][0] >= 4900


AWAY = """
import sys
from holdfast import HoldfastError
from support.phone import Phone

phone = Phone.from_spec(sys.argv[1])
app = phone.start()
assert app.screen["screen"] == "home", app.screen
app.session_background()
phone.pass_time(360)
print("ready", flush=True)
sys.stdin.readline()
try:
    app.session_foreground()
except HoldfastError as error:
    print(error.code, "session" in phone.keychain.names(), flush=True)
sys.stdin.readline()
app.session_foreground()
app.settle()
print(app.screen["screen"], "session" in phone.keychain.names(), flush=True)
"""


def test_LCK_1_a_lock_that_meets_a_busy_file_erases_no_key_of_another_session(
    user: SignedIn, sleepless: dict[str, str]
) -> None:
    # Given a user who was away for too long
    user.phone.close()
    with started(program(AWAY, user), sleepless) as process:
        assert said(process) == "ready"
        # When they come back while another process has the file, perhaps to store a sign-in
        database = sqlite3.connect(user.phone.folder / "holdfast.db", isolation_level=None)
        with contextlib.closing(database):
            database.execute("BEGIN IMMEDIATE")
            tell(process)
            assert said(process) == "storage.busy True"
            database.execute("ROLLBACK")
        # Then the session is locked as soon as the file is free
        tell(process)
        assert said(process) == "unlock False"
        assert process.wait(60 * children.PATIENCE) == 0
