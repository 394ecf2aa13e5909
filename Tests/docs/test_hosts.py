"""The loops of docs/hosts.md compile without warnings and deliver a visit, each in a host of its own."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from local_supabase import LocalSupabase

from hosts import BUILD, HERE, LINK, compiled, stores_a_visit
from pages import ROOT, block

PAGE = "docs/hosts.md"


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


@pytest.mark.slow  # the Swift compiler, for eight seconds
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
