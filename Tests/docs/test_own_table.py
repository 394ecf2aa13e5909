"""The page about a table of one's own: its SQL, its configuration and its program fit each other."""

from __future__ import annotations

import json
from pathlib import Path

from holdfast import doctor
from local_supabase import LocalSupabase

from pages import block
from programs import run, running, table_of

PAGE = "docs/own-table.md"


def write_configuration(backend: LocalSupabase, folder: Path) -> str:
    text = block(PAGE, "json").replace("https://PROJECT.supabase.co", backend.url)
    text = text.replace("KEY", backend.anon_key)
    (folder / "config.json").write_text(text, "utf-8")
    return text


def test_a_table_that_is_missing_is_told_to_the_developer(
    backend: LocalSupabase, tmp_path: Path
) -> None:
    write_configuration(backend, tmp_path)
    with running(block(PAGE, "python"), backend, tmp_path) as process:
        assert process.stderr is not None
        line = process.stderr.readline()
    assert line.startswith("holdfast: problem: "), line
    assert "PGRST205. The server has no such table." in line


def test_the_page_leads_from_an_empty_table_to_a_corrected_row(
    backend: LocalSupabase, tmp_path: Path
) -> None:
    text = write_configuration(backend, tmp_path)
    with table_of(PAGE, backend):
        # When its program runs
        said = run(block(PAGE, "python"), backend, tmp_path).splitlines()
        # Then the row is stored, and corrected
        assert [line for line in said if "stored" in line] == ["45 stored", "60 stored"]
        assert backend.control.sql("select minutes from visits") == [{"minutes": 60}]
        # And the doctor finds nothing
        steps = doctor(json.loads(text), email="mentor@example.org", password="holdfast-demo")
        assert [(step.name, step.found) for step in steps if step.outcome != "ok"] == []
        assert "changes of visit" in [step.name for step in steps]
