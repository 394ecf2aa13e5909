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


def run(program: str, backend: LocalSupabase, folder: Path) -> str:
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=patience(240),
        check=False,
        env={
            "PYTHONPATH": str(ROOT / "bindings/python/src"),
            "HOLDFAST_LIBRARY": str(ROOT / "build/lib/libholdfast.so"),
            "HOLDFAST_URL": backend.url,
            "HOLDFAST_KEY": backend.anon_key,
            "PATH": "/usr/bin:/bin",
        },
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@contextlib.contextmanager
def table_of(page: str, backend: LocalSupabase) -> Iterator[None]:
    """The table `visits` that the page's SQL makes."""
    try:
        for statements in blocks(page, "sql"):
            backend.control.sql(statements)
        backend.control.reload_schema()
        yield
    finally:
        backend.control.sql("drop table if exists visits; drop function if exists touch")
        backend.control.reload_schema()
