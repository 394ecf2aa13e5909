"""Controls machine.c, the preloaded substitute for the operating system of the devices."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

HERE = Path(__file__).resolve().parent
SOURCE = HERE.parent / "machine.c"
#: For the devices' files and copies of them: the simulation does not test disks.
MEMORY = Path("/dev/shm")
#: Greater than any process id of Linux.
FIRST_PROCESS = 5_000_000


class MachineError(RuntimeError):
    """machine.c is not preloaded into this process."""


def build(folder: Path) -> Path:
    """Compile machine.c; return the path for LD_PRELOAD."""
    target, fresh = folder / "machine.so", folder / f"machine-{os.getpid()}"
    flags = ["-shared", "-fPIC", "-O1", "-Wall", "-Wextra", "-Werror"]
    subprocess.run(["cc", *flags, "-o", str(fresh), str(SOURCE), "-ldl"], check=True)
    # Another process may be using the previous build.
    return fresh.replace(target)


def environment(machine: Path) -> dict[str, str]:
    """Return the environment of a simulating process: machine.c, modules, fixed hash seeds."""
    root = HERE.parents[2]
    paths = [
        HERE.parent,
        root / "Tests" / "abi",
        root / "bindings" / "python" / "src",
        root / "Tests" / "server",
    ]
    folder = {"TMPDIR": str(MEMORY)} if os.access(MEMORY, os.W_OK) else {}
    return {
        **os.environ,
        **folder,
        "LD_PRELOAD": str(machine),
        "PYTHONPATH": os.pathsep.join(map(str, paths)),
        "PYTHONHASHSEED": "0",
        "SWIFT_DETERMINISTIC_HASHING": "1",
    }


class Machine:
    """What the library learns from its operating system."""

    def __init__(self) -> None:
        """Find the machine that is preloaded into this process."""
        try:
            self._enter = ctypes.CDLL(None).machine_enter
        except AttributeError as error:
            raise MachineError(
                "run it by `python -m simulation`, which preloads machine.c"
            ) from error
        dll = ctypes.CDLL(None)
        self._enter.argtypes = (ctypes.c_int, ctypes.c_int64, ctypes.c_int64, ctypes.c_char_p)
        self._enter.restype = None
        self._leave, self._seed, self._alive = (
            dll.machine_leave,
            dll.machine_seed,
            dll.machine_set_alive,
        )
        self._leave.restype = self._seed.restype = self._alive.restype = None
        self._seed.argtypes = (ctypes.c_uint64,)
        self._alive.argtypes = (ctypes.c_int, ctypes.c_int)
        self._last = FIRST_PROCESS

    def seed(self, number: int) -> None:
        """Seed all randomness of the library."""
        self._seed(number & (2**64 - 1))
        self._last = FIRST_PROCESS

    def new_process(self) -> int:
        """Return the id of a process that starts now."""
        self._last += 1
        self._alive(self._last, 1)
        return self._last

    def end_process(self, process: int) -> None:
        """Report the process as dead from now on."""
        self._alive(process, 0)

    def inside(self, process: int, wall_ms: int, monotonic_ms: int, boot: str) -> Inside:
        """Enclose a call into the library: this process makes it, at this time of its device."""
        self._enter(process, wall_ms, monotonic_ms, boot.encode("ascii"))
        return Inside(self._leave)


class Inside:
    """A context manager that ends a call into the library."""

    __slots__ = ("_leave",)

    def __init__(self, leave: Callable[[], None]) -> None:
        """`leave` is called at the end."""
        self._leave = leave

    def __enter__(self) -> None:
        """The call has begun."""

    def __exit__(self, *_: object) -> None:
        """The call is over."""
        self._leave()


def is_preloaded() -> bool:
    """Whether machine.c is preloaded into this process."""
    return "machine.so" in os.environ.get("LD_PRELOAD", "") and sys.platform == "linux"
