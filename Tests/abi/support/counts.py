"""What the tests count for the closing lines of a run."""

from __future__ import annotations

from collections import Counter

COPIES = "old copies of a folder put back after a lock or logout"
FLIPS = "folders with flipped bits"
#: How often each was tried in this process. conftest.py tells the difference that each test makes.
counts: Counter[str] = Counter()
