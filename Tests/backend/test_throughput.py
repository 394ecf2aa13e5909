"""The backend is fast enough for tests with a hundred thousand rows."""

from __future__ import annotations

import time

from local_supabase import LocalSupabase

from conftest import Person, activity

REQUESTS, ROWS = 200, 500
LIMIT_S = 60


def test_a_hundred_thousand_rows(backend: LocalSupabase, org: str, mentor: Person) -> None:
    batches = [
        sorted((activity(org) for _ in range(ROWS)), key=lambda row: str(row["id"]))
        for _ in range(REQUESTS)
    ]
    started = time.monotonic()
    for batch in batches:
        answer = mentor.insert(batch, prefer="resolution=ignore-duplicates,return=representation")
        assert len(answer.json()) == ROWS
    assert time.monotonic() - started < LIMIT_S
    count = backend.control.sql("select count(*) from activities where org_id = %s", org)
    assert count == [{"count": REQUESTS * ROWS}]
