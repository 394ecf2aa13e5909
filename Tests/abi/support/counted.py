"""The library in its own process under callgrind, which counts the instructions of its calls."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

from .hosted import HostedLibrary


class CountedLibrary(HostedLibrary):
    """Counts the instructions of one function of the C API, SQLite's and libsodium's included."""

    def __init__(self, program: Path, path: Path, function: str, folder: Path) -> None:
        self.path = path
        self.output = folder / "callgrind.out"
        command = ["valgrind", "-q", "--tool=callgrind", f"--callgrind-out-file={self.output}"]
        command += ["--collect-atstart=no", f"--toggle-collect=holdfast_{function}"]
        self.process = subprocess.Popen(
            [*command, str(program), str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )

    def count(self) -> int:
        """End the process; how many instructions it took within the function."""
        assert self.process.stdin is not None
        self.process.stdin.write((4).to_bytes(4, "little") + b"exit")
        self.process.stdin.flush()
        assert self.process.wait() == 0
        self.end()
        found = re.search(r"^(?:summary|totals): (\d+)", self.output.read_text(), re.MULTILINE)
        assert found is not None
        return int(found[1])
