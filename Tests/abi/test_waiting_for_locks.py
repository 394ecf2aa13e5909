"""A call waits at most 5 s for locks of other processes, however many it meets (ABI-1).

The child's clock is one that sleeping moves on, so no test waits.
"""

from __future__ import annotations

import contextlib
import json
import os
import sqlite3
import subprocess
from pathlib import Path

import pytest

from conftest import MakeUser
from support import children

#: Sleeping takes no time, and moves the clock that waits are measured by. `slept_ns` counts.
CLOCK = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <time.h>
#include <unistd.h>
long long slept_ns;
int nanosleep(const struct timespec *pause, struct timespec *left) {
  (void)left;
  slept_ns += pause->tv_sec * 1000000000LL + pause->tv_nsec;
  return 0;
}
int usleep(useconds_t pause) { slept_ns += pause * 1000LL; return 0; }
int clock_gettime(clockid_t clock, struct timespec *now) {
  static int (*real)(clockid_t, struct timespec *);
  if (!real) real = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
  int result = real(clock, now);
  long long all = now->tv_nsec + slept_ns;
  now->tv_sec += all / 1000000000;
  now->tv_nsec = all % 1000000000;
  return result;
}
"""

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


@pytest.fixture
def clock(tmp_path: Path) -> dict[str, str]:
    """An environment whose clock sleeping moves on."""
    source, shim = tmp_path / "clock.c", tmp_path / "clock.so"
    source.write_text(CLOCK, encoding="ascii")
    subprocess.run(["cc", "-shared", "-fPIC", "-o", str(shim), str(source)], check=True)
    return {"LD_PRELOAD": f"{shim}:{os.environ.get('LD_PRELOAD', '')}".rstrip(":")}


@pytest.mark.parametrize("state", ["open", "owed"])
def test_ABI_1_a_call_waits_once_for_what_others_hold(
    sign_in: MakeUser, clock: dict[str, str], state: str
) -> None:
    """Attack 6, L5: with an erasure that was owed, each call waited twice or more, 5 s each."""
    user = sign_in(policy={"lock_on_background": "at_once"})
    user.phone.close()
    with subprocess.Popen(
        [*children.command("-")[:1], "-c", CALLS, user.phone.spec(), state],
        env=children.environment(clock),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdin and process.stdout
        assert process.stdout.readline().strip() == "ready"
        # Given another program that keeps the write lock
        database = sqlite3.connect(user.phone.folder / "holdfast.db", isolation_level=None)
        waits: dict[str, tuple[int, str]] = {}
        with contextlib.closing(database):
            database.execute("BEGIN IMMEDIATE")
            # When the app makes calls
            for call in ("session_status", "poll", "session_background", "session_lock"):
                process.stdin.write(f"{call}\n")
                process.stdin.flush()
                waits[call] = tuple(json.loads(process.stdout.readline()))
            database.execute("ROLLBACK")
        process.stdin.close()
        assert process.wait(60 * children.PATIENCE) == 0
    # Then each waits its 5 s, and no more
    assert all(wait <= 5100 for wait, _ in waits.values()), waits
    assert waits["session_lock"][1] == "storage.busy"
    assert waits["session_lock"][0] >= 4900
