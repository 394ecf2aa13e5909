"""A library in its own process, behind a host that stores nothing (host.c)."""

from __future__ import annotations

import struct
import subprocess
from collections.abc import Callable
from pathlib import Path

from holdfast import Library
from holdfast.keystore import KeyStoreStruct
from holdfast.library import Answer

from .paths import EMULATOR


class HostedLibrary(Library):
    """Like `Library`, with one handle at a time and the built-in file key store."""

    #: The number of the open handle.
    _number = 0

    def __init__(self, program: Path, path: Path, stack: int | None = None) -> None:
        """Load the library there; the calls run on a stack of so many bytes."""
        self.path = path
        command = [*EMULATOR, str(program), str(path)] + ([] if stack is None else [str(stack)])
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    @property
    def pid(self) -> int:
        """The process to scan for secrets."""
        return self.process.pid

    def _ask(self, name: str, request: bytes) -> Answer:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        text = name.encode() + b"\0" + request
        self.process.stdin.write(struct.pack("=I", len(text)) + text)
        self.process.stdin.flush()
        status, size = struct.unpack("=iI", self.process.stdout.read(8))
        return status, self.process.stdout.read(size) if size else None

    def open(self, config: bytes | None, keystore: KeyStoreStruct | None) -> tuple[int, Answer]:
        assert keystore is None, "key-store callbacks do not work across processes"
        answer = self._ask("open", config or b"")
        self._number += 1
        return (self._number if answer[0] == 0 else 0), answer

    def call(self, name: str, handle: int | None, request: bytes | None) -> Answer:
        return self._ask(name, request or b"")

    def next(self, handle: int | None, what: int, timeout_ms: int) -> Answer:
        return self._ask("next", f"{what} {timeout_ms}".encode())

    def close(self, handle: int | None) -> None:
        if self.process.poll() is None and handle == self._number:
            self._ask("close", b"")

    def set_log(self, level: int, function: Callable[[int, str], None] | None) -> None:
        """Does nothing: the other process cannot call us."""

    def live(self) -> int:
        return self._ask("live", b"")[0]

    def stack_used(self) -> int:
        """How many bytes of the stack the calls so far have used."""
        return self._ask("stack", b"")[0]

    def end(self) -> None:
        """End the process."""
        self.process.kill()
        for stream in (self.process.stdin, self.process.stdout):
            if stream is not None:
                stream.close()
        self.process.wait()
