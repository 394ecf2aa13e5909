"""One local backend for all examples."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path[:0] = [str(Path(__file__).resolve().parents[2] / "Tests/server")]

from local_supabase import LocalSupabase


@pytest.fixture(scope="session")
def backend() -> Iterator[LocalSupabase]:
    with LocalSupabase(demo=True) as running:
        yield running
