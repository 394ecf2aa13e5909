"""The machine below the devices answers what it was told, and is out of the way otherwise."""

from __future__ import annotations

import subprocess
import sys

SCRIPT = """
import os, time
from simulation.machine import FIRST_PROCESS, Machine
machine = Machine()
machine.seed(7)
mine, other = machine.new_process(), machine.new_process()
machine.end_process(other)
real = os.getpid()
def stat(process):
    try:
        descriptor = os.open(f"/proc/{process}/stat", os.O_RDONLY)
    except OSError:
        return None
    try:
        return os.pread(descriptor, 200, 0).decode().rsplit(")", 1)[1].split()
    finally:
        os.close(descriptor)
with machine.inside(mine, 1_800_000_000_123, 5_000, "boot-one"):
    seen = (os.getpid(), time.time(), time.clock_gettime(time.CLOCK_BOOTTIME), os.getrandom(2))
    alive, dead = stat(mine), stat(other)
assert seen == (mine, 1_800_000_000.123, 5.0, b"ZZ"), seen
# Fields are counted from the state, which is the third: the start is the 22nd.
assert alive[22 - 3] == str(mine) and len(alive) == 20, alive
assert dead is None
assert os.getpid() == real
assert time.time() != 1_800_000_000.123
assert stat(real)[0] in "RS"
"""


def test_it_answers_while_a_call_is_under_way(environment: dict[str, str]) -> None:
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
