"""Delta debugging: find the few actions of a failing run that still break the same rule.

Zeller and Hildebrandt, "Simplifying and Isolating Failure-Inducing Input", 2002.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

Item = TypeVar("Item")


def shrink(
    items: Sequence[Item], fails: Callable[[list[Item]], bool], max_tries: int = 400
) -> list[Item]:
    """Return a failing list from which no single item can be removed, within `max_tries`."""
    kept = list(items)
    parts, tries = 2, 0
    while kept:
        size = -(-len(kept) // parts)
        for start in range(0, len(kept), size):
            without = kept[:start] + kept[start + size :]
            tries += 1
            if fails(without):
                kept, parts = without, max(parts - 1, 2)
                break
            if tries >= max_tries:
                return kept
        else:
            if size == 1:
                return kept
            parts = min(parts * 2, len(kept))
    return kept
