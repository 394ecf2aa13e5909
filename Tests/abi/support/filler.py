"""A disk that others fill."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from io import FileIO


def fill(file: FileIO) -> None:
    """Write to the file until the disk has no room for another byte."""
    for size in (65536, 4096, 1):
        try:
            while file.write(bytes(size)):
                pass
        except OSError:
            pass
