"""The file that chooses the mutant and notes which places are reached (switch/mutants.c)."""

from __future__ import annotations

import mmap
import struct
from pathlib import Path

SIZE, FLAGS = 1 << 16, 64
#: The variable that names the file.
VARIABLE = "HOLDFAST_MUTANTS"
#: Numbers go from 1 to this one.
LAST = SIZE - FLAGS - 1


class Switch:
    """The runner's view of the file. Every process of a test sees a change at once."""

    def __init__(self, path: Path) -> None:
        """Create the file: no mutant is on, nothing was reached."""
        self.path = path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(bytes(SIZE))
        with path.open("r+b") as file:
            self._bytes = mmap.mmap(file.fileno(), SIZE)

    def turn_on(self, number: int) -> None:
        """Turn this mutant on, and the one before off; 0 is none."""
        self._bytes[:4] = struct.pack("=i", number)

    def forget(self) -> None:
        """Nothing was reached."""
        self._bytes[FLAGS:] = bytes(SIZE - FLAGS)

    def reached(self) -> list[int]:
        """The mutants whose places were reached since `forget`."""
        flags = self._bytes[FLAGS:]
        return [number for number, flag in enumerate(flags) if flag]
