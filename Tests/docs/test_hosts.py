"""The loops of docs/hosts.md compile without warnings and deliver a visit, each in a host of its own."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from local_supabase import LocalSupabase

from pages import ROOT, block

HERE = Path(__file__).parent
BUILD = ROOT / "build"
LINK = [f"-L{BUILD / 'lib'}", "-lholdfast"]
PAGE = "docs/hosts.md"


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
        timeout=60,
        check=False,
        env={"PATH": "/usr/bin:/bin", "LD_LIBRARY_PATH": str(BUILD / "lib"), **more},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.split()[-1] == "sync_completed"
    after = backend.control.sql("select count(*) as n from activities")[0]["n"]
    assert after == before + 1


def compiled(source: str, folder: Path, *more: str, host: str = "host.c") -> Path:
    """Compile a block together with the rest of a host."""
    loop = folder / "loop.c"
    loop.write_text(source, "utf-8")
    program = folder / "host"
    flags = ["-std=gnu11", "-Wall", "-Wextra", "-Werror", f"-I{BUILD / 'include'}"]
    libraries = ["-lholdfast_http", "-ljansson", "-lcurl"]
    subprocess.run(
        ["cc", *flags, *more, loop, HERE / host, "-o", program, *LINK, *libraries], check=True
    )
    return program


def test_the_two_functions_in_c(backend: LocalSupabase, tmp_path: Path) -> None:
    glue = block(PAGE, "c", 0)
    stores_a_visit([compiled(glue, tmp_path, host="call.c")], backend, tmp_path)


def test_the_loop_in_c_with_the_driver(backend: LocalSupabase, tmp_path: Path) -> None:
    stores_a_visit([compiled(block(PAGE, "c", 1), tmp_path, "-DDRIVER")], backend, tmp_path)


def test_the_loop_in_c_with_http_of_its_own(backend: LocalSupabase, tmp_path: Path) -> None:
    stores_a_visit([compiled(block(PAGE, "c", 2), tmp_path)], backend, tmp_path)


@pytest.mark.parametrize(
    ("language", "number", "most"), [("c", 0, 40), ("c", 1, 40), ("c", 2, 60), ("python", 0, 40)]
)
def test_the_glue_is_short(language: str, number: int, most: int) -> None:
    """Issue 16; Tests/packages/test_languages.py counts the lines in Java, Go and Rust."""
    text = re.sub(r'/\*.*?\*/|""".*?"""', "", block(PAGE, language, number), flags=re.DOTALL)
    code = [line for line in text.splitlines() if line.strip()]
    assert 10 < len(code) <= most
    assert max(map(len, text.splitlines())) <= 100


def test_the_loop_in_python(backend: LocalSupabase, tmp_path: Path) -> None:
    (tmp_path / "loop.py").write_text(block(PAGE, "python"), "utf-8")
    path = f"{ROOT / 'bindings/python/src'}:{tmp_path}"
    library = str(BUILD / "lib/libholdfast.so")
    stores_a_visit(
        [sys.executable, HERE / "host.py"],
        backend,
        tmp_path,
        PYTHONPATH=path,
        HOLDFAST_LIBRARY=library,
    )


def test_the_loop_in_swift(backend: LocalSupabase, tmp_path: Path) -> None:
    (tmp_path / "loop.swift").write_text(block(PAGE, "swift"), "utf-8")
    (tmp_path / "main.swift").write_text((HERE / "host.swift").read_text("utf-8"), "utf-8")
    program = tmp_path / "host"
    sources = [tmp_path / "loop.swift", tmp_path / "main.swift"]
    flags = [
        "-swift-version",
        "6",
        "-warnings-as-errors",
        f"-I{BUILD / 'include'}",
        "-module-cache-path",
        tmp_path / "cache",
    ]
    subprocess.run(["swiftc", *flags, *sources, "-o", program, *LINK], check=True)
    stores_a_visit([program], backend, tmp_path)
