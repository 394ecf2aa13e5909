"""The trace of a run, line by line, and its digest. Two runs of a seed have the same digest."""

from __future__ import annotations

import hashlib


class Trace:
    """Collects a digest; keeps the lines only on request."""

    def __init__(self, *, keep: bool = False) -> None:
        """`keep`: keep the lines too."""
        self.lines: list[str] = []
        self._keep = keep
        self._hash = hashlib.sha256()

    def note(self, line: str) -> None:
        """Add a line."""
        self._hash.update(line.encode())
        self._hash.update(b"\n")
        if self._keep:
            self.lines.append(line)

    def digest(self) -> str:
        """Return the digest of all lines so far."""
        return self._hash.hexdigest()
