"""The README's programs run unchanged against the local backend."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from local_supabase import LocalSupabase

from pages import ROOT, block
from programs import run, table_of

PROGRAM = block("README.md", "python")
#: What the second program has in place of the first one's: the README says it in words.
CHANGES = {
    '    "template": "volunteers",  # the tables of the local project\n': "",
    "item, now_ms =": block("README.md", "python", 1) + "item, now_ms =",
    '"kind": "activity"': '"kind": "visit"',
    '{"type": "visit", "minutes": 45}': '{"minutes": 45}',
}


@pytest.fixture
def table(backend: LocalSupabase) -> Iterator[None]:
    """The table of one's own."""
    with table_of("README.md", backend):
        yield


def test_no_line_is_wider_than_120_columns() -> None:
    lines = (ROOT / "README.md").read_text("utf-8").splitlines()
    # A link definition cannot be wrapped.
    assert [line for line in lines if len(line) > 120 and not line.startswith("[")] == []


def test_the_first_program_stores_its_item(backend: LocalSupabase, tmp_path: Path) -> None:
    """Of a user with two organisations, who must choose one."""
    assert len([line for line in PROGRAM.splitlines() if line]) <= 30
    before = backend.control.sql("select count(*) as n from activities")[0]["n"]
    assert run(PROGRAM, backend, tmp_path) == "the server has it\n"
    after = backend.control.sql("select count(*) as n from activities")[0]["n"]
    assert after == before + 1


def test_a_table_of_one_s_own_takes_an_item(
    backend: LocalSupabase, table: None, tmp_path: Path
) -> None:
    program = PROGRAM
    for before, after in CHANGES.items():
        assert before in program
        program = program.replace(before, after)
    assert run(program, backend, tmp_path) == "the server has it\n"
    assert backend.control.sql("select minutes from visits") == [{"minutes": 45}]
