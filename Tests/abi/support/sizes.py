"""How many cases a test takes. HOLDFAST_SIZE=full (make test-all) takes all of them."""

from __future__ import annotations

import os
from typing import TypeVar

Size = TypeVar("Size")

FULL = os.environ.get("HOLDFAST_SIZE") == "full"


def sized(reduced: Size, full: Size) -> Size:
    """`full` with HOLDFAST_SIZE=full, else `reduced`: a number, or a list of cases."""
    return full if FULL else reduced
