"""The loops of docs/hosts.md compile without warnings and deliver a visit, each in a host of its own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

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


def compiled(source: str, folder: Path, *more: str) -> Path:
    """Compile a block together with host.c."""
    loop = folder / "loop.c"
    loop.write_text(source, "utf-8")
    program = folder / "host"
    flags = ["-std=gnu11", "-Wall", "-Wextra", "-Werror", f"-I{BUILD / 'include'}"]
    libraries = ["-lholdfast_http", "-ljansson", "-lcurl"]
    subprocess.run(
        ["cc", *flags, *more, loop, HERE / "host.c", "-o", program, *LINK, *libraries], check=True
    )
    return program


def test_the_loop_in_c_with_the_driver(backend: LocalSupabase, tmp_path: Path) -> None:
    stores_a_visit([compiled(block(PAGE, "c", 0), tmp_path, "-DDRIVER")], backend, tmp_path)


def test_the_loop_in_c_with_http_of_its_own(backend: LocalSupabase, tmp_path: Path) -> None:
    stores_a_visit([compiled(block(PAGE, "c", 1), tmp_path)], backend, tmp_path)


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
