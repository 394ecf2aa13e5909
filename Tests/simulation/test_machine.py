"""machine.c answers with the given values during a call, and passes everything else through."""

from __future__ import annotations

import subprocess
import sys

SCRIPT = """
import ctypes, os, time
from simulation.machine import FIRST_PROCESS, Machine
machine = Machine()
machine.seed(7)
mine, other = machine.new_process(), machine.new_process()
machine.end_process(other)
real = os.getpid()
# Call these as the library does: an interpreter may use open64 or a system call instead.
libc, few = ctypes.CDLL(None), ctypes.create_string_buffer(2)
def stat(process):
    descriptor = libc.open(f"/proc/{process}/stat".encode(), os.O_RDONLY)
    if descriptor < 0:
        return None
    try:
        return os.pread(descriptor, 200, 0).decode().rsplit(")", 1)[1].split()
    finally:
        os.close(descriptor)
locked = os.open("/proc/self/exe", os.O_RDONLY)
with machine.inside(mine, 1_800_000_000_123, 5_000, "boot-one"):
    libc.getrandom(few, 2, 0)
    seen = (os.getpid(), time.time_ns(), time.clock_gettime_ns(time.CLOCK_BOOTTIME), few.raw)
    alive, dead = stat(mine), stat(other)
# The kernel would refuse a lock for writing on a file that is open for reading.
import fcntl
fcntl.lockf(locked, fcntl.LOCK_EX | fcntl.LOCK_NB)
assert fcntl.fcntl(locked, fcntl.F_GETFD) == fcntl.FD_CLOEXEC
assert seen == (mine, 1_800_000_000_123_000_000, 5_000_000_000, b"ZZ"), seen
# The list begins with the state, the 3rd field; the start time is the 22nd.
assert alive[22 - 3] == str(mine) and len(alive) == 20, alive
assert dead is None
assert os.getpid() == real
assert time.time_ns() != 1_800_000_000_123_000_000
assert stat(real)[0] in "RS"
"""


def test_the_machine_answers_only_during_a_call(environment: dict[str, str]) -> None:
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
