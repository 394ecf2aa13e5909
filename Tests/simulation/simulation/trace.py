"""What happened in a run, line by line, and its digest: two runs of a seed must have the same."""

from __future__ import annotations

import hashlib


class Trace:
    """Lines are kept only when somebody will read them."""

    def __init__(self, *, keep: bool = False) -> None:
        """`keep`: the lines, beside their digest."""
        self.lines: list[str] = []
        self._keep = keep
        self._hash = hashlib.sha256()

    def note(self, line: str) -> None:
        """One more thing happened."""
        self._hash.update(line.encode())
        self._hash.update(b"\n")
        if self._keep:
            self.lines.append(line)

    def digest(self) -> str:
        """Of all lines so far."""
        return self._hash.hexdigest()
