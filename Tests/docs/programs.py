"""Runs the programs of pages against the local backend."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from local_supabase import LocalSupabase
from patience import patience

from pages import ROOT, blocks


@contextlib.contextmanager
def running(program: str, backend: LocalSupabase, folder: Path) -> Iterator[subprocess.Popen[str]]:
    """The program as a process, which ends with the block."""
    environment = {
        "PYTHONPATH": str(ROOT / "bindings/python/src"),
        "HOLDFAST_LIBRARY": str(ROOT / "build/lib/libholdfast.so"),
        "HOLDFAST_URL": backend.url,
        "HOLDFAST_KEY": backend.anon_key,
        "PATH": "/usr/bin:/bin",
    }
    command, pipe = [sys.executable, "-c", program], subprocess.PIPE
    with subprocess.Popen(
        command, cwd=folder, env=environment, stdout=pipe, stderr=pipe, text=True
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def run(program: str, backend: LocalSupabase, folder: Path) -> str:
    with running(program, backend, folder) as process:
        said, warned = process.communicate(timeout=patience(240))
        assert process.returncode == 0, said + warned
        return said


@contextlib.contextmanager
def table_of(page: str, backend: LocalSupabase) -> Iterator[None]:
    """The table `visits` that the page's SQL makes."""
    try:
        statements = blocks(page, "sql")
        assert "notify pgrst, 'reload schema';" in statements[-1], "the API has to learn of it"
        for each in statements:
            backend.control.sql(each)
        backend.control.reload_schema()
        yield
    finally:
        backend.control.sql("drop table if exists visits; drop function if exists touch")
        backend.control.reload_schema()
