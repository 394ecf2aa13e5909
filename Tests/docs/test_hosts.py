"""The loops of docs/hosts.md compile without warnings and deliver a visit, each in a host of its own."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from local_supabase import LocalSupabase

from hosts import compiled, stores_a_visit
from pages import block

PAGE = "docs/hosts.md"


@pytest.mark.parametrize(("number", "host", "most"), [(0, "call.c", 30), (1, "host.c", 40)])
def test_the_loop_in_c(
    backend: LocalSupabase, tmp_path: Path, number: int, host: str, most: int
) -> None:
    loop = block(PAGE, "c", number)
    stores_a_visit([compiled(loop, tmp_path, host=host)], backend, tmp_path)
    code = [line for line in re.sub(r"/\*.*?\*/", "", loop, flags=re.DOTALL).splitlines() if line]
    assert 10 < len(code) <= most
    assert max(map(len, loop.splitlines())) <= 100
