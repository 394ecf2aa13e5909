"""Builds and runs hosts: a loop from a page, with the rest of a host around it."""

from __future__ import annotations

import subprocess
from pathlib import Path

from local_supabase import LocalSupabase
from patience import patience

from pages import ROOT

HERE = Path(__file__).parent
BUILD = ROOT / "build"


def stores_a_visit(
    command: list[str | Path], backend: LocalSupabase, folder: Path, **more: str
) -> None:
    """Run a host, and check that the server has one more activity."""
    before = backend.control.sql("select count(*) as n from activities")[0]["n"]
    done = subprocess.run(
        [*command, folder / "data", backend.url, backend.anon_key],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=patience(240),
        check=False,
        env={"PATH": "/usr/bin:/bin", "LD_LIBRARY_PATH": str(BUILD / "lib"), **more},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.split()[-1] == "sync_completed"
    after = backend.control.sql("select count(*) as n from activities")[0]["n"]
    assert after == before + 1


def compiled(source: str, folder: Path, host: str) -> Path:
    """Compile a block together with the rest of a host."""
    loop = folder / "loop.c"
    loop.write_text(source, "utf-8")
    program = folder / "host"
    flags = ["-std=gnu11", "-Wall", "-Wextra", "-Werror", f"-I{BUILD / 'include'}"]
    libraries = [f"-L{BUILD / 'lib'}", "-lholdfast", "-lholdfast_http", "-ljansson", "-lcurl"]
    subprocess.run(["cc", *flags, loop, HERE / host, "-o", program, *libraries], check=True)
    return program
