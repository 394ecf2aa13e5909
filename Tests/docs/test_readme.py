"""The README's examples run unchanged against the local backend."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from local_supabase import LocalSupabase
from patience import patience

from hosts import compiled, stores_a_visit
from pages import ROOT
from pages import block as block_of

# What the loop leaves out: the top of the third C block of docs/hosts.md, which defines `call`.
HELPERS = block_of("docs/hosts.md", "c", 2).split("/* Until the handle is closed. */", 1)[0]
# Tests/docs/host.c calls the loop by this name.
FOLLOW = "void follow(holdfast *app);\nvoid follow(holdfast *app) { run(app); }\n"


def example(language: str, backend: LocalSupabase, number: int = 0) -> str:
    """A block of the README, with the local backend in place of the made-up project."""
    block = block_of("README.md", language, number).replace(
        "https://PROJECT.supabase.co", backend.url
    )
    assert "KEY" in block
    return block.replace('"KEY\\"', f'"{backend.anon_key}\\"').replace(
        '"KEY"', f'"{backend.anon_key}"'
    )


def test_the_loop_delivers_an_item(backend: LocalSupabase, tmp_path: Path) -> None:
    """Given an app with one queued item, when the loop of the README runs, then the server has it."""
    loop = block_of("README.md", "c").replace("void run(", "static void run(")
    stores_a_visit([compiled(HELPERS + loop + FOLLOW, tmp_path)], backend, tmp_path)


def test_the_loop_is_on_the_first_screen() -> None:
    lines = (ROOT / "README.md").read_text("utf-8").splitlines()
    start = lines.index("```c")
    assert start < 12
    assert lines.index("```", start) - start <= 20


def test_no_line_is_wider_than_120_columns() -> None:
    lines = (ROOT / "README.md").read_text("utf-8").splitlines()
    # A link definition cannot be wrapped.
    assert [line for line in lines if len(line) > 120 and not line.startswith("[")] == []


def test_the_c_example_compiles_without_warnings_and_resumes(
    backend: LocalSupabase, tmp_path: Path
) -> None:
    source = tmp_path / "example.c"
    source.write_text(example("c", backend, 1), "utf-8")
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
        [tmp_path / "example"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=patience(120),
        check=True,
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
        timeout=patience(240),
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


def test_the_program_of_the_python_readme_stores_its_item(
    backend: LocalSupabase, tmp_path: Path
) -> None:
    source = block_of("bindings/python/README.md", "python")
    assert len(source.splitlines()) <= 25
    before = backend.control.sql("select count(*) as n from activities")[0]["n"]
    done = subprocess.run(
        [sys.executable, "-c", source],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=patience(240),
        check=False,
        env={
            "HOLDFAST_URL": backend.url,
            "HOLDFAST_KEY": backend.anon_key,
            "HOLDFAST_LIBRARY": str(ROOT / "build/lib/libholdfast.so"),
            "PYTHONPATH": str(ROOT / "bindings/python/src"),
        },
    )
    assert done.returncode == 0, done.stderr
    first, *_, last = done.stdout.splitlines()
    assert first == "sign_in Sign in to get started."
    assert "Done: what was waiting has been sent." in last
    after = backend.control.sql("select count(*) as n from activities")[0]["n"]
    assert after == before + 1
