"""The README's examples run as they stand, against the local backend."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from local_supabase import LocalSupabase
from pages import ROOT
from pages import block as block_of


def example(language: str, backend: LocalSupabase) -> str:
    """The README's one block in a language, with a real project in place of the made-up one."""
    block = block_of("README.md", language).replace("https://PROJECT.supabase.co", backend.url)
    assert "KEY" in block
    return block.replace('"KEY\\"', f'"{backend.anon_key}\\"').replace('"KEY"', f'"{backend.anon_key}"')


def test_the_c_example_compiles_without_warnings_and_resumes(backend: LocalSupabase, tmp_path: Path) -> None:
    source = tmp_path / "example.c"
    source.write_text(example("c", backend), "utf-8")
    build = ROOT / "build"
    subprocess.run(
        [
            "cc",
            "-Wall",
            "-Wextra",
            "-Werror",
            f"-I{build / 'include'}",
            str(source),
            "-o",
            str(tmp_path / "example"),
            f"-L{build / 'lib'}",
            "-lholdfast",
            f"-Wl,-rpath,{build / 'lib'}",
        ],
        check=True,
    )
    done = subprocess.run(
        [tmp_path / "example"], cwd=tmp_path, capture_output=True, text=True, timeout=30, check=True
    )
    opened, decision, sign_in = (json.loads(line) for line in done.stdout.splitlines())
    assert opened["recovered"] is False
    assert (decision["screen"], decision["reason"]) == ("sign_in", "session_missing")
    assert sign_in["url"].startswith(f"{backend.url}/auth/v1/authorize?provider=bankid")


def test_the_python_example_stores_its_activity(backend: LocalSupabase, tmp_path: Path) -> None:
    before = backend.control.sql("select count(*) as n from activities")[0]["n"]
    done = subprocess.run(
        [sys.executable, "-c", example("python", backend)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env={
            "PYTHONPATH": str(ROOT / "bindings/python/src"),
            "HOLDFAST_LIBRARY": str(ROOT / "build/lib/libholdfast.so"),
            "PATH": "/usr/bin:/bin",
        },
    )
    assert done.returncode == 0, done.stderr
    assert "sync_completed" in done.stdout
    after = backend.control.sql("select count(*) as n from activities")[0]["n"]
    assert after == before + 1
