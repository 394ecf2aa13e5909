"""The machine below the simulated devices (machine.c): preloaded, and told what to answer."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

HERE = Path(__file__).resolve().parent
SOURCE = HERE.parent / "machine.c"
#: Greater than any process id of Linux.
FIRST_PROCESS = 5_000_000


class MachineError(RuntimeError):
    """The process runs without the machine."""


def build(folder: Path) -> Path:
    """Compile it; the path for LD_PRELOAD."""
    target, fresh = folder / "machine.so", folder / f"machine-{os.getpid()}"
    flags = ["-shared", "-fPIC", "-O1", "-Wall", "-Wextra", "-Werror"]
    subprocess.run(["cc", *flags, "-o", str(fresh), str(SOURCE), "-ldl"], check=True)
    # Another process may be using the one before.
    return fresh.replace(target)


def environment(machine: Path) -> dict[str, str]:
    """For a child process that simulates; hashes are the same in every one."""
    root = HERE.parents[2]
    paths = [
        HERE.parent,
        root / "Tests" / "abi",
        root / "bindings" / "python" / "src",
        root / "Tests" / "server",
    ]
    return {
        **os.environ,
        "LD_PRELOAD": str(machine),
        "PYTHONPATH": os.pathsep.join(map(str, paths)),
        "PYTHONHASHSEED": "0",
        "SWIFT_DETERMINISTIC_HASHING": "1",
    }


class Machine:
    """What the library sees of its operating system."""

    def __init__(self) -> None:
        """The one that is preloaded into this process."""
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
        """All randomness of the library follows from this."""
        self._seed(number & (2**64 - 1))
        self._last = FIRST_PROCESS

    def new_process(self) -> int:
        """The id of a process that has just started."""
        self._last += 1
        self._alive(self._last, 1)
        return self._last

    def end_process(self, process: int) -> None:
        """It no longer runs."""
        self._alive(process, 0)

    @contextmanager
    def inside(self, process: int, wall_ms: int, monotonic_ms: int, boot: str) -> Iterator[None]:
        """A call into the library by this process, at this time of its device."""
        self._enter(process, wall_ms, monotonic_ms, boot.encode("ascii"))
        try:
            yield
        finally:
            self._leave()


def is_preloaded() -> bool:
    """Whether this process has the machine below it."""
    return "machine.so" in os.environ.get("LD_PRELOAD", "") and sys.platform == "linux"
