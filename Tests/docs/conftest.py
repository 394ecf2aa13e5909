"""Fixture: one local backend for all examples."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from local_supabase import LocalSupabase


@pytest.fixture(scope="session")
def backend() -> Iterator[LocalSupabase]:
    with LocalSupabase(demo=True) as running:
        yield running
